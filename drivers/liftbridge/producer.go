package liftbridge

import (
	"context"
	"hash/crc32"
	"sync"
	"sync/atomic"

	client "github.com/liftbridge-io/go-liftbridge/v2"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/fifo"
	"github.com/weirmq/weir/drivers/internal/inflight"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A producer sends on its own connection. Publish queues messages for the sending goroutine.
type producer struct {
	*inflight.Set[uint64]
	conn    *conn
	name    string
	targets *driver.Targets[*target]
	policy  client.MessageOption
	last    uint64
	queue   *fifo.Queue[sending]
	client  atomic.Pointer[client.Client]
	life    context.Context
	stop    context.CancelFunc
	sender  sync.WaitGroup
}

// A target is a stream.
type target struct {
	stream     string
	partitions int32
	turn       int32 // of messages without a key
}

// A sending is a message with its target and number.
type sending struct {
	key uint64
	m   *driver.Message
	to  *target
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{Set: inflight.New[uint64](done), conn: c, name: spec.Name(), queue: fifo.New[sending]()}
	p.policy = map[string]client.MessageOption{
		"leader": client.AckPolicyLeader(), "all": client.AckPolicyAll(), "none": client.AckPolicyNone(),
	}[c.cfg.Acks]
	var err error
	if p.targets, err = driver.NewTargets(spec.Destinations, func(d string) (*target, error) {
		n, err := c.partitions(ctx, c.stream(d))
		return &target{stream: c.stream(d), partitions: n}, err
	}); err != nil {
		return nil, err
	}
	p.targets.Limit(largest, "the driver's limit")
	k, err := c.cfg.connect(ctx)
	if err != nil {
		return nil, err
	}
	p.client.Store(&k)
	p.life, p.stop = context.WithCancel(context.Background())
	p.sender.Go(p.send)
	return p, nil
}

// Publish implements driver.Producer.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	to, err := p.targets.Of(ctx, m)
	p.last++
	if p.Begin(p.last, m, err) {
		p.queue.Put(sending{p.last, m, to})
	}
}

// send sends queued messages. The client copies a message before sending it.
func (p *producer) send() {
	for s := range p.queue.All() {
		if p.life.Err() != nil {
			p.Ended(s.key, driver.ErrClosed)
			continue
		}
		partition := s.to.turn % s.to.partitions
		if s.m.Key != nil {
			partition = int32(crc32.ChecksumIEEE(s.m.Key) % uint32(s.to.partitions)) // like client.PartitionByKey
		} else {
			s.to.turn = partition + 1
		}
		var acked client.AckHandler
		if p.conn.cfg.Acks != "none" {
			acked = func(_ *client.Ack, err error) { p.Ended(s.key, words.Cause(err)) }
		}
		err := (*p.client.Load()).PublishAsync(context.Background(), s.to.stream, s.m.Payload, acked,
			p.policy, client.Key(s.m.Key), client.ToPartition(partition))
		if err != nil || acked == nil {
			p.Ended(s.key, words.Cause(err))
		}
		if err != nil {
			p.renew(words.Lost(err))
		}
	}
}

// renew creates a new client. It gives up when the producer is closed.
func (p *producer) renew(why error) {
	end(*p.client.Load())
	for retry.Pause(p.life, p.conn.cfg.ReconnectWait) {
		if k, err := p.conn.cfg.connect(p.life); err == nil {
			p.client.Store(&k)
			p.conn.run.Tell(driver.Reconnect, p.name+": "+why.Error())
			return
		}
	}
}

// Close implements driver.Producer.
func (p *producer) Close(ctx context.Context) error {
	return p.Set.Close(ctx, func() error {
		p.stop()
		p.queue.Close()
		end(*p.client.Load()) // unblocks a call that waits for the network
		p.sender.Wait()
		end(*p.client.Load())
		return nil
	})
}
