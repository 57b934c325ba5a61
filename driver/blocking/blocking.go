// Package blocking turns a client call that blocks from the request to its confirmation into a
// driver.Producer: a bounded queue in front of a fixed number of workers, the same code for every
// such client.
//
// A worker sends one message at a time, so the throughput is at most workers / service time: the
// number of workers is part of what is measured, and belongs in the driver's options. One worker
// preserves the order of publishing; several do not, and then the driver declares no order.
package blocking

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
)

// A Send makes one client call: it sends m and returns when the system confirmed it, or why it did
// not. worker, from 0, is the calling worker, to select one of several client connections. ctx ends
// with the context given to Publish, and when Close runs out of time. If the client may still read
// m's bytes, the error must wrap driver.ErrAbandoned.
type Send func(ctx context.Context, worker int, m *driver.Message) error

// grace is how long Close, after its context has ended, waits for cancelled client calls before it
// abandons their messages.
const grace = time.Second

// A Pool is a driver.Producer. It is called by one goroutine at a time, as any producer. It
// allocates nothing for a message that does not fail, as long as the context given to Publish stays
// the same.
type Pool struct {
	*Outgoing
	send Send
	end  func() // called at the end of Close

	queue   chan item
	workers []worker
	running atomic.Int64  // workers
	ended   chan struct{} // closed by the last worker
}

// An item is a message in the queue, with its Publish's context.
type item struct {
	ctx context.Context
	m   *driver.Message
}

// A worker's fields are written only by itself, except current, which Close may take.
type worker struct {
	current atomic.Pointer[driver.Message] // passed to send
	cancel  atomic.Pointer[context.CancelFunc]
	_       [64]byte // keeps workers on separate cache lines
}

// New returns a pool of at least one worker. Workers call send and report each result to done.
// queue is how many messages wait for a worker before Publish does. With queue at least
// driver.ProducerSpec.InFlight, Publish never waits; with less the driver must declare
// driver.Capabilities.PublishBlocks.
func New(workers, queue int, send Send, done driver.Completer) *Pool {
	workers = max(workers, 1)
	p := &Pool{
		Outgoing: NewOutgoing(done), send: send, end: func() {},
		queue: make(chan item, max(queue, 0)), ended: make(chan struct{}),
		workers: make([]worker, workers),
	}
	p.running.Store(int64(workers))
	for i := range p.workers {
		go p.work(i)
	}
	return p
}

// Then makes Close call end when it has done everything else: use it to close the client's
// connections. It returns p.
func (p *Pool) Then(end func()) *Pool {
	p.end = end
	return p
}

// Publish queues m. If the queue is full it waits until a worker takes a message, or ctx ends: then
// m completes with ctx's error, as it does if ctx ends while m is queued.
func (p *Pool) Publish(ctx context.Context, m *driver.Message) {
	if !p.Admit(m, nil) {
		return
	}
	select {
	case p.queue <- item{ctx, m}:
		return
	default:
	}
	select {
	case p.queue <- item{ctx, m}:
	case <-ctx.Done():
		p.Complete(m, ctx.Err())
	}
}

// Close sends what is queued, waits for all calls, and ends the workers. If ctx ends first, it
// cancels the calls and completes what was not sent with driver.ErrClosed. A call that does not
// return within a second of that is abandoned with its goroutine, and its message completes with
// driver.ErrClosed and driver.ErrAbandoned, which Close then returns.
func (p *Pool) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	defer p.end()
	close(p.queue)
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
	}
	p.ending.Store(true)
	for i := range p.workers {
		if cancel := p.workers[i].cancel.Load(); cancel != nil {
			(*cancel)()
		}
	}
	for it := range p.queue { // alongside the workers, which may all be stuck
		p.Complete(it.m, driver.ErrClosed)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
	}
	abandoned := 0
	for i := range p.workers {
		if m := p.workers[i].current.Swap(nil); m != nil {
			abandoned++
			p.Complete(m, errors.Join(driver.ErrClosed, driver.ErrAbandoned))
		}
	}
	if abandoned == 0 {
		return nil
	}
	return fmt.Errorf("%d calls of the client have not returned %v after they were cancelled: %w", abandoned, grace, driver.ErrAbandoned)
}

// work sends what is queued until the queue is closed.
func (p *Pool) work(index int) {
	w := &p.workers[index]
	var merged context.Context // of the last message and the pool
	var of <-chan struct{}     // Done of the last message's context
	cancel := context.CancelFunc(func() {})
	defer func() {
		cancel()
		if p.running.Add(-1) == 0 {
			close(p.ended)
		}
	}()
	for it := range p.queue {
		if p.Ending() {
			p.Complete(it.m, driver.ErrClosed)
			continue
		}
		if err := it.ctx.Err(); err != nil {
			p.Complete(it.m, err)
			continue
		}
		// One context, derived from the run's, serves all messages with the same context. Two
		// contexts are the same if they share Done.
		if done := it.ctx.Done(); merged == nil || done != of {
			cancel()
			merged, cancel = context.WithCancel(it.ctx)
			of = done
			c := cancel
			w.cancel.Store(&c)
			if p.Ending() { // Close may have looked before the Store
				cancel()
			}
		}
		w.current.Store(it.m)
		err := p.send(merged, index, it.m)
		if !w.current.CompareAndSwap(it.m, nil) {
			return // Close has completed it and waits no longer
		}
		p.Complete(it.m, err)
	}
}
