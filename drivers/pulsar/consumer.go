package pulsar

import (
	"context"
	"fmt"
	"sync/atomic"

	client "github.com/apache/pulsar-client-go/pulsar"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/gate"
)

// queueSize is the client's default: how many messages of a partition the broker may send ahead.
const queueSize = 1000

// A consumer has a client with one consumer per topic.
type consumer struct {
	client client.Client
	parts  []part
	sink   atomic.Pointer[driver.Sink] // set while it runs
}

// A part receives from one topic.
type part struct {
	client.Consumer
	source int32
	ds     [1]driver.Delivery
	key    []byte
}

// Consumer subscribes, within the option timeout for each topic.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	api, why, err := c.link.client()
	if err != nil {
		return nil, err
	}
	x := &consumer{client: api, parts: make([]part, len(spec.Destinations))}
	name := spec.Name()
	again := func() { c.run.For(&spec).Tell(driver.Reconnect, name) }
	options := client.ConsumerOptions{
		SubscriptionName: c.subscription(spec), Type: types[c.cfg.Type], NackRedeliveryDelay: c.cfg.NackDelay,
		AckGroupingOptions: &client.AckGroupingOptions{MaxSize: 1000, MaxTime: c.cfg.AckDelay},
		BackOffPolicyFunc:  pauses(c.cfg.ReconnectWait, x.lost, again),
	}
	if c.cfg.AckDelay == 0 {
		options.AckGroupingOptions.MaxSize = 1
	}
	if spec.From.At == driver.AtEarliest {
		options.SubscriptionInitialPosition = client.SubscriptionPositionEarliest
	}
	for i, d := range spec.Destinations {
		t, err := c.topic(ctx, d)
		if err == nil {
			options := options
			options.Topic, options.ReceiverQueueSize = t.name, share(spec.Prefetch, len(spec.Destinations)*max(1, t.partitions))
			x.parts[i].source = int32(i)
			if options.DLQ, err = c.deadLetters(ctx, d); options.DLQ != nil {
				options.BackOffPolicyFunc = pausesLate(c.cfg.ReconnectWait, x.lost, again)
			}
			if err == nil {
				x.parts[i].Consumer, err = api.Subscribe(options)
			}
		}
		if err != nil {
			api.Close()
			return nil, fmt.Errorf("destination %s: %w", d, why.explain(err))
		}
		if c.run.Existing && !spec.Durable {
			c.left.Note(owned{t, options.SubscriptionName}, struct{}{})
		}
	}
	return x, nil
}

// deadLetters returns the client's policy for messages of a destination that were refused the
// maximum number of times: it publishes them to the dead-letter topic, and then acknowledges them.
// nil: none.
func (c *conn) deadLetters(ctx context.Context, destination string) (*client.DLQPolicy, error) {
	refusals, _ := c.limits.Get(destination)
	if refusals == 0 {
		return nil, nil
	}
	t, err := c.topic(ctx, driver.DeadLetters(destination))
	if err != nil {
		return nil, fmt.Errorf("the dead letters: %w", err)
	}
	sends := client.ProducerOptions{DisableBatching: true, SendTimeout: c.cfg.SendTimeout, CompressionType: compressions[c.cfg.Compression]}
	if c.cfg.SendTimeout == 0 {
		sends.SendTimeout = -1
	}
	// Messages with at least this redelivery count are not delivered.
	return &client.DLQPolicy{MaxDeliveries: uint32(refusals), DeadLetterTopic: t.name, ProducerOptions: sends}, nil
}

// share divides a prefetch among queues.
func share(prefetch, queues int) int {
	if prefetch <= 0 {
		return queueSize
	}
	return max(1, prefetch/queues)
}

// lost reports that the client is reconnecting.
func (x *consumer) lost() {
	if sink := x.sink.Load(); sink != nil {
		(*sink).Fault(fmt.Errorf("%w: %w", driver.ErrDisconnected, errLost))
	}
}

// Run implements driver.Consumer. It returns when the broker has the acknowledgements.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.sink.Store(&sink)
	sink.Ready() // the subscriptions exist since the consumer was opened
	err := blocking.Together(ctx, sink, len(x.parts), func(ctx context.Context, i int, sink driver.Sink) error {
		x.parts[i].work(ctx, sink)
		return nil
	})
	x.sink.Store(nil)
	_ = x.Close(context.WithoutCancel(ctx))
	return err
}

// work delivers until ctx ends. The client yields one message at a time.
func (p *part) work(ctx context.Context, sink driver.Sink) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-p.Chan():
			p.deliver(sink, m.Message)
		}
	}
}

// deliver delivers a message and settles it.
func (p *part) deliver(sink driver.Sink, m client.Message) {
	p.ds[0] = driver.Delivery{
		Payload: m.Payload(), Partition: m.ID().PartitionIdx(), Source: p.source, Redelivered: m.RedeliveryCount() > 0,
	}
	if key := m.Key(); key != "" {
		p.key = append(p.key[:0], key...)
		p.ds[0].Key = p.key
	}
	if sink.Deliver(p.ds[:]) != nil {
		p.Nack(m)
		return
	}
	if err := p.Ack(m); err != nil {
		sink.Fault(fmt.Errorf("settling: %w", words.Cause(err)))
	}
}

// Close implements driver.Consumer. The client sends its buffered acknowledgements, and gives back
// messages that were not taken.
func (x *consumer) Close(ctx context.Context) error {
	_ = gate.End(ctx, endLimit, x.client.Close)
	return nil
}
