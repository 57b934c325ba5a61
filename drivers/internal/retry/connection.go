package retry

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
)

// A Connection is made again whenever it is lost. Use it in a producer or a consumer where
// the client tells that its connection ended and does not connect again by itself, or
// does so without saying what became of the messages in flight. T is what the driver
// keeps for one connection; two pointers differ where two connections do. Where the client
// connects again by itself, package sockets tells one connection from the next.
type Connection[T any] struct {
	// Connect makes a connection, within ctx.
	Connect func(ctx context.Context) (*T, error)
	// Hold uses a connection until it is lost, and returns why. It first completes what was
	// in flight on it. It also returns when ctx ends; its error then has no meaning.
	Hold func(ctx context.Context, c *T) error
	// Made takes over from a lost connection, and tells a reader (driver.Run.Tell).
	Made func(lost, now *T, why error)

	Wait  time.Duration        // before each attempt to connect again
	For   time.Duration        // how long the attempts go on after each loss; math.MaxInt64: for ever
	Final func(err error) bool // whether an error of Connect ends the attempts; nil: none does

	// GivenUp is told, by what Start starts, that no attempt follows, and why; nil: a reader is.
	GivenUp func(last *T, why error)

	// AtOnce reports whether the loss of a connection asks for an attempt without a pause
	// first; nil: none does.
	AtOnce func(why error) bool
}

// Keep holds c, and after it one connection after the other. It returns nil when ctx has
// ended and Hold has returned. Its error says why it gave up: a final one of Connect, or
// driver.ErrDisconnected after For.
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

// again connects again. Both results are nil when ctx has ended.
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
		case limited.Err() == nil || last == nil: // else it says no more than that For is over
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
