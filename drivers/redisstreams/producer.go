package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// Field names of an entry.
const (
	fieldPayload = "p"
	fieldKey     = "k"
)

// A producer adds entries, on its own connection, or in a cluster on one to each master.
type producer struct {
	done    driver.Completer
	targets *driver.Targets[*target]
	shards  []*shard
	sorted  []batch // by shard: for PublishBatch
}

// A target is a destination. Only the publishing goroutine uses it.
type target struct {
	places []place // by partition
	turn   int     // the partition of the last message without a key
}

// A place is a stream, with its shard.
type place struct {
	shard int
	head  []any // of an XADD
}

// at returns the place for a message with that key.
func (t *target) at(key []byte) *place {
	if key == nil || len(t.places) == 1 {
		return &t.places[t.turn]
	}
	return &t.places[partition(key, len(t.places))]
}

// next directs messages without a key to the next partition.
func (t *target) next() { t.turn = (t.turn + 1) % len(t.places) }

// A shard adds entries on its own connection.
type shard struct {
	cfg  *Config
	link *redisconn.Link
	done driver.Completer
	pipe *redisconn.Pipe[*driver.Message]
	bulk *bulk
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{done: done}
	shards := map[int]int{} // by slot
	var err error
	p.targets, err = driver.NewTargets(spec.Destinations, func(d string) (*target, error) {
		keys, err := c.streams(ctx, d)
		if err == nil {
			err = c.existing(ctx, d)
		}
		if err != nil {
			return nil, redisconn.Cause(err)
		}
		t := &target{}
		for _, key := range keys {
			slot := c.slot(key)
			n, ok := shards[slot]
			if !ok {
				n = len(shards)
				shards[slot] = n
			}
			t.places = append(t.places, place{n, c.cfg.head(key)})
		}
		return t, nil
	})
	if err != nil {
		return nil, err
	}
	p.shards = make([]*shard, len(shards))
	for slot, n := range shards {
		if p.shards[n], err = c.shard(ctx, slot, spec, done); err != nil {
			_ = p.Close(ctx)
			return nil, err
		}
	}
	p.sorted = make([]batch, len(p.shards))
	return p, nil
}

// shard connects to a slot's server.
func (c *conn) shard(ctx context.Context, slot int, spec driver.ProducerSpec, done driver.Completer) (*shard, error) {
	link, err := c.another(ctx, c.run, slot, spec.Name())
	if err != nil {
		return nil, err
	}
	l := &shard{cfg: &c.cfg, link: link, done: done}
	if err = link.CheckSize(ctx, spec.Largest); err == nil {
		l.pipe, err = redisconn.NewPipe(link, spec.InFlight, l.answered)
	}
	if err != nil {
		_ = link.Close(ctx)
		return nil, err
	}
	l.bulk = newBulk(l)
	return l, nil
}

// head returns an XADD up to the fields.
func (c *Config) head(key string) []any {
	// A stream deleted during the run must not be recreated.
	head := []any{"xadd", key, "nomkstream"}
	if c.MaxLen > 0 {
		how := "~"
		if c.MaxLenExact {
			how = "="
		}
		head = append(head, "maxlen", how, strconv.FormatInt(c.MaxLen, 10))
	}
	return append(head, "*")
}

func command(head []any, m *driver.Message) *redis.StringCmd {
	args := redisconn.ArgsOf(m).Fill(head).Field(fieldPayload, m.Payload)
	if m.Key != nil {
		args.Field(fieldKey, m.Key)
	}
	return redis.NewStringCmd(context.Background(), args.All()...)
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	t, err := p.targets.Of(ctx, m)
	if err != nil {
		p.done.Complete(m, err)
		return
	}
	at := t.at(m.Key)
	if m.Key == nil {
		t.next()
	}
	l, cmd := p.shards[at.shard], command(at.head, m)
	if l.cfg.waits() {
		l.bulk.add(batch{[]*driver.Message{m}, []*redis.StringCmd{cmd}})
		return
	}
	l.pipe.Submit(cmd, m)
}

// PublishBatch implements driver.BatchProducer. Messages without a key share a partition.
func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	var free *target // for messages without a key
	for _, m := range ms {
		t, err := p.targets.Of(ctx, m)
		if err != nil {
			p.done.Complete(m, err)
			continue
		}
		if m.Key == nil {
			free = t
		}
		at := t.at(m.Key)
		b := &p.sorted[at.shard]
		b.ms, b.cmds = append(b.ms, m), append(b.cmds, command(at.head, m))
	}
	if free != nil {
		free.next()
	}
	for i := range p.sorted {
		if b := &p.sorted[i]; len(b.ms) > 0 {
			p.shards[i].bulk.add(*b)
			*b = batch{}
		}
	}
}

// answered completes a message.
func (l *shard) answered(m *driver.Message, err error) {
	l.done.Complete(m, added(err))
}

// added maps the error answer of an XADD.
func added(err error) error {
	if errors.Is(err, redis.Nil) {
		return fmt.Errorf("the stream is not there any more: %w", driver.ErrUnsupported)
	}
	return err
}

func (p *producer) Flush(ctx context.Context) error {
	for _, l := range p.shards {
		if err := l.bulk.open.Wait(ctx); err != nil {
			return err
		}
		if err := l.pipe.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close implements driver.Producer. It waits at most 2 s for outstanding answers.
func (p *producer) Close(ctx context.Context) error {
	return each.AtOnce(p.shards, func(l *shard) error { return l.close(ctx) })
}

func (l *shard) close(ctx context.Context) error {
	if l == nil { // opening failed
		return nil
	}
	l.bulk.close(ctx)
	l.pipe.Close(ctx)
	return l.link.Close(ctx)
}
