// Package channel is the driver of Go's own channels: producers and consumers
// are goroutines of one process, and the queue between them is a channel.
//
// A published payload is copied into a cell, allocated beforehand, so that the
// publisher's bytes are free when the message completes; a consumer copies it
// out and gives the cell back. Cells go round in a second channel, so that a
// message costs two channel operations on either side. When all cells of a subscription
// are in use, Publish blocks until a consumer takes one, or ctx ends.
package channel

import (
	"context"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/local"
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:         "chan",
		Title:        "Go channel",
		Summary:      "Go channels inside one process: what a queue costs without a network or a server.",
		Capabilities: local.Capabilities(),
		New:          func() driver.Config { return &config{Capacity: local.DefaultCapacity, Cell: local.DefaultCell} },
		Page: local.Page("a Go channel", "Producers and consumers are goroutines of the measuring process, and the queue between them is a buffered Go channel: "+
			"what a queue costs where nothing leaves the process."),
	}
}

// config holds the driver's settings.
type config struct {
	Capacity int   `option:"capacity" min:"1" max:"1048576" help:"How many messages a subscription of a destination holds before Publish blocks."`
	Cell     int64 `option:"cell" size:"bytes" min:"1B" max:"1GiB" help:"Memory kept for each message; a larger payload is refused."`
}

// Validate checks the two settings together.
func (c *config) Validate() error { return local.Memory(c.Capacity, c.Cell) }

func (c *config) Holds() (messages int, option string) { return c.Capacity, "capacity" }

// Open returns a new Conn; there is nothing to connect to.
func (c *config) Open(context.Context, driver.Run) (driver.Conn, error) {
	if err := driver.Check(c); err != nil {
		return nil, err
	}
	settings := map[string]string{"capacity": strconv.Itoa(c.Capacity), "cell": driver.FormatSize(c.Cell)}
	return local.NewConn(c.Cell, "Go channel", settings, func() local.Queue { return newQueue(c.Capacity, int(c.Cell)) }), nil
}
