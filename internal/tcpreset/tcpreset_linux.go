package tcpreset

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TCP socket states used here.
const (
	established = 1
	listening   = 10
)

// Reset resets the established connections from the processes clients to ports on which the processes
// servers listen, and returns how many there were. Clients are in the calling thread's network
// namespace; servers may be in another. The error is ErrMissing if the kernel refuses.
func Reset(group Group, clients, servers []int) (n int, err error) {
	ports := Ports(servers)
	return reset(group, clients, func(to netip.AddrPort) bool { return slices.Contains(ports, to.Port()) })
}

// ResetTo is like Reset for servers on other hosts, given by address.
func ResetTo(group Group, clients []int, servers []netip.AddrPort) (n int, err error) {
	return reset(group, clients, func(to netip.AddrPort) bool { return slices.Contains(servers, to) })
}

// Ports returns the TCP ports on which processes listen, sorted, without duplicates.
func Ports(pids []int) []uint16 {
	ports := map[uint16]bool{}
	for _, pid := range pids {
		listensAt(pid, ports)
	}
	return slices.Sorted(maps.Keys(ports))
}

// reset resets processes' established connections to servers.
func reset(group Group, clients []int, leads func(to netip.AddrPort) bool) (n int, err error) {
	own := map[uint32]bool{}
	for _, pid := range clients {
		socketsOf(pid, own)
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := netlink.SocketDiagTCPInfo(family)
		if err != nil {
			return n, fmt.Errorf("%w: listing connections: %w", ErrMissing, err)
		}
		for _, x := range all {
			s := x.InetDiagMsg
			if s == nil || s.State != established || !own[s.INode] || !leads(remote(&s.ID)) {
				continue
			}
			if x.TCPInfo != nil && !group.has(x.TCPInfo.Bytes_acked, x.TCPInfo.Bytes_received) {
				continue
			}
			switch err := destroy(&s.ID); {
			case err == nil:
				n++
			case !errors.Is(err, unix.ENOENT): // it has ended
				return n, err
			}
		}
	}
	return n, nil
}

// remote returns the address of a connection's other end.
func remote(id *netlink.SocketID) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(id.Destination) // the kernel reports 4 or 16 bytes
	return netip.AddrPortFrom(ip.Unmap(), id.DestinationPort)
}

// destroy resets one connection.
func destroy(id *netlink.SocketID) error {
	err := netlink.SocketDestroy(
		&net.TCPAddr{IP: id.Source, Port: int(id.SourcePort)}, &net.TCPAddr{IP: id.Destination, Port: int(id.DestinationPort)})
	if err != nil {
		return fmt.Errorf("%w: %w (run weir as root, on a kernel with CONFIG_INET_DIAG_DESTROY)", ErrMissing, err)
	}
	return nil
}

// listensAt adds the TCP ports on which a process listens, from /proc in the process's own network
// namespace.
func listensAt(pid int, ports map[uint16]bool) {
	own := map[uint32]bool{}
	socketsOf(pid, own)
	for _, file := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net", file))
		if err != nil {
			continue // the process is gone, or there is no IPv6
		}
		for line := range strings.Lines(string(b)) {
			if port, inode, ok := listener(line); ok && own[inode] {
				ports[port] = true
			}
		}
	}
}

// listener parses a line of /proc/net/tcp; false if it is not a listening socket.
func listener(line string) (port uint16, inode uint32, ok bool) {
	const local, state, number = 1, 3, 9
	f := strings.Fields(line)
	if len(f) <= number {
		return 0, 0, false
	}
	s, err := strconv.ParseUint(f[state], 16, 8)
	if err != nil || s != listening {
		return 0, 0, false
	}
	_, text, _ := strings.Cut(f[local], ":")
	p, err1 := strconv.ParseUint(text, 16, 16)
	i, err2 := strconv.ParseUint(f[number], 10, 32)
	return uint16(p), uint32(i), err1 == nil && err2 == nil
}

// socketsOf adds the inodes of a process's open sockets.
func socketsOf(pid int, own map[uint32]bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	all, err := os.ReadDir(dir)
	if err != nil {
		return // it has ended
	}
	for _, e := range all {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if text, ok := strings.CutPrefix(to, "socket:["); ok {
			if i, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 32); err == nil {
				own[uint32(i)] = true
			}
		}
	}
}

// Check returns ErrMissing, with what is missing, if Reset does not work on this host. It tries it
// with its own connection.
func Check() error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer func() { _ = c.Close() }()
	from, to := c.LocalAddr().(*net.TCPAddr), c.RemoteAddr().(*net.TCPAddr)
	return destroy(&netlink.SocketID{Source: from.IP, SourcePort: uint16(from.Port), Destination: to.IP, DestinationPort: uint16(to.Port)})
}
