package network

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/result"
)

// Names of the two devices.
const (
	clientDevice = "weir-clients"
	systemDevice = "weir-system"
)

// socketOf returns the address on which the link with the given folder takes orders: an abstract
// socket, which is not a file.
func socketOf(dir string) string { return "@" + dir }

// Main is the process that Start starts: `weir internal network DIR SPEC`. args are the arguments
// after network. It creates the servers' namespace and a device in each namespace, measures, prints
// one line on stdout once the network is as asked, and carries packets until ctx ends or SIGTERM
// arrives; then it returns nil.
func Main(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("network: wants a folder and a specification")
	}
	var spec Spec
	if err := json.Unmarshal([]byte(args[1]), &spec); err != nil {
		return fmt.Errorf("network: reading the specification: %w", err)
	}
	s, err := newSpace()
	if err != nil {
		return err
	}
	l, err := join(s, spec.Seed)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	for _, r := range []*relay{l.to, l.from} {
		go func() { failed <- r.run() }()
	}
	socket, err := net.Listen("unix", socketOf(args[0]))
	if err != nil {
		return fmt.Errorf("network: taking orders: %w", err)
	}
	defer func() { _ = socket.Close() }()
	announced := announcement{Space: s.path}
	if announced.Nodes, err = l.addNodes(min(spec.Nodes, MostNodes)); err != nil {
		return err
	}
	if announced.Network, err = l.prove(spec); err != nil {
		return err
	}
	announced.To, announced.From = l.all()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	line, err := json.Marshal(announced)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, readyWord+string(line)); err != nil {
		return err
	}
	go l.obey(socket)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// A joint holds both directions, and a socket for probes at each end.
type joint struct {
	space           *space
	to, from        *relay
	clients, system net.PacketConn
	severed         map[Pair]bool // dropped in that direction
}

// join creates the devices and the sockets.
func join(s *space, seed uint64) (*joint, error) {
	a, b := netip.MustParseAddr(ClientAddress), netip.MustParseAddr(SystemAddress)
	l := &joint{space: s, severed: map[Pair]bool{}}
	clients, err := device(clientDevice, a, b)
	if err != nil {
		return nil, err
	}
	var system int
	err = s.do(func() error {
		if err := loopback(); err != nil {
			return err
		}
		if system, err = device(systemDevice, b, a); err != nil {
			return err
		}
		l.system, err = listen(SystemAddress)
		return err
	})
	if err != nil {
		return nil, err
	}
	if l.clients, err = listen(ClientAddress); err != nil {
		return nil, err
	}
	l.to, l.from = newRelay(clients, system, seed), newRelay(system, clients, seed+1)
	return l, nil
}

// listen opens a socket for probes. Its buffer holds a whole train, so that a busy host's late reads
// do not count as loss.
func listen(address string) (net.PacketConn, error) {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 0)))
	if err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	var refused error
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, trainBytes)
		})
	}
	if err == nil && refused != nil { // root in a user namespace is limited to the host's maximum
		err = c.SetReadBuffer(trainBytes)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making room for probes: %w", err), c.Close())
	}
	return c, nil
}

// trainBytes is the buffer size for a train in the kernel's accounting, some 2 KiB per packet.
const trainBytes = 32 << 20

// attempts is how often a network is measured before it is rejected: a busy host may spoil one
// attempt.
const attempts = 3

// prove measures the link first without and then with the conditions, and returns an error if it is
// not as asked.
func (l *joint) prove(spec Spec) (result.Network, error) {
	var n result.Network
	var err error
	for range attempts {
		if n, err = l.try(spec); !errors.Is(err, ErrNotAsAsked) {
			break
		}
	}
	return n, err
}

// try is one attempt of prove. Both directions are measured at once, except for their bandwidth.
func (l *joint) try(spec Spec) (result.Network, error) {
	none := Conditions{}
	n := result.Network{Means: means}
	bare, err := l.both(&none, &none)
	if err != nil {
		return n, err
	}
	n.BareRoundTripNS = int64(bare[0].at(50) + bare[1].at(50))
	for _, ends := range [][2]net.PacketConn{{l.clients, l.system}, {l.system, l.clients}} {
		all, err := train{n: 5000, payload: 1000 - heads}.send(ends[0], ends[1], 0)
		if err != nil {
			return n, err
		}
		if p := bits(all, 1000) / 8000; n.PacketsPerS == 0 || p < n.PacketsPerS {
			n.PacketsPerS = p
		}
	}
	m, err := l.both(&spec.To, &spec.From)
	if err != nil {
		return n, err
	}
	n.ToSystem, n.FromSystem = spec.To.direction(&m[0]), spec.From.direction(&m[1])
	n.RoundTripNS = int64(m[0].at(50) + m[1].at(50))
	for i, c := range []*Conditions{&spec.To, &spec.From} {
		if err := c.verify(&m[i], &bare[i]); err != nil {
			return n, fmt.Errorf("%w: %s: %w", ErrNotAsAsked, []string{"to-system", "from-system"}[i], err)
		}
	}
	return n, nil
}

// both sets the conditions and measures both directions.
func (l *joint) both(to, from *Conditions) (m [2]measured, err error) {
	l.to.set(*to)
	l.from.set(*from)
	done := make(chan error)
	go func() {
		var err error
		m[0], err = to.measure(l.clients, l.system)
		done <- err
	}()
	var err2 error
	m[1], err2 = from.measure(l.system, l.clients)
	if err := errors.Join(<-done, err2); err != nil {
		return m, fmt.Errorf("measuring the network: %w", err)
	}
	return m, nil
}

// all returns the counts of both directions.
func (l *joint) all() (to, from Counts) {
	to, from = l.to.counts(), l.from.counts()
	to.Overflow += dropped(clientDevice)
	_ = l.space.do(func() error {
		from.Overflow += dropped(systemDevice)
		return nil
	})
	return to, from
}

// obey carries out weir's orders, one connection at a time.
func (l *joint) obey(socket net.Listener) {
	for {
		c, err := socket.Accept()
		if err != nil {
			return // the process is ending
		}
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			var o order
			var a answer
			if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
				a.Error = err.Error()
			}
			if o.Cut != nil {
				l.to.partition(o.Cut.To)
				l.from.partition(o.Cut.From)
			}
			if o.Sever != nil {
				if err := l.cutPairs(*o.Sever); err != nil {
					a.Error = err.Error()
				}
			}
			a.To, a.From = l.all()
			b, _ := json.Marshal(a) // numbers and a string: cannot fail
			if _, err := c.Write(append(b, '\n')); err != nil {
				break
			}
		}
		_ = c.Close()
	}
}

// startLimit is the time limit for creating a network, including the measurement.
func startLimit(s Spec) time.Duration {
	return 30*time.Second + 20*max(s.To.slowest(), s.From.slowest())
}
