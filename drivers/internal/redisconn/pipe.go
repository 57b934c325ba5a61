package redisconn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
)

// Limits of a Pipe's end.
const (
	settleWait = 2 * time.Second // for answers under way
	endWait    = 3 * time.Second // for the client to fail what got none, its sockets closed
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
	link *Link
	ap   *redis.AutoPipeliner
	done func(v T, err error)
	life context.Context // ends when the Pipe closes

	stop    context.CancelFunc
	closing atomic.Bool
	wake    chan struct{}
	ended   chan struct{} // closed when the waiting goroutine has returned

	mu      sync.Mutex
	waiting []item[T] // sent and not looked at yet
	mine    []item[T] // the waiting goroutine's
	next    int       // of mine, the first not completed
	open    int       // sent and not completed
	idle    chan struct{}
	given   bool // what was left was completed without an answer
}

// An item is a command on its way, and what it is for.
type item[T any] struct {
	answer redis.AutoFuture
	v      T
}

// NewPipe returns a Pipe for at most inFlight commands on their way, each of which
// ends with one call of done, from one goroutine, with the error in the contract's
// words. After Close it is ErrClosed.
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
	p := &Pipe[T]{link: link, ap: ap, done: done, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	p.life, p.stop = context.WithCancel(context.Background())
	go p.wait()
	return p, nil
}

// Submit sends a command. It does not wait for the network. One goroutine at a
// time calls it, and nobody once Close was called.
func (p *Pipe[T]) Submit(cmd redis.Cmder, v T) {
	f := p.ap.Submit(context.Background(), cmd)
	p.mu.Lock()
	p.waiting = append(p.waiting, item[T]{f, v})
	p.open++
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
	for p.take() {
		for {
			p.mu.Lock()
			if p.next == len(p.mine) {
				p.mu.Unlock()
				break
			}
			it := p.mine[p.next]
			p.mu.Unlock()
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
			p.completed(1)
		}
	}
}

// take waits for commands that were sent, and reports whether there are any; there
// are none after Close.
func (p *Pipe[T]) take() bool {
	for {
		p.mu.Lock()
		if len(p.waiting) > 0 {
			p.mine, p.waiting, p.next = p.waiting, p.mine[:0], 0
			p.mu.Unlock()
			return true
		}
		p.mu.Unlock()
		select {
		case <-p.wake:
		case <-p.life.Done():
			return false
		}
	}
}

// cause is Cause, with what Close did, and notes a connection that broke.
func (p *Pipe[T]) cause(err error) error {
	if err == nil {
		return nil
	}
	c := Cause(err)
	if Answered(err) {
		p.link.Heed(err)
		return c
	}
	if p.closing.Load() {
		return fmt.Errorf("%w: %w", driver.ErrClosed, plain(err))
	}
	p.link.Lost()
	return c
}

// completed counts n completions.
func (p *Pipe[T]) completed(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open -= n
	if p.open == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// Wait returns when nothing is on its way, or with ctx's error.
func (p *Pipe[T]) Wait(ctx context.Context) error {
	p.mu.Lock()
	if p.open == 0 {
		p.mu.Unlock()
		return ctx.Err()
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for the answers under way, at most 2 s, and ends the rest with
// ErrClosed; what the client may still read (it should not, its sockets being
// closed) with ErrAbandoned too. It leaves the link unusable. It is idempotent.
func (p *Pipe[T]) Close(ctx context.Context) {
	if p.closing.Swap(true) {
		return
	}
	wait, cancel := context.WithTimeout(ctx, settleWait)
	err := p.Wait(wait)
	cancel()
	if err != nil {
		p.link.Refuse()
		end, cancel := context.WithTimeout(context.Background(), endWait)
		err = p.Wait(end)
		cancel()
	}
	p.stop()
	if err != nil {
		p.abandon()
		return
	}
	<-p.ended
}

// abandon completes what the client does not let go of.
func (p *Pipe[T]) abandon() {
	p.mu.Lock()
	p.given = true
	left := append(p.mine[p.next:], p.waiting...)
	p.mine, p.waiting, p.next = nil, nil, 0
	p.mu.Unlock()
	for _, it := range left {
		p.done(it.v, errors.Join(driver.ErrClosed, driver.ErrAbandoned))
	}
	p.completed(len(left))
}
