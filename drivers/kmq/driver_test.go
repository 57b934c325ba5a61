//go:build unix

package kmq

import (
	"maps"
	"strconv"
	"testing"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the broker of all tests that do not configure it differently.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	// Rejected messages are redelivered soon, but later than it takes to settle anything on a busy
	// host.
	soon := func(s *served.System) map[string][]string {
		options := maps.Clone(s.Options)
		options["redeliver-after"] = []string{"5s"}
		return options
	}
	t.Run("one broker", func(t *testing.T) {
		s := shared.Up(t, 1)
		drivertest.Run(t, Definition(), drivertest.Harness{Options: soon(s), At: s.At, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Offset: offset, Expect: 32})
	})
	t.Run("three brokers", func(t *testing.T) {
		s := served.Up(t, Definition(), 3)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Options: soon(s), At: s.At, Nodes: 3, Offset: offset, Yields: drivertest.Prefetch, Expect: 30,
			Waive: map[string]string{
				"LostConnectionReported": "the run on one broker covers it, in a third of the time",
				"BacklogIsAsked":         "the run on one broker covers it",
			},
		})
		comesAgain(t, s, 3)
	})
}

// offset returns the offset of the n-th message in a new topic.
func offset(_, _ string, n int) (string, error) { return strconv.Itoa(n), nil }
