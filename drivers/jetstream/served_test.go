//go:build systems

package jetstream

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
		name    string
		nodes   int
		with    served.With
		options map[string][]string
		expect  int
	}{
		{
			name: "one server", nodes: 1, expect: 33,
			options: map[string][]string{"ack-confirm": {"true"}},
		},
		{
			name: "three servers that sync always", nodes: 3, expect: 33,
			with:    served.With{Settings: map[string]string{"sync-always": "true"}},
			options: map[string][]string{"ack-confirm": {"true"}},
		},
	} {
		t.Run(run.name, func(t *testing.T) {
			s := served.Up(t, Definition(), run.nodes, run.with)
			options := maps.Clone(s.Options)
			maps.Copy(options, run.options)
			drivertest.Run(t, Definition(), drivertest.Harness{
				Quiet: quiet, Options: options, At: s.At, Cut: s.Restart, Stall: s.Stall, Offset: sequence, Nodes: run.nodes, Expect: run.expect,
			})
		})
	}
}

// TestRealServersGiveTheGuarantees uses real servers, which report whether they sync only at their
// monitoring addresses.
func TestRealServersGiveTheGuarantees(t *testing.T) { served.Guarantees(t, Definition(), nil, "") }
