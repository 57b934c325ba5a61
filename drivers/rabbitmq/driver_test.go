package rabbitmq

import (
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

func TestMain(m *testing.M) {
	served.Main(Definition())
	goleak.VerifyTestMain(m)
}

// The runs follow one another: each looks for goroutines that are left.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, nodes int, options map[string][]string) {
		s := served.Up(t, Definition(), nodes)
		maps.Copy(s.Options, options)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Nodes: nodes, Cut: s.Restart, Stall: s.Stall, Expect: 31,
		})
	}
	t.Run("classic", func(t *testing.T) { conform(t, 1, nil) })
	t.Run("quorum", func(t *testing.T) { conform(t, 1, map[string][]string{"queue": {quorum}, "exchange": {topic}}) })
	t.Run("transient", func(t *testing.T) {
		conform(t, 1, map[string][]string{"delivery-mode": {transient}, "exchange": {direct}})
	})
	t.Run("three nodes", func(t *testing.T) { conform(t, 3, nil) })
}
