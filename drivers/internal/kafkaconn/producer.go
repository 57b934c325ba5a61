package kafkaconn

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/standstill"
)

// closeWait limits how long Close waits for outstanding confirmations.
const closeWait = 2 * time.Second

// spare is client capacity beyond the in-flight limit: the client still counts a message for a
// moment after its completion.
const spare = 64

// limit names the size limit in errors.
const limit = "the topics' limit (max.message.bytes)"

// A Producer publishes with its own client.
type Producer struct {
	*blocking.Outgoing
	Targets *driver.Targets[string] // topics
	Link    *Link

	partition int32 // of every message, with the partitioner producer
	open      standstill.Open
	stop      context.CancelFunc // stops the watching goroutine
	watching  sync.WaitGroup
}

// A slot stays with a Message while it is pooled: the client's record, and the function that
// completes it.
type slot struct {
	record  kgo.Record
	m       *driver.Message
	p       *Producer
	open    *atomic.Int64 // of p.open, less 1 when m completes
	promise func(*kgo.Record, error)
}

// Producer connects. If id is not "", it is a transactional.id: the caller begins and ends
// transactions on the Link, messages published outside a transaction fail, and messages never time
// out.
func (h *Hold) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer, id string) (*Producer, error) {
	p := &Producer{Outgoing: blocking.NewOutgoing(done)}
	least := 0
	var err error
	if p.Targets, err = driver.NewTargets(spec.Destinations, func(destination string) (string, error) {
		topic, partitions, err := h.topic(ctx, destination)
		least = min(cmp.Or(least, partitions), partitions)
		return topic, err
	}); err != nil {
		return nil, err
	}
	p.partition = int32(spec.Index % max(least, 1))
	topics := slices.Collect(maps.Values(p.Targets.All()))
	need, err := h.needed(ctx, topics)
	if err == nil {
		err = h.takes(ctx, need)
	}
	if err != nil {
		return nil, err
	}
	most, err := h.Link.MaxMessage(ctx, topics...)
	if err != nil {
		return nil, err
	}
	largest := int64(MaxPayload)
	if most > 0 {
		largest = min(largest, int64(most-overhead))
	}
	p.Targets.Limit(largest, limit)
	if err := driver.CheckSize(spec.Largest, largest, limit); err != nil {
		return nil, err
	}
	s := &h.cfg.Sending
	p.Link, err = h.Connect(ctx, h.Run, spec.Name(), nil, append(s.Client(id),
		kgo.RecordPartitioner(s.partitioner()), kgo.MaxBufferedRecords(spec.Room()+spare), kgo.ProducerBatchMaxBytes(s.Batch(spec.Largest, most)))...)
	if err != nil {
		return nil, err
	}
	if err := p.Link.Warm(ctx, s.Idempotent()); err != nil {
		p.Link.Kill()
		return nil, err
	}
	life, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.watching.Go(func() {
		(&standstill.Watch{
			Run: h.Run, Who: spec.Name(),
			Look: func() (uint64, bool) { return 0, p.open.Wait() }, // a partition may wait alone
			Why:  func(ctx context.Context) string { return h.refuses(ctx, need) },
		}).Keep(life)
	})
	return p, nil
}

// Warm requests everything that the first message would otherwise wait for.
func (l *Link) Warm(ctx context.Context, idempotent bool) (err error) {
	if idempotent {
		_, _, err = l.ProducerID(ctx)
	}
	if err == nil {
		err = l.EnsureProduceConnectionIsOpen(ctx)
	}
	return Unanswered(err)
}

// Batch returns the maximum batch size in bytes: the configured size, at least enough for the
// largest message (0: for any message), at most what the topics accept.
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

// Publish implements driver.Producer. It never waits.
func (p *Producer) Publish(ctx context.Context, m *driver.Message) {
	topic, err := p.Targets.Of(ctx, m)
	if !p.Admit(m, err) {
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
	s.open = p.open.Begin()
	// The message's context must not cancel the record: its bytes may already be on their way.
	p.Link.TryProduce(context.Background(), &s.record, s.promise)
}

// complete is the client's callback for a record's outcome.
func (s *slot) complete(_ *kgo.Record, err error) {
	m, p := s.m, s.p
	s.m, s.record = nil, kgo.Record{}
	s.open.Add(-1)
	p.Complete(m, Cause(err))
}

// Flush sends lingering messages and waits. The client's own Flush does not wait for messages that
// it refused at once.
func (p *Producer) Flush(ctx context.Context) error {
	if err := p.Link.Flush(ctx); err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Close waits for outstanding messages, within ctx and 2 s, then makes the client fail the rest.
func (p *Producer) Close(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	_ = p.Flush(short)
	return p.End(short, func(bool) error {
		p.Link.Close(ctx)
		p.stop()
		p.watching.Wait()
		// This ends because the client fails everything it still has.
		return p.Wait(context.Background())
	})
}
