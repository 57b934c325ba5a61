//go:build systems

package nats

import (
	"maps"
	"testing"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// servedMain makes this process install, start or guard servers if it was started for that.
func servedMain() { served.Main(Definition()) }

// Sequential: each run checks for leaked goroutines.
func TestConformanceOfRealServers(t *testing.T) {
	for _, run := range []struct {
		name, confirm string
		nodes         int
	}{
		{"one server", confirmNone, 1},
		{"three servers, flushed", confirmFlush, 3},
	} {
		t.Run(run.name, func(t *testing.T) {
			s := served.Up(t, Definition(), run.nodes)
			options := maps.Clone(s.Options)
			options["confirm"] = []string{run.confirm}
			drivertest.Run(t, Definition(), drivertest.Harness{
				Quiet: quiet, Options: options, Cut: s.Restart, Stall: s.Stall, Nodes: run.nodes, Expect: 31,
			})
		})
	}
}

func TestRealServersGiveTheGuarantees(t *testing.T) { served.Guarantees(t, Definition(), nil, "") }
