package kafkaconn

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

// closeWait bounds how long Close waits for confirmations under way.
const closeWait = 2 * time.Second

// inFlight is what a producer has room for where the scenario leaves it open.
const inFlight = 10_000

// spare is room of the client beyond the in-flight limit: it counts a message
// until a moment after its completion.
const spare = 64

// A Producer publishes by a client of its own.
type Producer struct {
	link      *Link
	say       string // whose its errors are
	done      driver.Completer
	topics    map[string]string
	largest   int   // bytes of a payload
	partition int32 // of everything, where the partitioner is producer

	outstanding atomic.Int64
	idle        chan struct{} // holds a token after outstanding came to 0
	closed      bool
}

// A slot is what a Message keeps for its pooled life: the client's record, and the
// one function that completes it.
type slot struct {
	record  kgo.Record
	m       *driver.Message
	p       *Producer
	promise func(*kgo.Record, error)
}

// Producer connects. Where id is not "" it is a transactional.id: then the caller begins
// and ends transactions by the Link, what is published outside of one fails, and the
// time of a message under way is never over.
func (h *Hold) Producer(ctx context.Context, s *Sending, spec driver.ProducerSpec, done driver.Completer, id string) (*Producer, error) {
	fail := func(err error) (*Producer, error) {
		return nil, fmt.Errorf("%s: producer %d: %w", h.say, spec.Index, err)
	}
	topics, partitions, err := h.Topics(ctx, spec.Destinations)
	if err != nil {
		return fail(err)
	}
	p := &Producer{say: h.say, done: done, topics: topics, largest: MaxPayload, idle: make(chan struct{}, 1)}
	least := 0
	names := make([]string, 0, len(partitions))
	for t, n := range partitions {
		if names = append(names, t); least == 0 || n < least {
			least = n
		}
	}
	p.partition = int32(spec.Index % max(least, 1))
	most, err := h.Link.MaxMessage(ctx, names...)
	if err != nil {
		return fail(err)
	}
	if most > 0 {
		p.largest = min(p.largest, most-overhead)
	}
	if spec.Largest > p.largest {
		return fail(fmt.Errorf("topics take up to %s (max.message.bytes): %w", driver.FormatSize(int64(most)), driver.ErrTooLarge))
	}
	room := spec.InFlight
	if room <= 0 {
		room = inFlight
	}
	opts := append(s.Client(id), kgo.RecordPartitioner(s.partitioner()), kgo.MaxBufferedRecords(room+spare), kgo.ProducerBatchMaxBytes(s.Batch(spec.Largest, most)))
	p.link, err = Connect(ctx, h.Options, h.Run, fmt.Sprintf("producer %d", spec.Index), nil, opts...)
	if err != nil {
		return fail(err)
	}
	// What the first message would wait for.
	if s.Idempotent() {
		_, _, err = p.link.ProducerID(ctx)
	}
	if err == nil {
		err = p.link.EnsureProduceConnectionIsOpen(ctx)
	}
	if err != nil {
		p.link.Kill()
		return fail(Unanswered(err))
	}
	return p, nil
}

// Batch returns the most bytes of a batch: as set, but no less than the largest
// message needs, or where that is 0 any, and no more than the topics take.
func (s *Sending) Batch(largest, most int) int32 {
	if largest <= 0 {
		largest = MaxPayload
	}
	b := max(int(s.BatchMaxBytes), largest+overhead)
	if most > 0 {
		b = min(b, most)
	}
	return int32(b)
}

// Link returns the producer's client.
func (p *Producer) Link() *Link { return p.link }

// Publish implements driver.Producer. It never waits.
func (p *Producer) Publish(ctx context.Context, m *driver.Message) {
	topic, err := p.accept(ctx, m)
	if err != nil {
		p.done.Complete(m, err)
		return
	}
	s, ok := m.Slot.(*slot)
	if !ok || s.p != p {
		s = &slot{p: p}
		s.promise = s.complete
		m.Slot = s
	}
	s.m = m
	s.record = kgo.Record{Topic: topic, Key: m.Key, Value: m.Payload, Partition: p.partition, Context: context.Background()}
	p.outstanding.Add(1)
	// The context of a message ends nothing: its bytes may be on their way.
	p.link.TryProduce(context.Background(), &s.record, s.promise)
}

// accept returns the topic of a message, or why it is not sent.
func (p *Producer) accept(ctx context.Context, m *driver.Message) (string, error) {
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case p.closed:
		return "", driver.ErrClosed
	}
	return p.Topic(m)
}

// Topic returns the topic of a message, or why it has none that would take it.
func (p *Producer) Topic(m *driver.Message) (string, error) {
	topic, ok := p.topics[m.Destination]
	switch {
	case !ok:
		return "", fmt.Errorf("%s: destination %q is not one of this producer's: %w", p.say, m.Destination, driver.ErrUnsupported)
	case len(m.Payload) > p.largest:
		return "", fmt.Errorf("%s: %w: the topic takes up to %s", p.say, driver.ErrTooLarge, driver.FormatSize(int64(p.largest)))
	}
	return topic, nil
}

// complete is what the client calls when a record's fate is known.
func (s *slot) complete(_ *kgo.Record, err error) {
	m, p := s.m, s.p
	s.m, s.record = nil, kgo.Record{}
	if err != nil {
		err = Cause(err)
	}
	p.done.Complete(m, err)
	if p.outstanding.Add(-1) == 0 {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// Flush sends what lingers and waits.
func (p *Producer) Flush(ctx context.Context) error {
	if err := p.link.Flush(ctx); err != nil {
		return err
	}
	return p.settled(ctx)
}

// settled returns when nothing is outstanding. The client's own Flush does not wait
// for what it refused at once.
func (p *Producer) settled(ctx context.Context) error {
	for p.outstanding.Load() > 0 {
		select {
		case <-p.idle: // perhaps from long ago: look again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close waits for what is outstanding, within ctx and 2 s, and has the client give
// up the rest.
func (p *Producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	short, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	_ = p.Flush(short)
	p.link.Close(ctx)
	// The client fails what it has, so that this ends.
	return p.settled(context.Background())
}
