package jetstream

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/natsd"
)

// TestThePageSaysWhatTheServersSay sets what each row of the page's table of
// guarantees says, and asks running servers.
func TestThePageSaysWhatTheServersSay(t *testing.T) {
	t.Parallel()
	// What a row needs of the servers; the rest is options of the client.
	rows := map[natsd.Options][]driver.Confirmation{}
	for _, c := range Definition().Confirmations {
		o := natsd.Options{Nodes: 1}
		if strings.Contains(c.When, "replication: 2 to 5") {
			o.Nodes = 3
		}
		o.SyncAlways = strings.Contains(c.When, "server.sync-always: true")
		rows[o] = append(rows[o], c)
	}
	if len(rows) != 4 {
		t.Errorf("the rows need %d kinds of servers; want 4", len(rows))
	}
	for o, confirmations := range rows {
		s := natstest.Start(t, o)
		for _, c := range confirmations {
			t.Run(c.When, func(t *testing.T) {
				options := map[string]string{}
				d := driver.Destination{Name: "d", Partitions: 1, Replicas: o.Nodes}
				for setting := range strings.SplitSeq(c.When, ", ") {
					name, value, _ := strings.Cut(setting, ": ")
					if name != "replication" {
						options[name] = value
					} else if value != "1" && value != "2 to 5" {
						t.Fatalf("replication %q", value)
					}
				}
				f, err := open(t, s, options, d).Facts(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.Confirms, f.Confirms); diff != "" {
					t.Errorf("confirms (-page +servers):\n%s", diff)
				}
			})
		}
	}
}
