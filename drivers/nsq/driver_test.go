package nsq

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

func TestMain(m *testing.M) {
	served.Main(Definition())
	// go-nsq's Producer leaks a connection if an answer arrives while it stops: its reader passes
	// the answer to a router that has ended, and its writer waits for the reader. A connection
	// leaked for another reason still has a reader waiting for the network, which is detected.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/nsqio/go-nsq.(*Producer).onConnResponse"),
		goleak.IgnoreTopFunction("github.com/nsqio/go-nsq.(*Conn).writeLoop"),
	)
}

// quietTime is longer than nsqd buffers messages for a consumer in these runs.
const quietTime = 100 * time.Millisecond

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, nodes int, settings map[string]string, options map[string][]string) {
		s := served.Up(t, Definition(), nodes, served.With{Settings: settings})
		s.Options["output-buffer-timeout"] = []string{"25ms"}
		for k, v := range options {
			s.Options[k] = v
		}
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: quietTime, Options: s.Options, Nodes: nodes, Cut: s.Restart, Kill: s.Kill, Stall: s.Stall, Allocs: 24, Expect: 31,
		})
	}
	t.Run("memory", func(t *testing.T) { conform(t, 1, nil, nil) })
	t.Run("disk", func(t *testing.T) { conform(t, 1, map[string]string{"mem-queue-size": "0"}, nil) })
	t.Run("ephemeral topics", func(t *testing.T) { conform(t, 1, nil, map[string][]string{"topics": {ephemeral}}) })
	t.Run("ephemeral channels", func(t *testing.T) { conform(t, 1, nil, map[string][]string{"channels": {ephemeral}}) })
	t.Run("three servers through nsqlookupd", func(t *testing.T) {
		conform(t, 3, map[string]string{"discovery": "lookupd"}, nil)
	})
	t.Run("three servers", func(t *testing.T) { conform(t, 3, nil, nil) })
}
