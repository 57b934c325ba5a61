package redisconn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// pipeWindow is the minimum of commands in the client before Submit would wait: its default.
const pipeWindow = 1 << 16

// A Pipe sends commands in order on one connection of its link, without waiting for earlier
// answers. It uses the client's deferred autopipeliner in full duplex: one client goroutine writes,
// one reads. One goroutine of the Pipe waits for the answers, which arrive in command order.
type Pipe[T any] struct {
	link    *Link
	ap      *redis.AutoPipeliner
	done    func(v T, err error)
	open    *blocking.Outstanding
	closing atomic.Bool
	wake    chan struct{}
	stop    chan struct{} // closed when nothing more will be submitted
	ended   chan struct{} // closed when the waiting goroutine has returned

	mu      sync.Mutex
	waiting []item[T] // sent and not checked yet
	mine    []item[T] // used by the waiting goroutine
	next    int       // index in mine of the first not completed
	given   bool      // the rest was completed without an answer
}

// An item is a command in flight and its value.
type item[T any] struct {
	answer redis.AutoFuture
	v      T
}

// NewPipe returns a Pipe for at most inFlight commands in flight. Each ends with one call of done,
// from one goroutine, with the error mapped to the contract's; after Close it is ErrClosed.
func NewPipe[T any](link *Link, inFlight int, done func(v T, err error)) (*Pipe[T], error) {
	o := redis.DefaultAutoPipelineOptions()
	o.FullDuplex = true
	o.FullDuplexWindow = max(pipeWindow, inFlight+1)
	// Otherwise the client occasionally returns its connection to its pool and waits until it is
	// drained, which must not disturb a measurement.
	o.FullDuplexIdleTimeout, o.FullDuplexMaxHold = math.MaxInt64/4, math.MaxInt64/4
	ap, err := link.AsyncAutoPipelineWithOptions(o)
	if err != nil {
		return nil, err
	}
	p := &Pipe[T]{
		link: link, ap: ap, done: done, open: blocking.NewOutstanding(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.wait()
	return p, nil
}

// Submit sends a command. It does not wait for the network. Only one goroutine at a time may call
// it, and none after Close.
func (p *Pipe[T]) Submit(cmd redis.Cmder, v T) {
	p.open.Add(1)
	f := p.ap.Submit(context.Background(), cmd)
	p.mu.Lock()
	p.waiting = append(p.waiting, item[T]{f, v})
	first := len(p.waiting) == 1
	p.mu.Unlock()
	if first {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// wait waits for the answers in order.
func (p *Pipe[T]) wait() {
	defer close(p.ended)
	for {
		it, ok := p.oldest()
		if !ok {
			return
		}
		err := p.cause(it.answer.Wait())
		p.mu.Lock()
		if p.given {
			p.mu.Unlock()
			return
		}
		p.mine[p.next] = item[T]{}
		p.next++
		p.mu.Unlock()
		p.done(it.v, err)
		p.open.Done(1)
	}
}

// oldest waits for a command, and returns the first one sent; there is none after Close.
func (p *Pipe[T]) oldest() (it item[T], ok bool) {
	for {
		p.mu.Lock()
		if p.next == len(p.mine) {
			p.mine, p.waiting, p.next = p.waiting, p.mine[:0], 0
		}
		if ok = p.next < len(p.mine); ok {
			it = p.mine[p.next]
		}
		p.mu.Unlock()
		if ok {
			return it, true
		}
		select {
		case <-p.wake:
		case <-p.stop:
			return it, false
		}
	}
}

// cause is Cause, adjusted after Close, and records a broken connection.
func (p *Pipe[T]) cause(err error) error {
	switch {
	case err == nil:
		return nil
	case Answered(err):
		p.link.CheckMoved(err)
	case p.closing.Load():
		return fmt.Errorf("%w: %w", driver.ErrClosed, words.Plain(err))
	default:
		p.link.Lost()
	}
	return Cause(err)
}

// Wait waits until nothing is in flight, or returns ctx's error. The submitting goroutine calls it.
func (p *Pipe[T]) Wait(ctx context.Context) error { return p.open.Wait(ctx) }

// Close waits at most 2 s for outstanding answers, and ends the rest with ErrClosed; what the
// client may still read (unlikely, as its sockets are closed) also with ErrAbandoned. The link is
// then unusable. It is idempotent.
func (p *Pipe[T]) Close(ctx context.Context) {
	if p.closing.Swap(true) {
		return
	}
	err := p.link.Settle(ctx, p.open)
	close(p.stop)
	if err == nil {
		<-p.ended
		return
	}
	p.mu.Lock()
	p.given = true
	left := append(p.mine[p.next:], p.waiting...)
	p.mine, p.waiting, p.next = nil, nil, 0
	p.mu.Unlock()
	for _, it := range left {
		p.done(it.v, errors.Join(driver.ErrClosed, driver.ErrAbandoned))
	}
	p.open.Done(len(left))
}
