package artemis

import (
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the server of tests that leave it as it was.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) {
	served.Main(Definition())
	goleak.VerifyTestMain(shared.Around(m))
}

// The runs follow one another: each looks for goroutines that are left.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, nodes int, options map[string][]string) {
		s := shared.Up(t, nodes)
		maps.Copy(s.Options, options)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, At: s.At, Cut: s.Restart, Stall: s.Stall, Nodes: nodes, Expect: 29,
		})
	}
	t.Run("durable", func(t *testing.T) { conform(t, 1, nil) })
	t.Run("not durable, sent settled", func(t *testing.T) {
		conform(t, 1, map[string][]string{"durable": {"no"}, "confirm": {"no"}})
	})
	t.Run("a pair", func(t *testing.T) { conform(t, 2, nil) })
}
