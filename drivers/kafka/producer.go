package kafka

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// closeWait bounds how long Close waits for confirmations under way.
const closeWait = 2 * time.Second

// inFlight is what a producer has room for where the scenario leaves it open.
const inFlight = 10_000

// spare is room of the client beyond the in-flight limit: it counts a message
// until a moment after its completion.
const spare = 64

// stickyBytes is when the sticky partitioner turns to another partition: the
// client's default, and the vendor's.
const stickyBytes = 64 << 10

// A producer publishes by a client of its own.
type producer struct {
	link      *kafkaconn.Link
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
	p       *producer
	promise func(*kgo.Record, error)
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	fail := func(err error) (driver.Producer, error) {
		return nil, fmt.Errorf("kafka: producer %d: %w", spec.Index, err)
	}
	topics, partitions, err := c.topics(ctx, spec.Destinations)
	if err != nil {
		return fail(err)
	}
	p := &producer{done: done, topics: topics, largest: maxPayload, idle: make(chan struct{}, 1)}
	least := 0
	names := make([]string, 0, len(partitions))
	for t, n := range partitions {
		if names = append(names, t); least == 0 || n < least {
			least = n
		}
	}
	p.partition = int32(spec.Index % max(least, 1))
	most, err := c.link.MaxMessage(ctx, names...)
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
	opts := append(c.cfg.producing(), kgo.MaxBufferedRecords(room+spare), kgo.ProducerBatchMaxBytes(c.batch(spec.Largest, most)))
	p.link, err = kafkaconn.Connect(ctx, &c.cfg.Options, c.run, fmt.Sprintf("producer %d", spec.Index), nil, opts...)
	if err != nil {
		return fail(err)
	}
	// What the first message would wait for.
	if c.cfg.idempotent() {
		_, _, err = p.link.ProducerID(ctx)
	}
	if err == nil {
		err = p.link.EnsureProduceConnectionIsOpen(ctx)
	}
	if err != nil {
		p.link.Kill()
		return fail(kafkaconn.Unanswered(err))
	}
	return p, nil
}

// batch returns the most bytes of a batch: as set, but no less than the largest
// message needs and no more than the topics take.
func (c *conn) batch(largest, most int) int32 {
	if largest <= 0 {
		largest = maxPayload
	}
	b := max(int(c.cfg.BatchMaxBytes), largest+overhead)
	if most > 0 {
		b = min(b, most)
	}
	return int32(b)
}

// producing returns the client's options for a producer.
func (c *Config) producing() []kgo.Opt {
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[c.Compression]
	opts := []kgo.Opt{
		kgo.ProducerLinger(c.Linger),
		kgo.ProducerBatchCompression(codec),
		kgo.RecordDeliveryTimeout(c.DeliveryTimeout),
		kgo.RecordPartitioner(c.partitioner()),
	}
	switch c.Acks {
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()))
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	}
	if c.idempotent() {
		// Otherwise the time of a message under way would never be over.
		return append(opts, kgo.AllowIdempotentProduceCancellation())
	}
	return append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(max(c.RequestsInFlight, 1)))
}

// partitioner returns the one that the option names.
func (c *Config) partitioner() kgo.Partitioner {
	switch c.Partitioner {
	case "producer":
		return kgo.ManualPartitioner()
	case "round-robin":
		keyed := kgo.StickyKeyPartitioner(nil)
		return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
			byKey, next := keyed.ForTopic(topic), 0
			return func(r *kgo.Record, n int) int {
				if r.Key != nil {
					return byKey.Partition(r, n)
				}
				next++
				return next % n
			}
		})
	}
	return kgo.UniformBytesPartitioner(stickyBytes, true, true, nil)
}

// Publish implements driver.Producer. It never waits.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
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
func (p *producer) accept(ctx context.Context, m *driver.Message) (string, error) {
	topic, ok := p.topics[m.Destination]
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case p.closed:
		return "", driver.ErrClosed
	case !ok:
		return "", fmt.Errorf("kafka: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported)
	case len(m.Payload) > p.largest:
		return "", fmt.Errorf("kafka: %w: the topic takes up to %s", driver.ErrTooLarge, driver.FormatSize(int64(p.largest)))
	}
	return topic, nil
}

// complete is what the client calls when a record's fate is known.
func (s *slot) complete(_ *kgo.Record, err error) {
	m, p := s.m, s.p
	s.m, s.record = nil, kgo.Record{}
	if err != nil {
		err = kafkaconn.Cause(err)
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
func (p *producer) Flush(ctx context.Context) error {
	if err := p.link.Flush(ctx); err != nil {
		return err
	}
	return p.settled(ctx)
}

// settled returns when nothing is outstanding. The client's own Flush does not wait
// for what it refused at once.
func (p *producer) settled(ctx context.Context) error {
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
func (p *producer) Close(ctx context.Context) error {
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
