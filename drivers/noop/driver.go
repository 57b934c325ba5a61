// Package noop is the driver of no system: a message is confirmed inside
// Publish, before it has gone anywhere, and is never delivered. With the option
// answer it is confirmed later, by a system that is only pretended.
//
// It shows what weir itself costs and how fast and how punctual it can be: the
// ceiling that figures of real systems are held against. It has no consumer
// side.
package noop

import (
	"context"
	"embed"
	"errors"
	"runtime"
	"time"

	"github.com/weirmq/weir/driver"
)

//go:embed page.md
var files embed.FS

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "noop",
		Title:   "nothing",
		Summary: "Confirms at once, or as late as told, and delivers nothing: what weir itself costs.",
		Capabilities: driver.Capabilities{
			Keys:       true,
			Batch:      true,
			Guarantees: []driver.Guarantee{driver.Buffered},
		},
		New:  func() driver.Config { return new(config) },
		Page: driver.MustPage(files),
	}
}

// config describes how the system answers. Times of a run count from its first message.
type config struct {
	Answer time.Duration `option:"answer" min:"0s" max:"1h" help:"How long a message takes until it is confirmed; 0s confirms inside the call that publishes it."`
	Freeze struct {
		At  time.Duration `option:"at" min:"0s" max:"100h" run:"yes" help:"When the system freezes, counted from its first message; with answer."`
		For time.Duration `option:"for" min:"0s" max:"100h" run:"yes" help:"How long it then answers nothing; 0s: it does not freeze."`
	} `option:"freeze"`
	Slow struct {
		At     time.Duration `option:"at" min:"0s" max:"100h" run:"yes" help:"When the system becomes slow, counted from its first message; with answer."`
		Answer time.Duration `option:"answer" min:"0s" max:"1h" help:"How long a message takes from then on; 0s: it does not become slow."`
	} `option:"slow"`
}

// Validate returns an error for settings that a system that confirms at once cannot have.
func (c *config) Validate() error {
	if c.Answer == 0 && (c.Freeze.For > 0 || c.Slow.Answer > 0) {
		return &driver.OptionError{Name: "answer", Err: errors.New("is 0s, so nothing can freeze or become slow (a time, such as 1ms)")}
	}
	return nil
}

// Open returns a Conn; it cannot fail with valid settings.
func (c *config) Open(context.Context, driver.Run) (driver.Conn, error) {
	if err := driver.Check(c); err != nil {
		return nil, err
	}
	if c.Answer > 0 {
		return newPretended(*c), nil
	}
	return conn{}, nil
}

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

// Consumer returns an error: there is nothing to receive.
func (conn) Consumer(context.Context, driver.ConsumerSpec) (driver.Consumer, error) {
	return nil, driver.ErrUnsupported
}

// Facts reports the Go version that the driver was built with: there is no other system.
func (conn) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{
		Name:     "noop",
		Version:  runtime.Version(),
		Confirms: driver.Confirms{Guarantee: driver.Buffered},
	}, nil
}

// Close does nothing.
func (conn) Close(context.Context) error { return nil }
