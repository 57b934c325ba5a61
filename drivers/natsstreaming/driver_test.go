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

// quiet is short: over loopback what should not come would come in microseconds.
const quiet = 60 * time.Millisecond

// offset is the sequence number of the n-th message of a channel.
func offset(_, _ string, n int) (string, error) { return strconv.Itoa(n + 1), nil }

// The runs follow one another: each looks for goroutines that are left.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, nodes int, settings map[string]string, options map[string][]string) {
		s := served.Up(t, Definition(), nodes, served.With{Settings: settings})
		// A refused message comes again after it.
		s.Options["ack-wait"] = []string{"1s"}
		s.Options["session-ping-interval"] = []string{"1s"}
		for k, v := range options {
			if s.Options[k] = v; len(v) == 0 {
				delete(s.Options, k)
			}
		}
		// A cluster has every channel on each of its nodes, and takes no other
		// number of replicas. The suite asks for 2: for one that cannot be had.
		def := Definition()
		def.Capabilities = (&Config{Monitor: s.Options["monitor"]}).Narrow(def.Capabilities)
		h := drivertest.Harness{
			Quiet: quiet, Options: s.Options, At: s.At, Cut: s.Restart, Stall: s.Stall, Offset: offset, Allocs: 22, Expect: 33,
		}
		if nodes == 1 && settings["store"] != "memory" {
			h.Kill = s.Kill
			h.Expect++
		}
		drivertest.Run(t, def, h)
	}
	t.Run("file", func(t *testing.T) { conform(t, 1, nil, nil) })
	t.Run("memory", func(t *testing.T) { conform(t, 1, map[string]string{"store": "memory"}, nil) })
	t.Run("no monitoring address", func(t *testing.T) {
		conform(t, 1, map[string]string{"file-sync": "false"}, map[string][]string{"monitor": nil})
	})
	t.Run("three nodes", func(t *testing.T) { conform(t, 3, nil, nil) })
}
