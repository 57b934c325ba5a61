package iris

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/needs"
)

// shared holds the nodes of tests that leave them unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// up starts two nodes: a single node waits 10 s before it serves.
func up(t *testing.T) *served.System {
	t.Helper()
	lent(t)
	return shared.Up(t, 2)
}

// lent skips the test if the kernel provides no network namespace.
func lent(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "--net", "true").CombinedOutput(); err != nil {
		needs.Host(t, "hosts", fmt.Sprintf("%v: %s", err, out))
	}
}

// All other tests use two nodes.
func TestOneNodeAndThreeServe(t *testing.T) {
	lent(t)
	for _, nodes := range []int{1, 3} {
		s := served.Up(t, Definition(), nodes, served.With{})
		c, err := trial.Open(t, Definition(), driver.Run{}, s.Options)
		if err != nil {
			t.Fatalf("of %d: %v", nodes, err)
		}
		f, err := c.Facts(t.Context())
		if err != nil || f.Nodes != nodes {
			t.Errorf("of %d: %d nodes, %v", nodes, f.Nodes, err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("of %d: closing: %v", nodes, err)
		}
	}
}

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	for _, test := range []struct {
		pattern string
		expect  int
	}{{patternPublish, 25}, {patternBroadcast, 25}, {patternRequest, 30}, {patternTunnel, 26}} {
		t.Run(test.pattern, func(t *testing.T) {
			s := up(t)
			s.Options["pattern"] = []string{test.pattern}
			def := Definition()
			if test.pattern == patternRequest || test.pattern == patternTunnel {
				s.Options["request-timeout"] = []string{"1s"}
				def.New = func() driver.Config { return &attended{Config: *Definition().New().(*Config)} }
			}
			drivertest.Run(t, def, drivertest.Harness{
				Options: s.Options, Cut: s.Restart, Stall: s.Stall, Nodes: 2, Quiet: 100 * time.Millisecond, Expect: test.expect,
			})
		})
	}
}
