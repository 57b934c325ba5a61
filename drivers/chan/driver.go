// Package channel is the driver of Go's own channels: producers and consumers
// are goroutines of one process, and the queue between them is a channel.
//
//	destination   a name inside the connection; no two runs share any
//	partition     none: Delivery.Partition is -1
//	subscription  a channel of its own for each destination, with `capacity`
//	              cells; it exists from the opening of its first consumer to the
//	              deletion of the destination, and its consumers compete
//	guarantee     buffered: every subscription's channel has taken the message
//
// A destination without a subscription discards what it is sent, as a topic
// without subscribers does.
//
// A published payload is copied into a cell, allocated beforehand, so that the
// publisher's bytes are free when the message completes; a consumer copies it
// out and gives the cell back. Cells go round in a second channel, so that a
// message costs two channel operations on either side. A payload larger than a
// cell is refused. When all cells of a subscription are in use, Publish blocks
// until a consumer takes one, or ctx ends.
package channel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/local"
)

// Definition returns what the driver is and can do.
func Definition() driver.Definition {
	return driver.Definition{
		Name:         "chan",
		Title:        "Go channel",
		Summary:      "Go channels inside one process: the floor of every comparison.",
		Capabilities: local.Capabilities(local.DefaultCell),
		New:          func() driver.Config { return &config{Capacity: local.DefaultCapacity, Cell: local.DefaultCell} },
		Page: local.Page("a Go channel", "Producers and consumers are goroutines of the measuring process, and the queue between them is a buffered Go channel: "+
			"what a queue costs where nothing leaves the process, and the floor of every comparison."),
	}
}

// config is the driver's settings.
type config struct {
	Capacity int   `option:"capacity" help:"How many messages a subscription of a destination holds before Publish blocks."`
	Cell     int64 `option:"cell" size:"bytes" help:"Memory kept for each message; a larger payload is refused."`
}

// Validate reports what is out of bounds.
func (c *config) Validate() error {
	var errs []error
	if c.Capacity < 1 || c.Capacity > local.LargestCapacity {
		errs = append(errs, &driver.OptionError{Name: "capacity", Err: fmt.Errorf("is %d (1 to %d)", c.Capacity, local.LargestCapacity)})
	}
	errs = append(errs, local.Memory(c.Capacity, len(errs) == 0, c.Cell))
	return errors.Join(errs...)
}

// Holds implements driver.Bounded.
func (c *config) Holds() (messages int, option string) { return c.Capacity, "capacity" }

// Open returns a Conn of its own; there is nothing to connect to.
func (c *config) Open(context.Context, driver.Run) (driver.Conn, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	facts := driver.Facts{
		Name:     "Go channel",
		Version:  runtime.Version(),
		Confirms: driver.Confirms{Guarantee: driver.Buffered},
		Settings: map[string]string{"capacity": strconv.Itoa(c.Capacity), "cell": driver.FormatSize(c.Cell)},
	}
	return local.NewConn(int(c.Cell), facts, func() local.Queue { return newQueue(c.Capacity, int(c.Cell)) }), nil
}
