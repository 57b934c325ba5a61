package nats

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// flushers is how many flushes of one producer may be in flight: with only one, a message published
// just after a PING would wait for two round trips.
const flushers = 4

// An item is a message waiting for a PONG.
type item struct {
	m     *driver.Message
	epoch uint64 // of the link, before publishing
}

// pending holds messages published and not yet flushed, and the goroutines that flush them.
type pending struct {
	link   *natsconn.Link
	done   driver.Completer
	open   *blocking.Outstanding
	life   context.Context // ends with stop
	stop   context.CancelFunc
	wake   chan struct{} // holds one token while waiting is not empty
	joined sync.WaitGroup

	mu      sync.Mutex
	waiting []item
}

// newPending starts the flushers.
func newPending(link *natsconn.Link, done driver.Completer, timeout time.Duration, inFlight int) *pending {
	p := &pending{
		link: link, done: done, open: blocking.NewOutstanding(),
		wake: make(chan struct{}, 1), waiting: make([]item, 0, inFlight),
	}
	p.life, p.stop = context.WithCancel(context.Background())
	for range flushers {
		p.joined.Go(func() { p.flush(timeout, inFlight) })
	}
	return p
}

// add adds a message that the client has accepted. It does not wait.
func (p *pending) add(m *driver.Message, epoch uint64) {
	p.open.Add(1)
	p.mu.Lock()
	p.waiting = append(p.waiting, item{m, epoch})
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take returns the waiting messages, and stores later ones in room.
func (p *pending) take(room []item) []item {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := p.waiting
	p.waiting = room[:0]
	return mine
}

// flush repeatedly completes everything published before its PING.
func (p *pending) flush(timeout time.Duration, inFlight int) {
	mine := make([]item, 0, inFlight)
	for {
		select {
		case <-p.wake:
		case <-p.life.Done():
			p.complete(p.take(nil), driver.ErrClosed)
			return
		}
		if mine = p.take(mine); len(mine) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(p.life, timeout)
		err := p.link.FlushWithContext(ctx)
		cancel()
		if err != nil && p.life.Err() != nil {
			err = driver.ErrClosed
		}
		p.complete(mine, natsconn.Cause(err))
	}
}

// complete completes messages with the result of their flush.
func (p *pending) complete(items []item, flushed error) {
	// The same epoch before the message and after the PONG: one connection carried both, in this
	// order.
	now := p.link.Epoch()
	for i, it := range items {
		err := flushed
		if err == nil && it.epoch != now {
			err = fmt.Errorf("connection changed before the flush: %w", driver.ErrDisconnected)
		}
		items[i].m = nil
		p.done.Complete(it.m, err)
	}
	p.open.Done(len(items))
}
