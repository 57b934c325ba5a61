package mqtt

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

const (
	window   = 20 // messages in flight to a server that tells no number: Mosquitto's default
	overhead = 16 // most bytes of a PUBLISH around topic and payload
)

// A producer has a connection. Its messages wait in the queue for their turn in the window.
type producer struct {
	conn        *conn
	id, name    string
	done        driver.Completer
	topics      *driver.Targets[string]
	outstanding *blocking.Outstanding
	set         sockets.Set

	out   atomic.Pointer[line] // the latest
	queue chan item
	room  chan struct{} // has a token for each message that the client has
	hurry atomic.Bool   // nothing is sent any more
	life  context.Context
	stop  context.CancelFunc
	all   sync.WaitGroup

	closed bool // touched by the publishing goroutine only
}

// An item is a message that waits to be sent, with its Publish's context.
type item struct {
	ctx   context.Context
	m     *driver.Message
	topic string
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		conn: c, id: fmt.Sprint("p", spec.Index), name: fmt.Sprintf("producer %d", spec.Index), done: done, outstanding: blocking.NewOutstanding(),
		queue: make(chan item, max(spec.InFlight, 1)),
	}
	longest := 0
	var err error
	p.topics, err = driver.NewTargets(spec.Destinations, func(d string) (string, error) {
		t, err := c.topic(d)
		longest = max(longest, len(t))
		return t, err
	})
	if err != nil {
		return nil, err
	}
	l, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	if l.most.packet > 0 {
		const limit = "with its topic, the server's maximum packet size"
		most := int64(max(1, int(l.most.packet)-longest-overhead))
		if err := driver.CheckSize(spec.Largest, most, limit); err != nil {
			l.close(true)
			return nil, err
		}
		p.topics.Limit(most, limit)
	}
	p.room = make(chan struct{}, c.cfg.window(int(l.most.inflight)))
	p.out.Store(l)
	p.life, p.stop = context.WithCancel(context.Background())
	p.all.Go(p.keep)
	p.all.Go(p.send)
	c.ends.Add(p, "")
	return p, nil
}

// window returns how many messages a producer may have in flight, where the server told a
// number; 0: it did not.
func (c *Config) window(told int) int {
	switch {
	case c.MaxInflight > 0 && told > 0:
		return min(c.MaxInflight, told)
	case c.MaxInflight+told > 0:
		return c.MaxInflight + told
	}
	return window
}

// connect makes a connection.
func (p *producer) connect(ctx context.Context) (*line, error) {
	return p.conn.cfg.dial(ctx, &p.set, plan{
		id:       p.conn.name(p.id),
		take:     func(string, []byte, bool) bool { return true },
		complete: func(m *driver.Message, err error) { <-p.room; p.complete(m, err) },
	})
}

// keep makes a new connection whenever one is lost.
func (p *producer) keep() {
	k := retry.Connection[line]{
		Connect: p.connect,
		Hold: func(ctx context.Context, l *line) error {
			select {
			case <-l.life.Done():
			case <-ctx.Done():
			}
			return context.Cause(l.life)
		},
		Made: func(_, now *line, why error) {
			p.out.Store(now)
			p.conn.run.Tell("reconnect", p.name+": "+why.Error())
		},
		Wait: p.conn.cfg.ReconnectWait, For: math.MaxInt64, Final: failure.Hopeless,
	}
	if err := k.Keep(p.life, p.out.Load()); err != nil {
		p.conn.run.Tell("lost", p.name+": "+err.Error())
	}
}

// Publish implements driver.Producer. The queue has room for all that is in flight.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	p.outstanding.Add(1)
	topic, err := p.topics.Of(ctx, m)
	if p.closed {
		err = driver.ErrClosed
	}
	if err != nil {
		p.complete(m, err)
		return
	}
	select {
	case p.queue <- item{ctx, m, topic}:
	default:
		p.complete(m, fmt.Errorf("%w: more messages in flight than the producer was opened for", driver.ErrOverloaded))
	}
}

// complete tells what became of a message.
func (p *producer) complete(m *driver.Message, err error) {
	if err != nil && p.hurry.Load() {
		err = driver.ErrClosed
	}
	p.done.Complete(m, err)
	p.outstanding.Done(1)
}

// send hands the messages to the client.
func (p *producer) send() {
	for it := range p.queue {
		select {
		case p.room <- struct{}{}:
		case <-it.ctx.Done():
			p.complete(it.m, it.ctx.Err())
			continue
		case <-p.life.Done():
			p.complete(it.m, driver.ErrClosed)
			continue
		}
		l := p.out.Load()
		if why := context.Cause(l.life); why != nil {
			l.complete(it.m, fmt.Errorf("not connected: %w", driver.ErrDisconnected))
			continue
		}
		l.publish(it.topic, byte(p.conn.cfg.QoS), it.m)
	}
}

// left implements end: what was written before the question has reached the server.
func (p *producer) left(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, p.conn.cfg.Timeout)
	defer cancel()
	return 0, p.out.Load().ask(ctx)
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error { return p.outstanding.Wait(ctx) }

// Close implements driver.Producer. It waits for answers under way, at most 2 s.
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	p.conn.ends.Remove(p)
	late := p.outstanding.WaitLast(ctx) != nil // what is left fails below
	p.hurry.Store(true)
	p.stop()
	close(p.queue)
	if late {
		p.set.Refuse()
	}
	p.out.Load().close(true)
	p.all.Wait()
	p.out.Load().close(true) // one that was made meanwhile
	p.set.Refuse()
	return p.outstanding.Wait(context.Background())
}
