package natsstreaming

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/served"
)

func TestMain(m *testing.M) {
	natstest.Main()
	served.Main(Definition())
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback, an unexpected message would arrive within microseconds.
const quiet = 60 * time.Millisecond

// offset returns the sequence number of a channel's n-th message.
func offset(_, _ string, n int) (string, error) { return strconv.Itoa(n + 1), nil }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, nodes int, settings map[string]string, options map[string][]string) {
		s := served.Up(t, Definition(), nodes, served.With{Settings: settings})
		// A rejected message is redelivered after it.
		s.Options["ack-wait"] = []string{"1s"}
		s.Options["session-ping-interval"] = []string{"1s"}
		for k, v := range options {
			if s.Options[k] = v; len(v) == 0 {
				delete(s.Options, k)
			}
		}
		// A cluster has every channel on all nodes, and accepts no other number of replicas. The
		// suite requests 2, as an impossible number.
		h := drivertest.Harness{
			Quiet: quiet, Options: s.Options, At: s.At, Cut: s.Restart, Stall: s.Stall, Offset: offset, Allocs: 22, Expect: 33,
		}
		if nodes == 1 && settings["store"] != "memory" {
			h.Kill = s.Kill
			h.Expect++
		}
		drivertest.Run(t, Definition(), h)
	}
	t.Run("file", func(t *testing.T) { conform(t, 1, nil, nil) })
	t.Run("memory", func(t *testing.T) { conform(t, 1, map[string]string{"store": "memory"}, nil) })
	t.Run("no monitoring address", func(t *testing.T) {
		conform(t, 1, map[string]string{"file-sync": "false"}, map[string][]string{"monitor": nil})
	})
	t.Run("three nodes", func(t *testing.T) { conform(t, 3, nil, nil) })
}
