//go:build unix

package kmq

import (
	"maps"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the broker of all tests but those that set it up otherwise.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) {
	served.Main(Definition())
	goleak.VerifyTestMain(shared.Around(m))
}

// The runs follow one another: each looks for goroutines that are left.
func TestConformance(t *testing.T) {
	// What is refused comes again soon: longer than anything is settled in, on a
	// host that is busy.
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

// offset says where the n-th message of a topic just made is.
func offset(_, _ string, n int) (string, error) { return strconv.Itoa(n), nil }
