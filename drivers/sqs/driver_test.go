package sqs

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, queue string, order driver.Ordering, expect int) {
		s := shared.Up(t, 1)
		// Without long polling; otherwise each consumer of the suite would end a second late.
		s.Options["queue"], s.Options["wait"], s.Options["receivers"] = []string{queue}, []string{"0s"}, []string{"2"}
		def := Definition()
		def.Capabilities.Ordering = order
		drivertest.Run(t, def, drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Yields: batchMost, Allocs: 1600, Expect: expect,
			// The original shares the message with the dead-letter queue, and deletes it by its
			// last receipt. A consumer there may have created another receipt by then.
			DeadTwice: "ElasticMQ keeps a message that it moved where a consumer receives it from the dead letters at once",
		})
	}
	t.Run(standard, func(t *testing.T) { conform(t, standard, driver.Unordered, 33) })
	t.Run(fifo, func(t *testing.T) { conform(t, fifo, driver.PerKey, 34) })
}
