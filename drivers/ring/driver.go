// Package ring is the driver of a lock-free ring buffer: producers and consumers
// are goroutines of one process, and the queue between them is an array that
// they go round.
//
// The ring is Dmitry Vyukov's bounded queue for many producers and many
// consumers (https://www.1024cores.net/home/lock-free-algorithms/queues/bounded-mpmc-queue):
// one compare-and-swap to claim a cell, one store to pass it on. With padding,
// the two positions and every cell's sequence number lie on cache lines of their
// own; without, they share lines as they would in a plain array. A payload is
// copied into its cell and out of it again.
//
// The ring wakes no goroutine. One that finds it full or empty looks again 64 times, then
// 64 times more with a runtime.Gosched before each look, and then sleeps before
// each look, for 32 µs at first and twice as long every time up to 1 ms. An idle
// consumer therefore costs little, and the first message after a pause may wait
// for a millisecond. A blocked Publish ends when ctx does.
package ring

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/local"
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:         "ring",
		Title:        "lock-free ring buffer",
		Summary:      "A lock-free ring inside one process, padded or not: what a queue without locks costs there.",
		Capabilities: local.Capabilities(),
		New: func() driver.Config {
			return &config{Capacity: local.DefaultCapacity, Cell: local.DefaultCell, Padded: true}
		},
		Page: local.Page("a ring", "Producers and consumers are goroutines of the measuring process, and the queue between them is an array that they go round without a lock: "+
			"Dmitry Vyukov's bounded queue (https://www.1024cores.net/home/lock-free-algorithms/queues/bounded-mpmc-queue). "+
			"It wakes no goroutine: one that finds it full or empty looks again, then yields, then sleeps for 32 µs to 1 ms. So the first message after a pause may wait a millisecond."),
	}
}

// config holds the driver's settings.
type config struct {
	Capacity int   `option:"capacity" min:"2" max:"1048576" help:"How many messages a subscription of a destination holds before Publish blocks; a power of two."`
	Cell     int64 `option:"cell" size:"bytes" min:"1B" max:"1GiB" help:"Memory kept for each message; a larger payload is refused."`
	Padded   bool  `option:"padded" help:"Whether what different goroutines write lies on different cache lines."`
}

// Validate reports faults that option bounds do not catch.
func (c *config) Validate() error {
	if bits.OnesCount(uint(c.Capacity)) != 1 {
		return &driver.OptionError{Name: "capacity", Err: fmt.Errorf("is %d (a power of two)", c.Capacity)}
	}
	return local.Memory(c.Capacity, c.Cell)
}

func (c *config) Holds() (messages int, option string) { return c.Capacity, "capacity" }

// Open returns a new Conn; there is nothing to connect to.
func (c *config) Open(context.Context, driver.Run) (driver.Conn, error) {
	if err := driver.Check(c); err != nil {
		return nil, err
	}
	settings := map[string]string{
		"capacity": strconv.Itoa(c.Capacity), "cell": driver.FormatSize(c.Cell), "padded": strconv.FormatBool(c.Padded),
	}
	return local.NewConn(c.Cell, "lock-free ring buffer", settings, func() local.Queue { return newQueue(c.Capacity, int(c.Cell), c.Padded) }), nil
}
