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

// pipeWindow is how many commands the client holds at least before it would have
// Submit wait: its own default.
const pipeWindow = 1 << 16

// A Pipe sends commands on one connection of its link, in order, each without
// waiting for the answer to the one before, by the client's deferred autopipeliner
// in full duplex: one goroutine of the client's writes, one reads. A goroutine of
// the Pipe's waits for the answers in the order of the commands, which is that in
// which they come.
type Pipe[T any] struct {
	link    *Link
	ap      *redis.AutoPipeliner
	done    func(v T, err error)
	open    *blocking.Outstanding
	closing atomic.Bool
	wake    chan struct{}
	stop    chan struct{} // closed when nothing will be submitted any more
	ended   chan struct{} // closed when the waiting goroutine has returned

	mu      sync.Mutex
	waiting []item[T] // sent and not looked at yet
	mine    []item[T] // the waiting goroutine's
	next    int       // of mine, the first not completed
	given   bool      // what was left was completed without an answer
}

// An item is a command on its way, and what it is for.
type item[T any] struct {
	answer redis.AutoFuture
	v      T
}

// NewPipe returns a Pipe for at most inFlight commands on their way. Each ends with one call of
// done, from one goroutine, with the error mapped to the contract's errors. After Close it is
// ErrClosed.
func NewPipe[T any](link *Link, inFlight int, done func(v T, err error)) (*Pipe[T], error) {
	o := redis.DefaultAutoPipelineOptions()
	o.FullDuplex = true
	o.FullDuplexWindow = max(pipeWindow, inFlight+1)
	// The client gives its connection back to its pool now and then, and waits
	// until it is drained before: nothing that a measurement should see.
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

// Submit sends a command. It does not wait for the network. One goroutine at a time calls
// it, and none once Close was called.
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

// wait waits for one answer after the other.
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

// oldest waits for a command, and returns the one that was sent first; there is none
// after Close.
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

// cause is Cause, with what Close did, and notes a connection that broke.
func (p *Pipe[T]) cause(err error) error {
	switch {
	case err == nil:
		return nil
	case Answered(err):
		p.link.Heed(err)
	case p.closing.Load():
		return fmt.Errorf("%w: %w", driver.ErrClosed, words.Plain(err))
	default:
		p.link.Lost()
	}
	return Cause(err)
}

// Wait returns when nothing is on its way, or with ctx's error. The goroutine that
// submits calls it.
func (p *Pipe[T]) Wait(ctx context.Context) error { return p.open.Wait(ctx) }

// Close waits for the answers under way, at most 2 s, and ends the rest with
// ErrClosed; what the client may still read (it should not, its sockets being
// closed) with ErrAbandoned too. It leaves the link unusable. It is idempotent.
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
