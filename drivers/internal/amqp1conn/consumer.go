package amqp1conn

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// prefetch is a consumer's credit if the scenario does not set it.
const prefetch = 200

// A consumer has a connection with a link to each of its queues.
type consumer struct {
	conn   *Conn
	run    driver.Run
	name   string
	queues []string
	credit int32 // per link
	settle driver.Settle
	first  *inlet // before Run; nil after it
}

// An inlet is one connection of a consumer.
type inlet struct {
	*link
	receivers []*client.Receiver
}

// Consumer connects. Run attaches to the queues, so that no message arrives before it.
func (c *Conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{conn: c, run: c.run.For(&spec), name: spec.Name(), settle: spec.Settle}
	for _, d := range spec.Destinations {
		q, err := c.existing(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.queues = append(x.queues, q)
	}
	n := spec.Prefetch
	if n <= 0 {
		n = prefetch
	}
	x.credit = int32(min(max(n/max(len(x.queues), 1), 1), 1<<20))
	l, err := c.dial(ctx, x.name)
	if err != nil {
		return nil, err
	}
	x.first = &inlet{link: l}
	return x, nil
}

// attach makes a receiver for each queue.
func (x *consumer) attach(ctx context.Context, in *inlet) error {
	ctx, cancel := context.WithTimeout(ctx, x.conn.options.Timeout)
	defer cancel()
	o := &client.ReceiverOptions{Credit: x.credit, SourceCapabilities: capability}
	if x.settle == driver.SettleAuto {
		mode := client.SenderSettleModeSettled
		o.RequestedSenderSettleMode = &mode
	}
	for _, q := range x.queues {
		r, err := in.session.NewReceiver(ctx, x.conn.address(q), o)
		if err != nil {
			return fmt.Errorf("queue %s: %w", q, words.Unreachable(err))
		}
		in.receivers = append(in.receivers, r)
	}
	return nil
}

// connect makes a connection with a receiver for each queue.
func (x *consumer) connect(ctx context.Context) (*inlet, error) {
	l, err := x.conn.dial(ctx, x.name)
	if err != nil {
		return nil, err
	}
	in := &inlet{link: l}
	if err := x.attach(ctx, in); err != nil {
		l.kill()
		l.end()
		return nil, err
	}
	return in, nil
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	in := x.first
	x.first = nil
	broken := x.attach(ctx, in)
	switch {
	case broken == nil:
		sink.Ready() // a queue keeps its messages
	case ctx.Err() != nil:
		in.end()
		return nil
	case failure.Hopeless(broken):
		in.end()
		return broken
	}
	k := retry.Connection[inlet]{
		Connect: x.connect,
		Hold: func(ctx context.Context, in *inlet) error {
			if broken != nil { // the connection was lost between the opening and Run
				sink.Fault(broken)
				in.end()
				return broken
			}
			why := blocking.Together(ctx, sink, len(in.receivers), func(ctx context.Context, i int, sink driver.Sink) error {
				return x.receive(ctx, in.receivers[i], x.conn.holding(x.queues[i]), int32(i), sink)
			})
			switch {
			case ctx.Err() == nil:
				if why != nil {
					sink.Fault(why)
				}
				in.end()
			default:
				if unsure := finish(in.link, in.receivers); unsure != nil && x.settle != driver.SettleAuto {
					sink.Fault(fmt.Errorf("last settlements: %w", words.Lost(unsure)))
				}
			}
			return why
		},
		Made: func(_, _ *inlet, why error) {
			x.run.Tell(driver.Reconnect, x.name+": "+why.Error())
			if broken != nil {
				broken = nil
				sink.Ready()
			}
		},
		Wait: x.conn.options.ReconnectWait, For: x.conn.options.ReconnectFor, Final: failure.Hopeless,
	}
	if err := k.Keep(ctx, in); err != nil {
		return fmt.Errorf("subscription lost: %w", err)
	}
	return nil
}

// receive delivers a link's messages until ctx or the link ends. It counts itself in held except
// while it waits for a message.
func (x *consumer) receive(ctx context.Context, r *client.Receiver, held *atomic.Int64, source int32, sink driver.Sink) error {
	var ds [1]driver.Delivery
	held.Add(1)
	defer held.Add(-1)
	for {
		var err error
		m := r.Prefetched()
		if m == nil {
			held.Add(-1)
			m, err = r.Receive(ctx, nil)
			held.Add(1)
		}
		switch {
		case ctx.Err() != nil:
			return nil // a message that has arrived is returned when the connection ends
		case err != nil:
			return words.Lost(err)
		}
		ds[0] = driver.Delivery{Payload: payload(m), Partition: -1, Source: source, Redelivered: m.Header != nil && m.Header.DeliveryCount > 0}
		refused := sink.Deliver(ds[:])
		if x.settle == driver.SettleAuto {
			continue // the server has already settled it
		}
		// ctx has not ended: what was accepted is settled.
		if refused == nil {
			err = r.AcceptMessage(context.Background(), m)
		} else {
			err = r.ModifyMessage(context.Background(), m, &client.ModifyMessageOptions{DeliveryFailed: true})
		}
		if err != nil {
			return words.Lost(fmt.Errorf("settling a message: %w", err))
		}
	}
}

// payload returns a message's bytes: all of its data sections.
func payload(m *client.Message) []byte {
	if len(m.Data) > 1 {
		return slices.Concat(m.Data...)
	}
	return m.GetData()
}

func (x *consumer) Close(context.Context) error {
	if x.first != nil {
		x.first.end()
		x.first = nil
	}
	return nil
}
