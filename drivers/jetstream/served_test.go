//go:build systems

package jetstream

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// servedMain makes this process one that installs, starts or guards servers where
// it was started as one.
func servedMain() { served.Main(Definition()) }

// The runs follow one another: each looks for goroutines that are left.
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

// TestRealServersGiveTheGuarantees asks real servers, which do not tell their
// clients whether they sync, but at their monitoring addresses.
func TestRealServersGiveTheGuarantees(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   int
		sync    string
		storage string
		want    driver.Confirms
	}{
		{"memory", 1, "false", "memory", driver.Confirms{Guarantee: driver.Received, Stable: driver.StableNone}},
		{"file", 1, "false", "file", driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{"file, synced", 1, "true", "file", driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{"three copies", 3, "false", "file", driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS}},
		{"three copies, synced", 3, "true", "file", driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := served.Up(t, Definition(), c.nodes, served.With{Settings: map[string]string{"sync-always": c.sync}})
			s.Options["storage"] = []string{c.storage}
			conn := openWith(t, s.Options, driver.Destination{Name: "d", Partitions: 1, Replicas: c.nodes})
			f, err := conn.Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, f.Confirms); diff != "" {
				t.Errorf("confirms (-want +got):\n%s", diff)
			}
			if f.Nodes != c.nodes {
				t.Errorf("%d nodes; want %d", f.Nodes, c.nodes)
			}
		})
	}
}
