package postgres

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// gatherMost is the maximum number of messages in a pipeline, which a batch at its end may exceed.
const gatherMost = 1000

// A producer sends on its own connection, from its own goroutine.
type producer struct {
	*blocking.Outgoing
	conn   *conn
	name   string
	tables *driver.Targets[table]
	queue  chan item

	life    context.Context // ends when Close has waited
	stop    context.CancelFunc
	ended   chan struct{} // closed when work has returned
	current atomic.Pointer[link]
}

// An item is a waiting message.
type item struct {
	m    *driver.Message
	last bool // last message of a batch, or single: a transaction may end after it
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		Outgoing: blocking.NewOutgoing(done), conn: c, name: spec.Name(),
		queue: make(chan item, spec.Room()), ended: make(chan struct{}),
	}
	var err error
	if p.tables, err = driver.NewTargets(spec.Destinations, func(d string) (table, error) { return c.table(ctx, d) }); err != nil {
		return nil, err
	}
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	p.life, p.stop = context.WithCancel(context.Background())
	p.current.Store(s.link)
	go p.work(s)
	return p, nil
}

// Publish implements driver.Producer. The queue has room for everything that may be in flight.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	if p.Admit(m, p.refusal(ctx, m, 1)) {
		p.queue <- item{m, true}
	}
}

// PublishBatch implements driver.BatchProducer: the messages share a transaction.
func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	if len(ms) == 0 {
		return
	}
	err := p.refusal(ctx, ms[0], len(ms))
	for i, m := range ms {
		if p.Admit(m, err) {
			p.queue <- item{m, i == len(ms)-1}
		}
	}
}

// refusal returns why n messages like m are not accepted, or nil if there is room for them, which
// only the caller uses up.
func (p *producer) refusal(ctx context.Context, m *driver.Message, n int) error {
	_, err := p.tables.Of(ctx, m)
	if err == nil && len(p.queue)+n > cap(p.queue) {
		err = fmt.Errorf("more than %d messages in flight: %w", cap(p.queue), driver.ErrOverloaded)
	}
	return err
}

// Close implements driver.Producer. It waits for queued and active messages, within ctx and 2 s;
// the rest then completes with ErrClosed.
func (p *producer) Close(ctx context.Context) error {
	return p.End(ctx, func(late bool) error {
		close(p.queue)
		if late {
			p.stop()
			p.current.Load().kill()
		}
		<-p.ended
		p.stop()
		return nil
	})
}

// work sends queued messages until the queue is closed, and reconnects when the connection breaks.
func (p *producer) work(s *sending) {
	defer close(p.ended)
	items := make([]item, 0, gatherMost)
	for it := range p.queue {
		items = p.gather(append(items[:0], it))
		err := p.life.Err()
		if err == nil {
			err = p.send(s, items)
		} else {
			p.refuse(items, driver.ErrClosed)
		}
		if err == nil || p.life.Err() != nil {
			continue
		}
		s.kill()
		p.conn.run.Logger().Warn("connection lost", "connection", p.name, "error", err)
		if s = p.again(); s == nil {
			return
		}
	}
	if p.life.Err() == nil {
		s.close(context.Background())
	}
	s.kill()
}

// gather adds waiting messages to items, up to gatherMost and the end of a batch.
func (p *producer) gather(items []item) []item {
	for {
		if !items[len(items)-1].last {
			items = append(items, <-p.queue) // the rest of the batch is about to arrive
			continue
		}
		if len(items) >= gatherMost {
			return items
		}
		select {
		case it, ok := <-p.queue:
			if !ok {
				return items
			}
			items = append(items, it)
		default:
			return items
		}
	}
}

func (p *producer) refuse(items []item, err error) {
	for _, it := range items {
		p.Complete(it.m, err)
	}
}

// again reconnects, and refuses messages meanwhile. If Close was called first, it returns nil after
// completing everything queued.
func (p *producer) again() *sending {
	life, stop := context.WithCancel(p.life)
	defer stop()
	made := make(chan *sending, 1)
	go func() {
		defer close(made)
		for retry.Pause(life, p.conn.cfg.ReconnectWait) {
			s, err := p.open(life)
			if err == nil {
				made <- s
				return
			}
			p.conn.run.Logger().Debug("not connected", "connection", p.name, "error", err)
		}
	}()
	refusal := fmt.Errorf("not connected: %w", driver.ErrDisconnected)
	for {
		select {
		case it, ok := <-p.queue:
			if ok {
				p.Complete(it.m, refusal)
				continue
			}
			stop()
			if s := <-made; s != nil {
				s.kill()
			}
			return nil
		case s := <-made:
			if s == nil { // Close cannot wait
				for it := range p.queue {
					p.Complete(it.m, driver.ErrClosed)
				}
				return nil
			}
			p.current.Store(s.link)
			if p.life.Err() != nil { // Close may have killed the previous one
				s.kill()
			}
			p.conn.run.Tell(driver.Reconnect, p.name)
			return s
		}
	}
}
