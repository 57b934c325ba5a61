package natsstreaming

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// TestThePageSaysWhatTheServersSay sets what each row of the page's table of
// guarantees says, and asks running servers.
func TestThePageSaysWhatTheServersSay(t *testing.T) {
	for _, c := range Definition().Confirmations {
		t.Run(c.When, func(t *testing.T) {
			nodes, settings := 1, map[string]string{}
			for setting := range strings.SplitSeq(c.When, ", ") {
				name, value, _ := strings.Cut(setting, ": ")
				if name == "replication" {
					nodes = int(value[0] - '0')
					continue
				}
				settings[strings.TrimPrefix(name, driver.ServerPrefix)] = value
			}
			s := served.Up(t, Definition(), nodes, served.With{Settings: settings})
			x := open(t, driver.Run{ID: "page"}, s.Options)
			if err := x.Declare(t.Context(), driver.Destination{Name: "d", Partitions: 1, Replicas: nodes}); err != nil {
				t.Fatal(err)
			}
			f, err := x.Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Confirms, f.Confirms); diff != "" {
				t.Errorf("confirms (-page +servers):\n%s", diff)
			}
			if f.Name != "nats-streaming-server" || f.Version != "0.25.6" || f.Nodes != nodes {
				t.Errorf("facts of %s %s, %d nodes", f.Name, f.Version, f.Nodes)
			}
		})
	}
}

// TestWhatIsNotToldIsNotClaimed leaves out what the guarantee is read from.
func TestWhatIsNotToldIsNotClaimed(t *testing.T) {
	three := served.Up(t, Definition(), 3, served.With{Settings: map[string]string{"file-sync": "true", "cluster-sync": "true"}})
	alone := start(t, "-store", "file", "-dir", t.TempDir(), "-clustered", "-cluster_bootstrap", "-cluster_node_id", "a", "-cluster_log_path", t.TempDir())
	for _, tc := range []struct {
		name    string
		options map[string][]string
		want    driver.Confirms
	}{
		{"no monitoring address", map[string][]string{"address": three.Address, "cluster-id": {"weir"}}, driver.Confirms{Guarantee: driver.Received}},
		{
			"one of three",
			map[string][]string{"address": three.Address, "cluster-id": {"weir"}, "monitor": three.Options["monitor"][:1]},
			driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS},
		},
		{
			"two of three are a quorum",
			map[string][]string{"address": three.Address, "cluster-id": {"weir"}, "monitor": three.Options["monitor"][1:]},
			driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS},
		},
		{
			"all of three, which sync: no endpoint says so", three.Options,
			driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS},
		},
		{"a cluster of one", alone.options(), driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
	} {
		f, err := open(t, driver.Run{ID: "untold"}, tc.options, "d").Facts(t.Context())
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, f.Confirms); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if !strings.HasPrefix(f.Settings["file_sync"], "unknown") {
			t.Errorf("%s: file_sync %q", tc.name, f.Settings["file_sync"])
		}
	}
}
