package network

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// hub returns the device name of the end of a node's wire in the servers' namespace.
func (n Node) hub() string { return fmt.Sprintf("weir-node-%d", n.Number) }

// nodeWire is the device name of the other end, in the node's own namespace.
const nodeWire = "weir-hub"

// addNodes creates a namespace for each node with a wire to the servers' namespace, which forwards
// packets between all nodes and the clients.
func (l *joint) addNodes(count int) (nodes []Node, err error) {
	if count == 0 {
		return nil, nil
	}
	if err := l.space.do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) // of the calling thread's namespace
	}); err != nil {
		return nil, fmt.Errorf("joining the nodes: %w", err)
	}
	for i := range count {
		n := Node{Number: i + 1, Address: NodeAddress(i + 1)}
		s, err := newSpace()
		if err != nil {
			return nil, err
		}
		n.Space = s.path
		if err := l.wire(s, n); err != nil {
			return nil, fmt.Errorf("joining node %d: %w", n.Number, err)
		}
		nodes = append(nodes, n)
	}
	return nodes, route(clientDevice, nodeNetwork)
}

// wire creates a wire from the servers' namespace to that of a node.
func (l *joint) wire(s *space, n Node) error {
	other, err := netns.GetFromPath(n.Space)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	gateway := gatewayOf(n.Number)
	err = l.space.do(func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.MTU = n.hub(), mtu
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: nodeWire, PeerNamespace: netlink.NsFd(other)}); err != nil {
			return missing("a pair of veth devices", err, "modprobe veth")
		}
		return up(n.hub(), gateway)
	})
	if err != nil {
		return err
	}
	return s.do(func() error {
		if err := loopback(); err != nil {
			return err
		}
		if err := up(nodeWire, n.Address); err != nil {
			return err
		}
		d, err := netlink.LinkByName(nodeWire)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMTU(d, mtu); err != nil {
			return err
		}
		// Not a default route: a server's DNS lookup would then wait 5 s for an answer that never comes.
		// Without a route it fails at once.
		_, all, err := net.ParseCIDR(allNetworks)
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: d.Attrs().Index, Dst: all, Gw: net.ParseIP(gateway)})
	})
}

// up gives a device of the calling thread's namespace an address in a network of two, and brings it
// up.
func up(device, address string) error {
	d, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(30, 32)}}
	if err := netlink.AddrAdd(d, a); err != nil {
		return err
	}
	return netlink.LinkSetUp(d)
}

// route routes a network over a device of the calling thread's namespace.
func route(device, to string) error {
	d, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	_, dst, err := net.ParseCIDR(to)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: d.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK})
}

// severPriority comes before the routing table that forwards packets.
const severPriority = 100

// cutPairs cuts the pairs of addresses and restores all others: the servers' namespace silently drops
// packets between them.
func (l *joint) cutPairs(pairs []Pair) error {
	want := map[Pair]bool{}
	for _, p := range pairs {
		want[p], want[Pair{p[1], p[0]}] = true, true
	}
	return l.space.do(func() error {
		for p := range want {
			if !l.severed[p] {
				r, err := rule(p)
				if err == nil {
					err = netlink.RuleAdd(r)
				}
				if err != nil {
					return fmt.Errorf("cutting %s from %s: %w", p[0], p[1], err)
				}
				l.severed[p] = true
			}
		}
		for p := range l.severed {
			if !want[p] {
				r, err := rule(p)
				if err == nil {
					err = netlink.RuleDel(r)
				}
				if err != nil {
					return fmt.Errorf("mending %s to %s: %w", p[0], p[1], err)
				}
				delete(l.severed, p)
			}
		}
		return nil
	})
}

// rule returns a rule that drops packets from one address to another.
func rule(p Pair) (*netlink.Rule, error) {
	r := netlink.NewRule()
	r.Priority, r.Type, r.Family = severPriority, unix.FR_ACT_BLACKHOLE, unix.AF_INET
	for i, into := range []**net.IPNet{&r.Src, &r.Dst} {
		a, err := netip.ParseAddr(p[i])
		if err != nil {
			return nil, err
		}
		*into = &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
	}
	return r, nil
}
