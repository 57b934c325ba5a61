package liftbridge

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(map[int]string{1: "one node", 3: "three nodes"}[nodes], func(t *testing.T) {
			s := shared.Up(t, nodes)
			drivertest.Run(t, Definition(), drivertest.Harness{
				Quiet: 100 * time.Millisecond, Options: s.Options, Nodes: nodes, Cut: s.Restart, Stall: s.Stall, Expect: 30,
				Existing: func(run, d string) string { return names.Join(200, "weir", run, d) },
			})
		})
	}
}
