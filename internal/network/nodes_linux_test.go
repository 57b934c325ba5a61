package network

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
)

// answering listens in a node and answers each connection with the node's number.
func answering(t *testing.T, n Node) string {
	t.Helper()
	var l net.Listener
	must.Do(t, within(n.Space, func() (err error) {
		l, err = net.Listen("tcp4", n.Address+":0")
		return err
	}))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(c, n.Number)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// reaches reports whether an address answers from the calling thread's namespace.
func reaches(address string) bool {
	d := net.Dialer{Timeout: 300 * time.Millisecond}
	c, err := d.Dial("tcp4", address)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
	n, _ := c.Read(make([]byte, 1))
	return n == 1
}

func TestNodesReachEachOtherUntilCut(t *testing.T) {
	err := linked(t, Spec{Nodes: 3}, func(l *Link) {
		nodes := l.Nodes()
		if len(nodes) != 3 {
			t.Fatalf("nodes: %+v", nodes)
		}
		var at []string
		for _, n := range nodes {
			at = append(at, answering(t, n))
		}
		// Who reaches which node: one line for the clients and one for each node.
		matrix := func() (text string) {
			line := func() {
				for _, a := range at {
					if reaches(a) {
						text += "x"
					} else {
						text += "-"
					}
				}
				text += " "
			}
			line()
			for _, n := range nodes {
				must.Do(t, within(n.Space, func() error { line(); return nil }))
			}
			return text[:len(text)-1]
		}
		for _, x := range []struct {
			name  string
			pairs []Pair
			want  string
		}{
			{"none", nil, "xxx xxx xxx xxx"},
			{"clients from node 2", []Pair{{ClientAddress, NodeAddress(2)}}, "x-x xxx xxx xxx"},
			{"node 1 from node 3", []Pair{{NodeAddress(3), NodeAddress(1)}}, "xxx xx- xxx -xx"},
			{"node 1 from all", []Pair{{ClientAddress, NodeAddress(1)}, {NodeAddress(1), NodeAddress(2)}, {NodeAddress(1), NodeAddress(3)}}, "-xx x-- -xx -xx"},
			{"none again", nil, "xxx xxx xxx xxx"},
		} {
			must.Do(t, l.Sever(x.pairs))
			if got := matrix(); got != x.want {
				t.Errorf("severed %s: %s; want %s", x.name, got, x.want)
			}
		}
		// A name lookup fails at once instead of waiting for an answer.
		must.Do(t, within(nodes[0].Space, func() error {
			if _, err := net.Dial("udp4", "192.0.2.1:53"); !errors.Is(err, syscall.ENETUNREACH) {
				t.Errorf("a node sends to a server outside: %v", err)
			}
			return nil
		}))
		if err := l.Sever([]Pair{{"x", ClientAddress}}); err == nil {
			t.Error("what is not an address was severed")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
