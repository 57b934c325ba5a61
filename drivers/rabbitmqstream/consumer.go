package rabbitmqstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// storeWait limits the wait until the server has stored the last offset.
const storeWait = 2 * time.Second

// A consumer reads its streams, each on its own connection.
type consumer struct {
	conn  *conn
	run   driver.Run
	name  string
	index int
	parts []*part
}

// A part reads one stream.
type part struct {
	x         *consumer
	stream    string
	source    int32
	most      uint64 // messages between stores; 0: store only after each chunk
	reference string // name under which the offset is stored; "": not stored
	place     *atomic.Uint64

	mu      sync.Mutex
	sink    driver.Sink
	now     *inlet // the delivering connection; nil: none
	next    uint64 // offset of the next message to deliver
	refused bool   // Deliver has refused a message: the position stays before it
	stored  uint64 // position stored on this connection
	chunk   stream.ConsumerContext
	left    int // remaining entries of that chunk
	one     [1]driver.Delivery
}

// An inlet is one connection with a client consumer.
type inlet struct {
	env      *stream.Environment
	consumer *stream.Consumer
	closed   stream.ChannelClose
}

// reference returns the name under which a subscription's offset is stored; "": not stored, because
// it would remain in an existing stream.
func (c *conn) reference(subscription string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run.Existing && !c.durable[subscription] {
		return ""
	}
	return subscription
}

// kept returns this Conn's position for a subscription; nil: it has had no consumer.
func (c *conn) kept(s spot) *atomic.Uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[s]
}

// place returns the offset of a subscription's next message.
func (c *conn) place(ctx context.Context, subscription, of string) (next uint64, err error) {
	if p := c.kept(spot{subscription, of}); p != nil {
		return p.Load(), nil
	}
	if name := c.reference(subscription); name != "" {
		next, _, err = c.resumed(ctx, name, of)
	}
	return next, err
}

// resumed returns where a subscription continues, and whether it has begun.
func (c *conn) resumed(ctx context.Context, name, of string) (next uint64, begun bool, err error) {
	err = c.control.Ask(ctx, func(k *control) error {
		next, begun, err = k.stored(name, of)
		return err
	})
	if begun {
		next++
	}
	return next, begun, err
}

// begin returns where a new subscription begins.
func (c *conn) begin(ctx context.Context, of string, from driver.Position) (next uint64, err error) {
	kind, at := uint16(fromFirst), uint64(0)
	switch from.At {
	case driver.AtLatest:
		return c.end(ctx, of)
	case driver.AtOffset:
		if next, err = strconv.ParseUint(from.Offset, 10, 63); err != nil {
			return 0, fmt.Errorf("offset %q is not a number (such as 0, the first message): %w", from.Offset, driver.ErrUnsupported)
		}
		return next, nil
	case driver.AtTime:
		kind, at = fromTime, uint64(max(0, from.Time.UnixMilli()))
	}
	found := false
	err = c.onLeader(ctx, of, func(k *control) error {
		first, ok, err := k.at(of, kind, at)
		next, found = first.first, ok
		return err
	})
	if err == nil && !found {
		return c.end(ctx, of)
	}
	return next, err
}

// Consumer determines where the subscription begins in each stream. Run connects.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{conn: c, run: c.run.For(&spec), name: fmt.Sprintf("consumer %d", spec.Index), index: spec.Index}
	if spec.Durable {
		c.mu.Lock()
		c.durable[spec.Subscription] = true
		c.mu.Unlock()
	}
	for i, d := range spec.Destinations {
		p := &part{x: x, stream: c.stream(d), source: int32(i), most: uint64(max(0, spec.Prefetch)), reference: c.reference(spec.Subscription)}
		if spec.Settle == driver.SettleEach {
			p.most = 1
		}
		s := spot{spec.Subscription, p.stream}
		begun := false
		var err error
		if len(s.subscription) > longest {
			err = fmt.Errorf("subscription of %d bytes (up to %d): %w", len(s.subscription), longest, driver.ErrUnsupported)
		} else if p.reference != "" {
			p.next, begun, err = c.resumed(ctx, p.reference, p.stream)
		} else if kept := c.kept(s); kept != nil {
			p.next, begun = kept.Load(), true
		}
		if err == nil && !begun {
			p.next, err = c.begin(ctx, p.stream, spec.From)
		}
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		p.place = new(atomic.Uint64)
		p.place.Store(p.next)
		p.stored = p.next
		c.mu.Lock()
		c.places[s] = p.place
		c.mu.Unlock()
		x.parts = append(x.parts, p)
	}
	return x, nil
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	return blocking.Together(ctx, sink, len(x.parts), func(ctx context.Context, i int, sink driver.Sink) error {
		p := x.parts[i]
		p.sink = sink
		l, err := p.connect(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("subscribe: %w", err)
		}
		sink.Ready()
		cfg := &x.conn.cfg
		k := retry.Connection[inlet]{
			Connect: p.connect, Hold: p.hold, Wait: cfg.ReconnectWait, For: cfg.ReconnectFor,
			Final: func(err error) bool { return errors.Is(err, driver.ErrAuth) },
			Made:  func(_, _ *inlet, _ error) { x.run.Tell(driver.Reconnect, x.name) },
		}
		return k.Keep(ctx, l)
	})
}

