package natsstreaming

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
)

func TestPageGuaranteesMatchServers(t *testing.T) {
	served.Guarantees(t, Definition(), nil, "", "replicated: replication: 2 or more")
}

// TestUnreportedGuaranteeIsNotClaimed omits the sources of the guarantee.
func TestUnreportedGuaranteeIsNotClaimed(t *testing.T) {
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
			"all of three, which sync: no endpoint says so",
			map[string][]string{"address": three.Address, "cluster-id": {"weir"}, "monitor": three.Options["monitor"]},
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
