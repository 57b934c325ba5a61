package nats

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// newPending starts the flushers.
func newPending(link *natsconn.Link, done driver.Completer, timeout time.Duration, inFlight int) *pending {
	life, stop := context.WithCancel(context.Background())
	p := &pending{
		link: link, done: done, life: life, stop: stop,
		wake: make(chan struct{}, 1), idle: make(chan struct{}), waiting: make([]item, 0, inFlight),
	}
	for range flushers {
		p.joined.Go(func() { p.flush(timeout, inFlight) })
	}
	return p
}

// add takes a message that the client has taken. It does not wait.
func (p *pending) add(m *driver.Message, epoch uint64) {
	p.mu.Lock()
	p.waiting = append(p.waiting, item{m, epoch})
	p.open++
	p.mu.Unlock()
	p.signal()
}

func (p *pending) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// flush completes, again and again, all that was published before its PING.
func (p *pending) flush(timeout time.Duration, inFlight int) {
	mine := make([]item, 0, inFlight)
	for {
		select {
		case <-p.wake:
		case <-p.life.Done():
			p.fail()
			return
		}
		p.mu.Lock()
		p.waiting, mine = mine, p.waiting
		p.mu.Unlock()
		if len(mine) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(p.life, timeout)
		err := p.link.FlushWithContext(ctx)
		cancel()
		if err != nil && p.life.Err() != nil {
			err = driver.ErrClosed
		}
		err = natsconn.Cause(err)
		// The same epoch before the message and after the PONG: one connection
		// carried both, in this order.
		now := p.link.Epoch()
		for i, it := range mine {
			e := err
			if e == nil && it.epoch != now {
				e = fmt.Errorf("connection changed before the flush: %w", driver.ErrDisconnected)
			}
			mine[i].m = nil
			p.done.Complete(it.m, e)
		}
		p.completed(len(mine))
		mine = mine[:0]
	}
}

// fail completes what nobody flushes any more.
func (p *pending) fail() {
	p.mu.Lock()
	left := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, it := range left {
		p.done.Complete(it.m, driver.ErrClosed)
	}
	p.completed(len(left))
}

// completed counts n completions.
func (p *pending) completed(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open -= n
	if p.open == 0 && p.watched {
		p.watched = false
		close(p.idle)
		p.idle = make(chan struct{})
	}
}

// wait returns when nothing is open, or with ctx's error.
func (p *pending) wait(ctx context.Context) error {
	p.mu.Lock()
	idle := p.idle
	p.watched = p.open > 0
	open := p.watched
	p.mu.Unlock()
	if !open {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns when the flushers have ended.
func (p *pending) join() { p.joined.Wait() }
