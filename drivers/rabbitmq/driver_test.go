package rabbitmq

import (
	"maps"
	"testing"
	"time"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// settled is how old a quorum queue must be before its server is killed. RabbitMQ records the
// queue's processes some time after the declaration; a younger queue is broken after the restart.
const settled = 2 * time.Second

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	on := func(t *testing.T, s *served.System, cut func() error, nodes int, options map[string][]string) {
		maps.Copy(s.Options, options)
		h := drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, At: s.At, Nodes: nodes, Cut: cut, Stall: s.Stall, Allocs: 85, Expect: 31,
		}
		if options["queue"] != nil { // quorum queues have dead letters
			h.Expect++
		}
		if nodes == 1 {
			h.Kill = func() func() error {
				time.Sleep(settled) // as old as a queue must be
				return s.Kill()
			}
			h.Expect++
		}
		drivertest.Run(t, Definition(), h)
	}
	conform := func(t *testing.T, nodes int, options map[string][]string) {
		s := shared.Up(t, nodes)
		on(t, s, s.Restart, nodes, options)
	}
	t.Run("classic", func(t *testing.T) { conform(t, 1, nil) })
	t.Run("quorum", func(t *testing.T) { conform(t, 1, map[string][]string{"queue": {quorum}, "exchange": {topic}}) })
	t.Run("transient", func(t *testing.T) {
		// Other tests use a server that closes connections before it exits.
		s := shared.Up(t, 1)
		on(t, s, s.KillAndRestart, 1, map[string][]string{"delivery-mode": {transient}, "exchange": {direct}})
	})
	t.Run("three nodes", func(t *testing.T) { conform(t, 3, nil) })
	t.Run("RabbitMQ 3", func(t *testing.T) {
		s := served.Up(t, Definition(), 1, served.With{Recipe: "rabbitmq3"})
		on(t, s, s.Restart, 1, nil)
	})
}
