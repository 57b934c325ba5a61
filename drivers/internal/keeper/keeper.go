// Package keeper maintains a connection of a client library that blocks, ignores contexts and does
// not reconnect by itself. Use a Keeper for each producer and consumer of such a client, and one
// for the Conn's own requests. It ends calls that take too long, reconnects in the background, and
// reports it. For a client that does some of that itself, use packages sockets and gate.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// A Plan configures a Keeper.
type Plan[C any] struct {
	Name  string        // in events and logs: "producer 3"
	Run   driver.Run    // receives events (kind "reconnect") and logs
	Limit time.Duration // timeout for connecting, and for one call
	Wait  time.Duration // pause before each attempt to reconnect

	// Connect makes one attempt, within ctx. The client's sockets come from s, so that closing them
	// ends the client's calls.
	Connect func(ctx context.Context, s *sockets.Set) (C, error)
	// Address and Client replace Connect: the client of one TCP connection to a host:port.
	Address string
	Client  func(net.Conn) C
	// Answer reports whether a call's err is an answer from the server, which keeps the connection
	// usable, and the matching contract error; nil: none (failure.Table). Any other error ends the
	// connection.
	Answer func(err error) (is error, ok bool)
}

// words maps the client's errors to the contract's.
func (p *Plan[C]) words() failure.Map {
	return failure.Map{Is: func(err error) error {
		if is, ok := p.Answer(err); ok {
			return is
		}
		return nil
	}}
}

// open makes one attempt to connect.
func (p *Plan[C]) open(ctx context.Context, s *sockets.Set) (c C, err error) {
	if p.Connect != nil {
		return p.Connect(ctx, s)
	}
	socket, err := s.Dial(ctx, "tcp", p.Address, p.Limit)
	if err != nil {
		return c, err
	}
	return p.Client(socket), nil
}

// unmade is the error of a failed Connect.
func (p *Plan[C]) unmade(err error) error {
	if _, ok := p.Answer(err); ok || driver.IsContract(err) {
		return p.words().Cause(err)
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, p.words().Plain(err))
}

// A Keeper maintains one connection. Its methods may be called concurrently; calls of the client
// are serialized.
type Keeper[C any] struct {
	plan    Plan[C]
	sockets sockets.Set
	turn    chan struct{} // holds a token during a call
	life    context.Context
	end     context.CancelFunc
	again   sync.WaitGroup

	mu    sync.Mutex
	now   C
	made  chan struct{} // closed if there is a connection, or never will be
	why   error         // why there is no connection
	limit *time.Timer
	fired bool            // the timeout of the last call has fired
	late  int             // timeout callbacks still to come for calls that have ended
	seen  <-chan struct{} // Done of the last cancelable context
	stop  func() bool     // stops watching that context
	of    <-chan struct{} // Done of the call's context
	busy  bool            // a call is under way
	cut   error           // why the call was interrupted
}

// Open connects, within ctx and p.Limit. It returns Connect's error, mapped to the contract's:
// anything but an answer of the server becomes ErrUnreachable.
func Open[C any](ctx context.Context, p Plan[C]) (*Keeper[C], error) {
	k := &Keeper[C]{plan: p, turn: make(chan struct{}, 1), made: make(chan struct{}), stop: func() bool { return true }}
	k.life, k.end = context.WithCancel(context.Background())
	k.limit = time.AfterFunc(time.Hour, k.expire)
	k.limit.Stop()
	if err := k.connect(ctx); err != nil {
		k.Close()
		return nil, p.unmade(err)
	}
	return k, nil
}

// connect makes one attempt.
func (k *Keeper[C]) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.plan.Limit)
	defer cancel()
	c, err := k.plan.open(ctx, &k.sockets)
	if err != nil {
		k.sockets.Kill()
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now, k.why = c, nil
	close(k.made)
	return nil
}

// Do calls f with the connection. When ctx ends, or after Plan.Limit, the call is ended with ctx's
// error or ErrTimeout. Without a connection, Do returns ErrDisconnected at once. Any other error is
// f's, mapped to the contract's; one that is not an answer ends the connection. A successful call
// allocates nothing while ctx stays the same.
func (k *Keeper[C]) Do(ctx context.Context, f func(C) error) error {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-k.turn }()
	c, err := k.begin(ctx)
	if err != nil {
		return err
	}
	err = f(c)
	if cut := k.over(); cut != nil {
		k.lost(cut)
		return cut
	}
	if err == nil {
		return nil
	}
	if _, ok := k.plan.Answer(err); ok {
		return k.plan.words().Cause(err)
	}
	err = k.plan.words().Lost(err)
	k.lost(err)
	return err
}

