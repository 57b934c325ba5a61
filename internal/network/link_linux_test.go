package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// TestMain lets the test binary also play a guard and a link.
func TestMain(m *testing.M) {
	if code, ok := guard.Main(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 3 && os.Args[1] == "internal" {
		if err := Main(context.Background(), os.Args[3:], os.Stdout); err != nil {
			Fail(os.Stdout, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// possible skips the test if the host does not permit a network.
func possible(t *testing.T) {
	t.Helper()
	needs.Time(t)
	if err := Check(); err != nil {
		needs.Host(t, "tun", err)
	}
}

// linked calls f on a thread in the clients' namespace of a link, and returns the error of creating
// it. It checks that the host's network is unchanged afterwards.
func linked(t *testing.T, spec Spec, f func(*Link)) error {
	t.Helper()
	possible(t)
	before := hostNetwork(t)
	self := must.Get(os.Executable())(t)
	made := apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := loopback(); err != nil {
			return err
		}
		l, err := Start(t.Context(), self, spec)
		if err != nil {
			return err
		}
		f(l)
		return l.Stop(t.Context())
	})
	if after := hostNetwork(t); after != before {
		t.Errorf("the host's network was\n%s\nand is\n%s", before, after)
	}
	return made
}

// hostNetwork returns the parts of the host's network that might be changed.
func hostNetwork(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{"/proc/net/dev", "/proc/net/route", "/proc/net/fib_trie"} {
		b := must.Get(os.ReadFile(path))(t)
		for line := range strings.Lines(string(b)) {
			name, _, _ := strings.Cut(line, ":") // counters change
			all.WriteString(name + "\n")
		}
	}
	return all.String()
}

// sockets opens one socket at each end.
func sockets(t *testing.T, l *Link) (clients, system net.PacketConn) {
	t.Helper()
	clients, err := listen(ClientAddress)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = clients.Close() })
	err = l.Within(func() error {
		system, err = listen(SystemAddress)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = system.Close() })
	return clients, system
}

func TestLinkAppliesConditionsPerDirection(t *testing.T) {
	const ms = time.Millisecond
	spec := Spec{
		To:   Conditions{Latency: 20 * ms, Loss: 0.1, Duplicate: 0.1},
		From: Conditions{Latency: 5 * ms, Bandwidth: 10_000_000},
		Seed: 3,
	}
	does := func(l *Link) {
		n := l.Network()
		if rtt := time.Duration(n.RoundTripNS); rtt < 25*ms {
			t.Errorf("measured a round trip of %v; want 25ms or more", rtt)
		}
		if n.ToSystem.Measured.Loss == nil || n.FromSystem.Measured.BitsPerS == nil || n.BareRoundTripNS <= 0 || n.PacketsPerS <= 0 {
			t.Errorf("measured %+v", n)
		}
		clients, system := sockets(t, l)
		const count = 2000
		all, err := train{n: count, payload: probeSize, gap: 100 * time.Microsecond, twice: true}.send(clients, system, 50*ms)
		if err != nil {
			t.Error(err)
			return
		}
		m := measured{shares: count}
		m.count(all, 0)
		around(t, "lost", int64(m.gone), count, 0.1)
		around(t, "duplicated", int64(m.duplicated), count-m.gone, 0.1)
		for _, a := range all {
			if a.took < 20*ms {
				t.Fatalf("a packet took %v, less than the latency", a.took)
			}
		}
		to, from, err := l.Carried()
		if err != nil || to.Packets != count || to.Lost != int64(m.gone) || from.Packets != 0 || to.Overflow != 0 {
			t.Errorf("carried %+v and %+v, %v; want %d packets, %d lost", to, from, err, count, m.gone)
		}
	}
	// On a host that is busy for a second the link is not as asked, and weir reports it.
	var err error
	for range 5 {
		if err = linked(t, spec, does); !errors.Is(err, ErrNotAsAsked) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPartitionOfALinkEnds(t *testing.T) {
	must.Do(t, linked(t, Spec{}, func(l *Link) {
		clients, system := sockets(t, l)
		arrive := func(from, to net.PacketConn) int {
			all, err := train{n: 20, payload: probeSize}.send(from, to, 0)
			if err != nil {
				t.Error(err)
			}
			return len(all)
		}
		for _, x := range []struct {
			to, from       bool
			wantTo, wantFr int
		}{{true, false, 0, 20}, {false, true, 20, 0}, {true, true, 0, 0}, {false, false, 20, 20}} {
			if err := l.Cut(x.to, x.from); err != nil {
				t.Error(err)
			}
			if to, from := arrive(clients, system), arrive(system, clients); to != x.wantTo || from != x.wantFr {
				t.Errorf("cut %v and %v: %d and %d of 20 arrived; want %d and %d", x.to, x.from, to, from, x.wantTo, x.wantFr)
			}
		}
	}))
}

func TestNetworkOffTargetIsRejected(t *testing.T) {
	err := linked(t, Spec{To: Conditions{Bandwidth: 100 * MostBits}}, func(*Link) { // more than any host can carry
		t.Error("a link of 1 Tbit/s was made")
	})
	if !errors.Is(err, ErrNotAsAsked) || !strings.Contains(fmt.Sprint(err), "bandwidth: asked for 1000 Gbit/s, measured ") {
		t.Errorf("the error is %v", err)
	}
}

func TestLinkedServersReachOnlyPeersAndClients(t *testing.T) {
	must.Do(t, linked(t, Spec{}, func(l *Link) {
		var out []byte
		err := l.Within(func() error {
			var err error
			out, err = exec.Command("cat", "/proc/net/dev").Output()
			return err
		})
		if err != nil || strings.Count(string(out), ":") != 2 || !strings.Contains(string(out), systemDevice) || !strings.Contains(string(out), "lo:") {
			t.Errorf("the servers' interfaces: %v\n%s", err, out)
		}
	}))
}

// TestLinkInUserNamespace runs the previous test in a process that is root only in its own user
// namespace, as with unshare --map-root-user.
func TestLinkInUserNamespace(t *testing.T) {
	possible(t)
	self := must.Get(os.Executable())(t)
	if out, err := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "true").CombinedOutput(); err != nil {
		needs.Host(t, "usertun", fmt.Sprintf("%v %s", err, out))
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--map-root-user", self, "-test.v", "-test.run", "^TestLinkedServersReachOnlyPeersAndClients$")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP") {
		needs.Host(t, "usertun", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}
