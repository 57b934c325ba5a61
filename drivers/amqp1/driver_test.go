package amqp1

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
	conform := func(t *testing.T, options map[string][]string) {
		s := shared.Up(t, 1)
		maps.Copy(s.Options, options)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Expect: 29,
		})
	}
	t.Run("durable", func(t *testing.T) { conform(t, nil) })
	t.Run("not durable, sent settled", func(t *testing.T) {
		conform(t, map[string][]string{"durable": {"no"}, "confirm": {"no"}})
	})
	for _, kind := range []string{quorum, classic} {
		t.Run("RabbitMQ 4, "+kind, func(t *testing.T) {
			conformRabbitMQ(t, served.Up(t, Definition(), 1, served.With{Recipe: "rabbitmq4"}), 1, kind)
		})
	}
}

// conformRabbitMQ runs the suite on RabbitMQ 4, with queues of one kind.
func conformRabbitMQ(t *testing.T, s *served.System, nodes int, kind string) {
	t.Helper()
	s.Options["queue-type"] = []string{kind}
	def := Definition()
	c := def.New().(*Config)
	c.Management, c.QueueType = rabbit4, kind
	def.Capabilities = def.Capabilities.With(c)
	drivertest.Run(t, def, drivertest.Harness{
		Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Nodes: nodes, Expect: 29,
	})
}
