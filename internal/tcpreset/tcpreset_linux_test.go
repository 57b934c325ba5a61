package tcpreset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// pair is a connection over loopback.
type pair struct{ client, server net.Conn }

// connect connects to l and transfers the given number of bytes each way.
func connect(t *testing.T, l net.Listener, sent, received int) pair {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	var p pair
	p.client = must.Get(net.Dial("tcp", l.Addr().String()))(t)
	p.server = <-accepted
	t.Cleanup(func() { _, _ = p.client.Close(), p.server.Close() })
	for _, x := range []struct {
		from, to net.Conn
		n        int
	}{{p.client, p.server, sent}, {p.server, p.client, received}} {
		must.Get(x.from.Write(bytes.Repeat([]byte{1}, x.n)))(t)
		must.Get(io.ReadFull(x.to, make([]byte, x.n)))(t)
	}
	return p
}

// broken reports whether a connection is broken, as seen from one end.
func broken(t *testing.T, c net.Conn) bool {
	t.Helper()
	must.Do(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ECONNABORTED) {
		t.Errorf("the connection ends with %v; want a reset", err)
	}
	return true
}

func listenAt(t *testing.T) net.Listener {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestOnlyMatchingConnectionsAreReset(t *testing.T) {
	if err := Check(); err != nil {
		needs.Host(t, "resets", err)
	}
	self := []int{os.Getpid()}
	for _, c := range []struct {
		group                            Group
		produces, consumes, both, silent bool // whether it is reset
		byAddress                        bool // the server's
	}{
		{Clients, true, true, true, true, false},
		{Producers, true, false, true, false, false},
		{Consumers, false, true, true, false, false},
		{Consumers, false, true, true, false, true},
	} {
		t.Run(fmt.Sprintf("%s, by address: %t", c.group, c.byAddress), func(t *testing.T) {
			l := listenAt(t)
			all := map[string]struct {
				pair
				reset bool
			}{
				"a producer's":       {connect(t, l, 100_000, 2_000), c.produces},
				"a consumer's":       {connect(t, l, 2_000, 100_000), c.consumes},
				"one of both":        {connect(t, l, 50_000, 100_000), c.both},
				"one of no messages": {connect(t, l, 100, 100), c.silent},
			}
			reset := func() (int, error) { return Reset(c.group, self, self) }
			if c.byAddress {
				reset = func() (int, error) {
					return ResetTo(c.group, self, []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())})
				}
			}
			n := must.Get(reset())(t)
			want := 0
			for name, x := range all {
				if got := broken(t, x.client); got != x.reset {
					t.Errorf("%s is broken: %t; want %t", name, got, x.reset)
				}
				if x.reset {
					want++
					if !broken(t, x.server) {
						t.Errorf("the server does not see that %s is broken", name)
					}
				}
			}
			if n < want { // parallel tests may have connections of their own
				t.Errorf("%d connections reset; want %d", n, want)
			}
		})
	}
}

func TestOtherConnectionsAreKept(t *testing.T) {
	if err := Check(); err != nil {
		needs.Host(t, "resets", err)
	}
	p := connect(t, listenAt(t), 10_000, 10_000)
	for name, pids := range map[string][2][]int{
		"clients of another process": {{1}, {os.Getpid()}},
		"servers of another process": {{os.Getpid()}, {os.Getppid()}},
		"nobody":                     {},
	} {
		if n, err := Reset(Clients, pids[0], pids[1]); err != nil || n != 0 {
			t.Errorf("%s: %d reset, %v; want none", name, n, err)
		}
	}
	port := p.client.RemoteAddr().(*net.TCPAddr).AddrPort().Port()
	if ports := Ports([]int{os.Getpid()}); !slices.Contains(ports, port) {
		t.Errorf("this process listens at %v; want %d among them", ports, port)
	}
	for name, at := range map[string]netip.AddrPort{
		"another host's port": netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port),
		"another port":        netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port+1),
	} {
		if n, err := ResetTo(Clients, []int{os.Getpid()}, []netip.AddrPort{at}); err != nil || n != 0 {
			t.Errorf("%s: %d reset, %v; want none", name, n, err)
		}
	}
	if broken(t, p.client) {
		t.Error("a connection of others is reset")
	}
}

func TestParseProcNetLine(t *testing.T) {
	for line, want := range map[string]uint16{
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0": 8080,
		"   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000 100 0 0 10 0": 0,
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode":                    0,
		"": 0,
	} {
		if port, inode, ok := listener(line); port != want && ok || ok != (want != 0) || ok && inode != 4711 {
			t.Errorf("%q: port %d of socket %d, %t; want port %d", line, port, inode, ok, want)
		}
	}
}
