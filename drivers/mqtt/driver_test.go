package mqtt

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	for _, test := range []struct {
		version, qos, shared string
		expect               int
	}{
		{"5", "0", "yes", 28},
		{"5", "1", "yes", 29},
		{"5", "2", "yes", 29},
		{"5", "1", "no", 28},
		{"3.1.1", "0", "yes", 28},
		{"3.1.1", "1", "yes", 29},
		{"3.1.1", "2", "yes", 29},
	} {
		t.Run(test.version+", QoS "+test.qos+", shared "+test.shared, func(t *testing.T) {
			s := shared.Up(t, 1)
			s.Options["version"], s.Options["qos"], s.Options["shared"] = []string{test.version}, []string{test.qos}, []string{test.shared}
			drivertest.Run(t, Definition(), drivertest.Harness{
				Quiet: 60 * time.Millisecond, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Expect: test.expect,
			})
		})
	}
}