// begin returns the connection and arms the timeout of the following call.
func (k *Keeper[C]) begin(ctx context.Context) (c C, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case k.life.Err() != nil:
		return c, driver.ErrClosed
	case k.why != nil:
		return c, fmt.Errorf("not connected: %w", driver.ErrDisconnected)
	}
	k.of = ctx.Done()
	if done := k.of; done != nil && done != k.seen {
		k.stop()
		k.seen, k.stop = done, context.AfterFunc(ctx, func() { k.interrupt(done, ctx.Err()) })
	}
	k.limit.Reset(k.plan.Limit)
	k.busy, k.fired, k.cut = true, false, nil
	return k.now, nil
}

// over ends what begin started, and returns why the call was interrupted, if it was.
func (k *Keeper[C]) over() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy = false; !k.limit.Stop() && !k.fired {
		k.late++ // expire is waiting for k.mu
	}
	return k.cut
}

// expire interrupts a call after Plan.Limit.
func (k *Keeper[C]) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.late > 0 {
		k.late--
		return
	}
	k.fired = true
	k.breakOff(fmt.Errorf("%w: no answer within %v", driver.ErrTimeout, k.plan.Limit))
}

// interrupt interrupts a call whose context has this Done channel.
func (k *Keeper[C]) interrupt(done <-chan struct{}, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if done == k.of {
		k.breakOff(why)
	}
}

// breakOff interrupts the call in progress, if any. k.mu is held.
func (k *Keeper[C]) breakOff(why error) {
	if k.busy && k.cut == nil {
		k.cut = why
		k.sockets.Kill()
	}
}

// lost starts to reconnect.
func (k *Keeper[C]) lost(why error) {
	k.sockets.Kill()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.why, k.made = why, make(chan struct{})
	if k.life.Err() == nil {
		if !errors.Is(why, context.Canceled) { // cancellation by the caller is not a fault
			k.plan.Run.Logger().Warn("connection lost", "connection", k.plan.Name, "error", why)
		}
		k.again.Go(k.reconnect)
	}
}

// reconnect retries until there is a connection, or never will be.
func (k *Keeper[C]) reconnect() {
	for retry.Pause(k.life, k.plan.Wait) {
		err := k.connect(k.life)
		if err == nil {
			k.plan.Run.Tell(driver.Reconnect, k.plan.Name)
			return
		}
		err = k.plan.unmade(err)
		k.plan.Run.Logger().Debug("not connected", "connection", k.plan.Name, "error", err)
		k.mu.Lock()
		k.why = err
		k.mu.Unlock()
		if failure.Hopeless(err) {
			close(k.made)
			return
		}
	}
}

// Await waits for a connection. It returns ctx's error, or why there will never be one.
func (k *Keeper[C]) Await(ctx context.Context) error {
	k.mu.Lock()
	made := k.made
	k.mu.Unlock()
	select {
	case <-made:
		if why := k.missing(); failure.Hopeless(why) {
			return why
		}
		return ctx.Err()
	case <-k.life.Done():
		return driver.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// missing returns why there is no connection, or nil.
func (k *Keeper[C]) missing() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.why
}

// Ask is Do for a request that may be repeated: it waits for a connection, and repeats the request
// if the connection turns out to be broken. It takes at most Plan.Limit. Anything but an answer of
// the server becomes ErrUnreachable.
func (k *Keeper[C]) Ask(ctx context.Context, f func(C) error) error {
	ctx, cancel := context.WithTimeout(ctx, k.plan.Limit)
	defer cancel()
	for {
		err := k.Await(ctx)
		if err == nil {
			if err = k.Do(ctx, f); errors.Is(err, driver.ErrDisconnected) && ctx.Err() == nil {
				continue
			}
		} else if why := k.missing(); why != nil && k.life.Err() == nil {
			err = why
		}
		if err == nil || errors.Is(err, driver.ErrClosed) {
			return err
		}
		if _, ok := k.plan.Answer(err); ok {
			return err
		}
		return k.plan.words().Unreachable(err)
	}
}

// Close closes the connection, interrupts a call in progress, and stops everything that the Keeper
// started. It is idempotent.
func (k *Keeper[C]) Close() {
	k.mu.Lock()
	k.end()
	k.stop()
	k.breakOff(driver.ErrClosed)
	k.mu.Unlock()
	k.sockets.Refuse()
	k.again.Wait()
}
