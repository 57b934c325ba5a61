package pulsar

import (
	"context"
	"errors"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/inflight"
)

// inFlight is the default in-flight limit of a producer.
const inFlight = 1000

// A producer has a client with one producer per topic. The client's producer never blocks: it has
// room for everything that may be in flight.
type producer struct {
	client client.Client
	ended  func() // called by Close
	topics *driver.Targets[client.Producer]
	*inflight.Set[*driver.Message]
}

// Producer opens the client's producers, within the option timeout each.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if err := driver.CheckSize(spec.Largest, maxPayload, limit); err != nil {
		return nil, err
	}
	api, why, err := c.link.client()
	if err != nil {
		return nil, err
	}
	name := spec.Name()
	why.last.blocked = func(why string) { c.run.Blocked(name, why) }
	options := client.ProducerOptions{
		SendTimeout: c.cfg.SendTimeout, DisableBlockIfQueueFull: true, MaxPendingMessages: spec.InFlight,
		CompressionType: compressions[c.cfg.Compression],
		DisableBatching: !c.cfg.Batching, BatchingMaxPublishDelay: c.cfg.BatchDelay,
		BatchingMaxMessages: uint(c.cfg.BatchMessages), BatchingMaxSize: uint(c.cfg.BatchSize),
		BackOffPolicyFunc: pauses(c.cfg.ReconnectWait, func() {}, func() {
			c.run.Unblocked(name)
			c.run.Tell(driver.Reconnect, name)
		}),
	}
	if spec.InFlight <= 0 {
		options.MaxPendingMessages = inFlight
	}
	if c.cfg.SendTimeout == 0 {
		options.SendTimeout = -1
	}
	if c.cfg.Type == keyShared {
		options.BatcherBuilderType = client.KeyBasedBatchBuilder
	}
	p := &producer{client: api, ended: func() { c.run.Unblocked(name) }, Set: inflight.New[*driver.Message](done)}
	p.topics, err = driver.NewTargets(spec.Destinations, func(d string) (client.Producer, error) {
		t, err := c.topic(ctx, d)
		if err != nil {
			return nil, err
		}
		options := options
		options.Topic = t.name
		x, err := api.CreateProducer(options)
		return x, why.explain(err)
	})
	if err != nil {
		api.Close()
		return nil, err
	}
	p.topics.Limit(maxPayload, limit)
	return p, nil
}

// limit names the size limit in errors.
const limit = "the brokers' default maxMessageSize, with metadata"

// A slot holds the client's data for one message. It is created once per message of the caller's
// pool.
type slot struct {
	of       *producer
	m        *driver.Message
	message  client.ProducerMessage
	callback func(client.MessageID, *client.ProducerMessage, error)
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	to, err := p.topics.Of(ctx, m)
	if !p.Begin(m, m, err) {
		return
	}
	s, _ := m.Slot.(*slot)
	if s == nil || s.of != p {
		s = &slot{of: p, m: m}
		s.callback = s.end
		m.Slot = s
	}
	s.message.Payload, s.message.Key = m.Payload, string(m.Key)
	to.SendAsync(ctx, &s.message, s.callback)
}

// end completes a message. The client calls it once.
func (s *slot) end(_ client.MessageID, _ *client.ProducerMessage, err error) {
	s.of.Ended(s.m, words.Cause(err))
}

// endLimit is how long closing the client may take in addition to messages in flight. It waits for
// the broker's answer for each partition, at most for the option timeout.
const endLimit = 5 * time.Second

// Close implements driver.Producer. It waits for messages in flight, within ctx and 2 s.
func (p *producer) Close(ctx context.Context) error {
	defer p.ended()
	err := p.Set.Close(ctx, func() error { return gate.End(ctx, endLimit, p.client.Close) })
	if errors.Is(err, driver.ErrAbandoned) {
		return nil
	}
	return err
}
