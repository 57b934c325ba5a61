package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/proctree"
	"github.com/weirmq/weir/result"
)

// networked skips the test if the host does not support a network.
func networked(t *testing.T) {
	t.Helper()
	needs.Time(t)
	if err := network.Check(); err != nil {
		needs.Host(t, "tun", err)
	}
}

// devices are the network devices of the host.
func devices(t *testing.T) string {
	t.Helper()
	entries := must.Get(os.ReadDir("/sys/class/net"))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// overNetwork calls flown again while the host is too busy to provide the requested network: weir then
// rightly refuses to begin, which is not under test. It returns the last flight and its exit code.
func overNetwork(t *testing.T, flown func() *flight) (*flight, int) {
	t.Helper()
	for try := 1; ; try++ {
		f := flown()
		code := f.fly(t)
		if code != int(Unreachable) || !strings.Contains(f.stderr.String(), "the network is not as asked") || try == 10 {
			return f, code
		}
		t.Logf("attempt %d: %s", try, &f.stderr)
	}
}

// NATS JetStream behind a network: no message is faster than the latency, a partition delays messages, and
// the result has the requested, measured and actual network.
func TestRunUsesRequestedNetwork(t *testing.T) {
	networked(t)
	before := devices(t)
	f, code := overNetwork(t, func() *flight {
		return &flight{args: []string{
			"run", "--latency", "15ms", "--network.from_system", "{latency: 5ms, loss: 1%}", "--partition", "to-system at 500ms for 500ms",
			"--rate", "200/s", "--warmup", "500ms", "--measure", "2s", "--metrics", ":0", "--full", "--out", "r",
		}}
	})
	if code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s", code, &f.stderr)
	}
	saved := must.Get(result.Read(filepath.Join(f.dir, "r")))(t)
	r := saved.Result
	n := r.Network
	if n == nil || n.ToSystem.Asked.LatencyNS != 15e6 || n.FromSystem.Asked.LatencyNS != 5e6 || n.RoundTripNS < 20e6 || n.ToSystem.Carried.Cut == 0 || n.FromSystem.Carried.Packets == 0 {
		t.Fatalf("the network: %+v", n)
	}
	if d := r.Latency.E2E.Response; *d.MinNS < 20e6 {
		t.Errorf("a message took %v from producer to consumer; want 20ms or more", time.Duration(*d.MinNS))
	}
	if d := r.Latency.Send.Service; *d.MinNS < 20e6 {
		t.Errorf("a message was confirmed after %v; want 20ms or more", time.Duration(*d.MinNS))
	}
	if r.Messages.Lost != 0 || r.Messages.Delivered != 400 {
		t.Errorf("%d of 400 messages delivered, %d lost", r.Messages.Delivered, r.Messages.Lost)
	}
	if len(r.Faults) != 1 || r.Faults[0].Do != "partition" || r.Faults[0].UndoneNS == nil || r.Faults[0].Effect == nil || r.Faults[0].Effect.WorstNS == nil || *r.Faults[0].Effect.WorstNS < 400e6 {
		t.Errorf("the partition: %+v", r.Faults)
	}
	for _, want := range []string{"network weir's own link between two TUN devices; round trip ", "partition to-system"} {
		if !strings.Contains(strings.Join(strings.Fields(f.stdout.String()), " "), want) {
			t.Errorf("the table lacks %q:\n%s", want, &f.stdout)
		}
	}
	if after := devices(t); after != before {
		t.Errorf("the host's devices were %s and are %s", before, after)
	}
}

// Requests more than a link can carry.
func TestRunRejectsNetworkOffTarget(t *testing.T) {
	networked(t)
	f := &flight{args: []string{"run", "--target-bw", "10Gbit", "--out", "r"}}
	if code := f.fly(t); code != int(Unreachable) {
		t.Errorf("exit code %d; want %d", code, Unreachable)
	}
	said := f.stderr.String() // a busy host misses more than the bandwidth
	for _, want := range []string{"weir: the network is not as asked: to-system: ", "bandwidth: asked for 10 Gbit/s, measured "} {
		if !strings.Contains(said, want) || strings.Contains(said, "started") {
			t.Errorf("it says\n%s\nwant %s..., and no server", said, want)
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, "r")); !os.IsNotExist(err) {
		t.Errorf("the folder of the result is there: %v", err)
	}
}

// Ends runs in the middle, by Ctrl-C and by SIGKILL.
func TestNetworkIsRemovedAfterRun(t *testing.T) {
	networked(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		before := devices(t)
		var all []int
		f, code := overNetwork(t, func() *flight {
			return &flight{
				args: []string{"run", "--latency", "5ms", "--rate", "100/s", "--measure", "60s", "--out", "r"},
				on:   "measuring, ", // and not "measuring it", the network
				then: func(p *os.Process) {
					all = proctree.Below(proctree.All(proctree.Host()), p.Pid)
					_ = p.Signal(signal)
				},
			}
		})
		want := int(Interrupted)
		if signal == syscall.SIGKILL {
			want = -1
		}
		if code != want {
			t.Errorf("%v: exit code %d; want %d\n%s", signal, code, want, &f.stderr)
		}
		if len(all) < 4 { // a guard and what it guards, for the link and for the server
			t.Errorf("%v: %d processes of the run were seen", signal, len(all))
		}
		allGone(t, all)
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.dir), "temp", "weir-*")); len(left) > 0 {
			t.Errorf("%v: %v are left", signal, left)
		}
		if after := devices(t); after != before {
			t.Errorf("%v: the host's devices were %s and are %s", signal, before, after)
		}
	}
}

// allGone waits for the end of processes.
func allGone(t *testing.T, pids []int) {
	t.Helper()
	must.Until(t, fmt.Sprint("the end of the processes ", pids), func() bool {
		alive := proctree.All(proctree.Host())
		return !slices.ContainsFunc(pids, func(pid int) bool { p, ok := alive[pid]; return ok && !p.Dead() })
	})
}
