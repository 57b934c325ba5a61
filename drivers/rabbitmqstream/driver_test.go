package rabbitmqstream

import (
	"strconv"
	"testing"
	"time"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	harness := func(s *served.System, nodes int) drivertest.Harness {
		return drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Nodes: nodes, Cut: s.Restart, Stall: s.Stall, Allocs: 100, Expect: 34,
			Existing: func(run, d string) string { return names.Join(longest, "weir", run, d) },
			Offset:   func(_, _ string, n int) (string, error) { return strconv.Itoa(n), nil },
			Hold:     func(run, d string) (func(), error) { return trial.HoldRabbit(s.Pids, names.Join(200, "weir", run, d)) },
		}
	}
	t.Run("one node", func(t *testing.T) { drivertest.Run(t, Definition(), harness(shared.Up(t, 1), 1)) })
	t.Run("three nodes", func(t *testing.T) {
		s := served.Up(t, Definition(), 3)
		h := harness(s, 3)
		h.Cut, h.Expect = nil, 33
		h.Waive = map[string]string{"LostConnectionReported": "to restart three nodes takes half a minute; one node shows it, and below a leader dies"}
		drivertest.Run(t, Definition(), h)
		t.Run("a leader dies", func(t *testing.T) { aLeaderDies(t, s) }) // last: the leader does not come back
	})
}
