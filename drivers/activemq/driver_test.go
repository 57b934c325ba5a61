package activemq

import (
	"maps"
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
	conform := func(t *testing.T, options map[string][]string) {
		s := shared.Up(t, 1)
		maps.Copy(s.Options, options)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Kill: s.Kill, Stall: s.Stall, Allocs: 34, Expect: 32,
			Existing: func(run, d string) string { return names.Join(200, "weir", run, d) },
		})
	}
	t.Run("durable", func(t *testing.T) { conform(t, nil) })
	t.Run("not durable, sent settled", func(t *testing.T) {
		conform(t, map[string][]string{"durable": {"no"}, "confirm": {"no"}})
	})
}
