package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// Names of an entry's fields.
const (
	fieldPayload = "p"
	fieldKey     = "k"
)

// A producer adds entries on a connection of its own.
type producer struct {
	cfg   *Config
	link  *redisconn.Link
	done  driver.Completer
	heads *driver.Targets[[]any] // of an XADD
	pipe  *redisconn.Pipe[*driver.Message]
	bulk  *bulk
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if err := c.link.CheckSize(ctx, spec.Largest); err != nil {
		return nil, err
	}
	heads, err := driver.NewTargets(spec.Destinations, func(d string) ([]any, error) {
		return c.cfg.head(redisconn.Key(c.run, d)), c.existing(ctx, d)
	})
	if err != nil {
		return nil, err
	}
	link, err := c.link.Another(ctx, fmt.Sprintf("producer %d", spec.Index))
	if err != nil {
		return nil, err
	}
	p := &producer{cfg: &c.cfg, link: link, done: done, heads: heads}
	if p.pipe, err = redisconn.NewPipe(link, spec.InFlight, p.answered); err != nil {
		_ = link.Close(ctx)
		return nil, err
	}
	p.bulk = newBulk(p)
	return p, nil
}

// head returns an XADD up to the fields.
func (c *Config) head(key string) []any {
	// A stream deleted in mid-run must not come back as another.
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

// command returns the XADD of a message; nil, and m completed, where it has no
// business here.
func (p *producer) command(ctx context.Context, m *driver.Message) *redis.StringCmd {
	head, err := p.heads.Of(ctx, m)
	if err != nil {
		p.done.Complete(m, err)
		return nil
	}
	args := redisconn.ArgsOf(m).Fill(head).Field(fieldPayload, m.Payload)
	if m.Key != nil {
		args.Field(fieldKey, m.Key)
	}
	return redis.NewStringCmd(context.Background(), args.All()...)
}

// Publish implements driver.Producer.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	cmd := p.command(ctx, m)
	switch {
	case cmd == nil:
	case p.cfg.waits():
		p.bulk.add(batch{[]*driver.Message{m}, []*redis.StringCmd{cmd}})
	default:
		p.pipe.Submit(cmd, m)
	}
}

// PublishBatch implements driver.BatchProducer.
func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	b := batch{}
	for _, m := range ms {
		if cmd := p.command(ctx, m); cmd != nil {
			b.ms, b.cmds = append(b.ms, m), append(b.cmds, cmd)
		}
	}
	if len(b.ms) > 0 {
		p.bulk.add(b)
	}
}

// answered completes a message.
func (p *producer) answered(m *driver.Message, err error) {
	p.done.Complete(m, added(err))
}

// added returns what an error in answer to an XADD is.
func added(err error) error {
	if errors.Is(err, redis.Nil) {
		return fmt.Errorf("the stream is not there any more: %w", driver.ErrUnsupported)
	}
	return err
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error {
	if err := p.bulk.open.Wait(ctx); err != nil {
		return err
	}
	return p.pipe.Wait(ctx)
}

// Close implements driver.Producer. It waits for answers under way, at most 2 s.
func (p *producer) Close(ctx context.Context) error {
	p.bulk.close(ctx)
	p.pipe.Close(ctx)
	return p.link.Close(ctx)
}