// connect subscribes from the next message on, within ctx.
func (p *part) connect(ctx context.Context) (*inlet, error) {
	cfg := &p.x.conn.cfg
	p.mu.Lock()
	next := p.next
	p.mu.Unlock()
	l := &inlet{}
	var err error
	l.env, err = p.x.conn.environment(ctx, p.x.index, func(env *stream.Environment) (err error) {
		options := stream.NewConsumerOptions().SetConsumerName(p.reference).SetManualCommit().
			SetOffset(stream.OffsetSpecification{}.Offset(int64(min(next, math.MaxInt64)))).
			SetInitialCredits(int16(cfg.Credits)).SetClientProvidedName("weir " + p.x.conn.run.ID + " " + p.x.name)
		p.mu.Lock()
		p.now, p.stored = l, 0
		p.mu.Unlock()
		l.consumer, err = env.NewConsumer(p.stream, func(c stream.ConsumerContext, m *amqp.Message) { p.deliver(l, c, m) }, options)
		if err == nil {
			l.closed = l.consumer.NotifyClose()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// deliver handles one message from the client.
func (p *part) deliver(l *inlet, c stream.ConsumerContext, m *amqp.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	offset := uint64(c.Consumer.GetOffset())
	if p.now != l || offset < p.next {
		return
	}
	if c != p.chunk {
		p.store(c.Consumer) // of the previous chunk
		p.chunk, p.left = c, int(c.GetEntriesCount())
	}
	d := &p.one[0]
	*d = driver.Delivery{Partition: -1, Source: p.source}
	switch len(m.Data) {
	case 0:
	case 1:
		d.Payload = m.Data[0]
	default:
		d.Payload = bytes.Join(m.Data, nil)
	}
	err := p.sink.Deliver(p.one[:])
	p.next, p.left = offset+1, p.left-1
	if p.refused = p.refused || err != nil; p.refused {
		return
	}
	p.place.Store(p.next)
	if p.left == 0 || p.most > 0 && p.next-p.stored >= p.most {
		p.store(c.Consumer)
	}
}

// store makes the server store the position. The server does not answer. p.mu is held.
func (p *part) store(c *stream.Consumer) {
	place := p.place.Load()
	if p.reference == "" || place == 0 || place == p.stored {
		return
	}
	p.stored = place
	if err := c.StoreCustomOffset(int64(place - 1)); err != nil {
		p.sink.Fault(fmt.Errorf("offset not stored: %w", errorMap.Lost(err)))
	}
}

// hold receives on one connection until it is lost or ctx ends.
func (p *part) hold(ctx context.Context, l *inlet) error {
	defer end(func() {
		_ = l.consumer.Close()
		_ = l.env.Close()
	})
	select {
	case why := <-l.closed:
		p.mu.Lock()
		p.now = nil
		p.mu.Unlock()
		err := fmt.Errorf("%w: %s", driver.ErrDisconnected, why.Reason)
		if ctx.Err() == nil {
			p.sink.Fault(err)
		}
		return err
	case <-ctx.Done():
	}
	end(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.now = nil
		p.store(l.consumer)
	})
	p.await()
	return nil
}

// await waits, at most storeWait, until the server has the last offset.
func (p *part) await() {
	place := p.place.Load()
	if p.reference == "" || place == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	late := errors.New("the server does not report that it has the last offset")
	err := retry.While(ctx, 5*time.Millisecond, func(err error) bool { return errors.Is(err, late) }, func() error {
		has, _, err := p.x.conn.resumed(ctx, p.reference, p.stream)
		if err == nil && has < place {
			err = late
		}
		return err
	})
	if err != nil {
		p.sink.Fault(err)
	}
}

// Close implements driver.Consumer: Run has already closed the connections.
func (x *consumer) Close(context.Context) error { return nil }
