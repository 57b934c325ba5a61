// Package noop is the driver of no system: a message is confirmed inside
// Publish, before it has gone anywhere, and is never delivered.
//
// It shows what weir itself costs and how fast and how punctual it can be: the
// ceiling that figures of real systems are held against. It has no consumer
// side.
package noop

import (
	"context"
	_ "embed" // of the page
	"runtime"

	"github.com/weirmq/weir/driver"
)

// page is what the driver says to a reader.
//
//go:embed page.md
var page string

// Definition returns what the driver is and can do.
func Definition() driver.Definition {
	return driver.Definition{
		Name:    "noop",
		Title:   "nothing",
		Summary: "Confirms at once and delivers nothing: what weir itself costs.",
		Capabilities: driver.Capabilities{
			Keys:       true,
			Batch:      true,
			Guarantees: []driver.Guarantee{driver.Buffered},
		},
		New:  func() driver.Config { return new(config) },
		Page: driver.MustPage(page),
	}
}

// config has no settings.
type config struct{}

// Validate finds nothing wrong.
func (*config) Validate() error { return nil }

// Open returns a Conn; it cannot fail.
func (*config) Open(context.Context, driver.Run) (driver.Conn, error) { return conn{}, nil }

// conn is stateless.
type conn struct{}

// Declare does nothing.
func (conn) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete does nothing.
func (conn) Delete(context.Context, ...driver.Destination) error { return nil }

// Producer returns a producer that confirms everything.
func (conn) Producer(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &producer{done: done}, nil
}

// Consumer is refused: there is nothing to receive.
func (conn) Consumer(context.Context, driver.ConsumerSpec) (driver.Consumer, error) {
	return nil, driver.ErrUnsupported
}

// Facts names the Go runtime that the driver was built with: there is no other
// system.
func (conn) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{
		Name:     "noop",
		Version:  runtime.Version(),
		Confirms: driver.Confirms{Guarantee: driver.Buffered},
	}, nil
}

// Close does nothing.
func (conn) Close(context.Context) error { return nil }
