package mqtt

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/fifo"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

const (
	window   = 20 // in flight to a server without a stated limit: Mosquitto's default
	overhead = 16 // most bytes of a PUBLISH besides topic and payload
)

// A producer has one connection. Its messages are queued until the window has room.
type producer struct {
	*blocking.Outgoing
	conn   *conn
	id     string
	topics *driver.Targets[string]
	set    sockets.Set

	out     *retry.Kept[line]
	queue   *fifo.Queue[item]
	room    chan struct{} // holds a token per message in the client
	sending sync.WaitGroup
}

// An item is a message waiting to be sent, with the context of its Publish.
type item struct {
	ctx   context.Context
	m     *driver.Message
	topic string
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		Outgoing: blocking.NewOutgoing(done), conn: c, id: fmt.Sprint("p", spec.Index), queue: fifo.New[item](),
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
	p.out = retry.Connection[line]{
		Connect: p.connect,
		Hold: func(ctx context.Context, l *line) error {
			select {
			case <-l.life.Done():
			case <-ctx.Done():
			}
			return context.Cause(l.life)
		},
		Wait: c.cfg.ReconnectWait, For: math.MaxInt64, Final: failure.Hopeless,
	}.Start(l, c.run, spec.Name())
	p.sending.Go(p.send)
	c.ends.Note(p, "")
	return p, nil
}

// window returns how many messages a producer may have in flight, given the server's limit; 0: none
// stated.
func (c *Config) window(stated int) int {
	switch {
	case c.MaxInflight > 0 && stated > 0:
		return min(c.MaxInflight, stated)
	case c.MaxInflight+stated > 0:
		return c.MaxInflight + stated
	}
	return window
}

// connect makes a connection.
func (p *producer) connect(ctx context.Context) (*line, error) {
	return p.conn.cfg.dial(ctx, &p.set, plan{
		id:       p.conn.name(p.id),
		take:     func(string, []byte, bool) bool { return true },
		complete: func(m *driver.Message, err error) { <-p.room; p.Complete(m, err) },
	})
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	topic, err := p.topics.Of(ctx, m)
	if p.Admit(m, err) {
		p.queue.Put(item{ctx, m, topic})
	}
}

// send passes messages to the client, and lets it send when no other follows at once.
func (p *producer) send() {
	var used *line
	for {
		if used != nil && (p.queue.Empty() || len(p.room) == cap(p.room)) {
			used.flush()
			used = nil
		}
		it, ok := p.queue.Take()
		if !ok {
			return
		}
		select {
		case p.room <- struct{}{}:
		case <-it.ctx.Done():
			p.Complete(it.m, it.ctx.Err())
			continue
		case <-p.out.Life().Done():
			p.Complete(it.m, driver.ErrClosed)
			continue
		}
		l := p.out.Now()
		if used != nil && used != l {
			used.flush() // it has failed
		}
		used = l
		if why := context.Cause(l.life); why != nil {
			l.complete(it.m, fmt.Errorf("not connected: %w", driver.ErrDisconnected))
			continue
		}
		l.publish(it.topic, byte(p.conn.cfg.QoS), it.m)
	}
}

// left implements end: everything written before the round trip has reached the server.
func (p *producer) left(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, p.conn.cfg.Timeout)
	defer cancel()
	return 0, p.out.Now().ask(ctx)
}

// Close implements driver.Producer. It waits at most 2 s for outstanding answers.
func (p *producer) Close(ctx context.Context) error {
	return p.End(ctx, func(late bool) error {
		p.conn.ends.Forget(p)
		p.queue.Close()
		if late {
			p.set.Refuse()
		}
		p.out.End()
		p.out.Now().close(true)
		p.sending.Wait()
		p.set.Refuse()
		return p.Wait(context.Background())
	})
}
