package sqs

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/names"
)

// A producer's senders collect waiting messages, up to a batch, and send them in one call each.
type producer struct {
	*blocking.Outgoing
	cfg    *Config
	run    driver.Run
	name   string
	link   *link
	queues *driver.Targets[queue]
	mark   *string       // body of a message with its payload elsewhere
	binary *string       // type of attributes
	group  string        // for messages without a key
	unique string        // prefix of deduplication IDs
	count  atomic.Uint64 // suffix of deduplication IDs

	queue chan item

	gathering sync.Mutex // held by the sender that collects messages
	held      item       // taken, and left for the next sender

	life    context.Context // ends when Close cannot wait any longer
	stop    context.CancelFunc
	senders sync.WaitGroup
	lost    atomic.Bool // the last call was not answered
}

// An item is a waiting message.
type item struct {
	m     *driver.Message
	to    queue
	batch bool // published in a batch
	last  bool // the last of its batch
}

// Producer looks up the queues.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		Outgoing: blocking.NewOutgoing(done), cfg: &c.cfg, run: c.run, name: spec.Name(),
		mark: aws.String("-"), binary: aws.String(binary),
		group:  names.Join(128, "producer", strconv.Itoa(spec.Index)),
		unique: names.Join(100, c.run.ID, strconv.Itoa(spec.Index)) + ".",
		queue:  make(chan item, spec.Room()),
	}
	senders := c.cfg.Senders
	var err error
	p.queues, err = driver.NewTargets(spec.Destinations, func(d string) (queue, error) {
		q, err := c.queue(ctx, d)
		if q.fifo {
			senders = 1
		}
		if err == nil {
			err = driver.CheckSize(sized(spec.Largest, c.cfg.Payload), q.most, limit)
		}
		return q, err
	})
	if err != nil {
		return nil, err
	}
	if p.link, err = c.connect(senders, c.cfg.Attempts); err != nil {
		return nil, err
	}
	p.life, p.stop = context.WithCancel(context.Background())
	for range senders {
		p.senders.Go(p.work)
	}
	return p, nil
}

// Publish implements driver.Producer. The queue has room for everything that may be in flight.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	p.put(ctx, m, item{last: true})
}

// PublishBatch implements driver.BatchProducer: up to ten messages share a call.
func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	for i, m := range ms {
		p.put(ctx, m, item{batch: true, last: i == len(ms)-1})
	}
}

// put queues a message, or completes it.
func (p *producer) put(ctx context.Context, m *driver.Message, it item) {
	it.m = m
	var err error
	if it.to, err = p.queues.Of(ctx, m); err == nil {
		err = driver.CheckSize(size(m, p.cfg.Payload), it.to.most, limit)
	}
	if !p.Admit(m, err) {
		return
	}
	select {
	case p.queue <- it:
	default:
		p.Complete(m, fmt.Errorf("more than %d messages in flight: %w", cap(p.queue), driver.ErrOverloaded))
	}
}

// Close implements driver.Producer. It waits for queued and active messages, within ctx and 2 s;
// the rest then completes with ErrClosed.
func (p *producer) Close(ctx context.Context) error {
	return p.End(ctx, func(bool) error {
		close(p.queue)
		p.stop()
		p.senders.Wait()
		p.link.Close()
		return nil
	})
}
