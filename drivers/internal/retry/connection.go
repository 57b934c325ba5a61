package retry

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
)

// A Connection is reopened whenever it is lost. Use it in a producer or a consumer whose client
// reports a lost connection and does not reconnect by itself, or does so without reporting the fate
// of messages in flight. T is the driver's state for one connection; different connections have
// different pointers. If the client reconnects by itself, package sockets distinguishes
// connections.
type Connection[T any] struct {
	// Connect opens a connection, within ctx.
	Connect func(ctx context.Context) (*T, error)
	// Hold uses a connection until it is lost, and returns why, after completing the messages in
	// flight on it. It also returns when ctx ends; its error is then ignored.
	Hold func(ctx context.Context, c *T) error
	// Made switches from a lost connection to the new one, and reports that (driver.Run.Tell).
	Made func(lost, now *T, why error)

	Wait  time.Duration        // before each attempt to reconnect
	For   time.Duration        // how long attempts continue after each loss; math.MaxInt64: forever
	Final func(err error) bool // whether an error of Connect ends the attempts; nil: never

	// GivenUp is called, with Start, when attempts end, with the reason; nil: it is reported to the
	// run.
	GivenUp func(last *T, why error)

	// AtOnce reports whether the first attempt after a loss should start without a pause; nil:
	// never.
	AtOnce func(why error) bool
}

// Keep holds c, and then each replacement. It returns nil when ctx has ended and Hold has returned.
// Its error is why it gave up: a final error of Connect, or driver.ErrDisconnected after For.
func (k *Connection[T]) Keep(ctx context.Context, c *T) error {
	for {
		why := k.Hold(ctx, c)
		if ctx.Err() != nil {
			return nil
		}
		next, err := k.again(ctx, why)
		if next == nil {
			return err
		}
		k.Made(c, next, why)
		c = next
	}
}

// again reconnects. Both results are nil when ctx has ended.
func (k *Connection[T]) again(ctx context.Context, why error) (*T, error) {
	if k.AtOnce != nil && k.AtOnce(why) {
		if c, err := k.Connect(ctx); err == nil {
			return c, nil
		}
	}
	limited, cancel := context.WithTimeout(ctx, k.For)
	defer cancel()
	var last error
	for Pause(limited, k.Wait) {
		c, err := k.Connect(limited)
		switch {
		case err == nil:
			return c, nil
		case k.Final != nil && k.Final(err):
			return nil, err
		case limited.Err() == nil || last == nil: // otherwise it only says that For is over
			last = err
		}
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	if last == nil {
		last = driver.ErrDisconnected
	}
	return nil, fmt.Errorf("%w: not connected again within %v: %w", driver.ErrDisconnected, k.For, last)
}
