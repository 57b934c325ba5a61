package rocketmq

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	client "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	sending "github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/fifo"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/inflight"
)

// A producer has its own client. The client's send waits for the network, so each topic has one
// goroutine that calls it, in message order: a broker that does not read delays no messages on
// other brokers' topics.
type producer struct {
	client client.Producer
	topics *driver.Targets[*topic]
	*inflight.Set[*driver.Message]
	work sync.WaitGroup
}

// A topic is a target of a producer, with the messages waiting for the client.
type topic struct {
	name    string
	waiting *fifo.Queue[*slot]
}

// Producer opens a producer. It connects with its first message.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	most, limit, err := c.largest(ctx)
	if err != nil {
		return nil, err
	}
	if err := driver.CheckSize(spec.Largest, most, limit); err != nil {
		return nil, err
	}
	p := &producer{Set: inflight.New[*driver.Message](done)}
	p.topics, err = driver.NewTargets(spec.Destinations, func(d string) (*topic, error) {
		name, err := c.topic(ctx, d)
		return &topic{name, fifo.New[*slot]()}, err
	})
	if err != nil {
		return nil, err
	}
	p.topics.Limit(most, limit)
	me, err := c.cfg.peer(ctx)
	if err != nil {
		return nil, err
	}
	p.client, err = client.NewProducer(
		sending.WithNsResolver(me.names), sending.WithInstanceName(me.instance), sending.WithCredentials(me.credentials),
		sending.WithGroupName(c.name("producers")), sending.WithQueueSelector(&turns{}), sending.WithRetry(0),
		sending.WithCompressMsgBodyOverHowmuch(math.MaxInt32), // off: payloads are sent unchanged
	)
	if err == nil {
		err = p.client.Start()
	}
	if err != nil {
		return nil, words.Cause(err)
	}
	p.start()
	return p, nil
}

// start starts sending.
func (p *producer) start() {
	for _, t := range p.topics.All() {
		p.work.Go(func() { p.send(t) })
	}
}

// A slot holds the client's data for one message. It is created once per message of the caller's
// pool.
type slot struct {
	of       *producer
	m        *driver.Message
	callback func(context.Context, *primitive.SendResult, error)
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	to, err := p.topics.Of(ctx, m)
	if err == nil && (bytes.ContainsAny(m.Key, "\x01\x02") || !utf8.Valid(m.Key)) {
		err = fmt.Errorf("a key that is not a text in UTF-8 without the bytes 1 and 2: %w", driver.ErrUnsupported)
	}
	if !p.Begin(m, m, err) {
		return
	}
	s, _ := m.Slot.(*slot)
	if s == nil || s.of != p {
		s = &slot{of: p, m: m}
		s.callback = s.end
		m.Slot = s
	}
	to.waiting.Put(s)
}

// send passes a topic's messages to the client until there are no more.
func (p *producer) send(t *topic) {
	for s := range t.waiting.All() {
		m := primitive.NewMessage(t.name, s.m.Payload)
		if len(s.m.Key) > 0 {
			m.WithShardingKey(string(s.m.Key))
		}
		if err := p.client.SendAsync(context.Background(), s.callback, m); err != nil {
			p.Ended(s.m, words.Lost(err))
		}
	}
}

// end completes a message. The client calls it once.
func (s *slot) end(_ context.Context, r *primitive.SendResult, err error) {
	if err == nil && r.Status != primitive.SendOK {
		err = statuses[r.Status]
	}
	s.of.Ended(s.m, words.Cause(err))
}

// endLimit is how long closing the client may take in addition to messages in flight.
const endLimit = 2 * time.Second

// Close implements driver.Producer. It waits for messages in flight, within ctx and 2 s. Closing
// the client closes its connections, and ends a call that waits for one.
func (p *producer) Close(ctx context.Context) error {
	return p.Set.Close(ctx, func() error {
		for _, t := range p.topics.All() {
			t.waiting.Close()
		}
		_ = p.client.Shutdown() // returns no error
		return gate.End(context.Background(), endLimit, p.work.Wait)
	})
}

// turns selects a message's queue: by its key, or else round robin.
type turns struct{ n atomic.Uint32 }

// Select implements the client's QueueSelector.
func (t *turns) Select(m *primitive.Message, queues []*primitive.MessageQueue, _ string) *primitive.MessageQueue {
	if key := m.GetShardingKey(); key != "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(key))
		return queues[int(h.Sum32()%uint32(len(queues)))]
	}
	return queues[int(t.n.Add(1)%uint32(len(queues)))]
}
