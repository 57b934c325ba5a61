package jetstream

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/natsd"
	"github.com/weirmq/weir/internal/needs"
)

func TestMain(m *testing.M) {
	natstest.Main()
	servedMain()
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback, an unexpected message would arrive within microseconds.
const quiet = 60 * time.Millisecond

// sequence returns the offset of a stream's n-th message; the first has 1.
func sequence(_, _ string, n int) (string, error) { return strconv.Itoa(n + 1), nil }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	t.Run("file, settlements confirmed", func(t *testing.T) {
		s := natstest.Start(t, natsd.Options{})
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet:   quiet,
			Options: map[string][]string{"address": s.Address, "ack-confirm": {"true"}},
			Cut:     s.Restart,
			Allocs:  60,
			Expect:  34,
			Stall:   s.Stall,
			Offset:  sequence,
		})
	})
	t.Run("memory, settlements not confirmed", func(t *testing.T) {
		needs.Time(t)
		s := natstest.Start(t, natsd.Options{})
		def := Definition()
		def.Capabilities.SettleConfirmed = false
		drivertest.Run(t, def, drivertest.Harness{
			Quiet:   quiet,
			Options: map[string][]string{"address": s.Address, "storage": {"memory"}},
			Expect:  31,
			Stall:   s.Stall,
			Offset:  sequence,
			Waive: map[string]string{
				"LostConnectionReported": "a restarted server has no streams in memory; the run with file storage covers it",
			},
		})
	})
	t.Run("the client's own publisher", func(t *testing.T) {
		needs.Time(t)
		s := natstest.Start(t, natsd.Options{})
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet:   quiet,
			Options: map[string][]string{"address": s.Address, "ack-confirm": {"true"}, "client-path": {byVendor}},
			Cut:     s.Restart,
			Expect:  33,
			Stall:   s.Stall,
			Offset:  sequence,
		})
	})
	t.Run("three nodes", func(t *testing.T) {
		needs.Time(t)
		s := natstest.Start(t, natsd.Options{Nodes: 3})
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet:   quiet,
			Options: map[string][]string{"address": s.Address, "ack-confirm": {"true"}},
			Nodes:   3,
			Offset:  sequence,
			Expect:  31,
			Waive: map[string]string{
				"LostConnectionReported": "the three nodes live in one process; the run on one server covers it",
				"BacklogIsAsked":         "the three nodes live in one process, which cannot be stopped; the run on one server covers it",
			},
		})
	})
}
