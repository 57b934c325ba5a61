package redispubsub

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// A producer publishes on its own connection.
type producer struct {
	link  *redisconn.Link
	done  driver.Completer
	heads *driver.Targets[[]any] // of a PUBLISH
	pipe  *redisconn.Pipe[*driver.Message]
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if err := c.link.CheckSize(ctx, spec.Largest); err != nil {
		return nil, err
	}
	heads, err := driver.NewTargets(spec.Destinations, func(d string) ([]any, error) {
		return []any{"publish", redisconn.Key(c.run, d)}, nil
	})
	if err != nil {
		return nil, err
	}
	link, err := c.link.Another(ctx, c.run, spec.Name())
	if err != nil {
		return nil, err
	}
	pipe, err := redisconn.NewPipe(link, spec.InFlight, done.Complete)
	if err != nil {
		_ = link.Close(ctx)
		return nil, err
	}
	return &producer{link, done, heads, pipe}, nil
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	head, err := p.heads.Of(ctx, m)
	if err != nil {
		p.done.Complete(m, err)
		return
	}
	p.pipe.Submit(redis.NewIntCmd(context.Background(), redisconn.ArgsOf(m).Fill(head).Bytes(m.Payload).All()...), m)
}

func (p *producer) Flush(ctx context.Context) error { return p.pipe.Wait(ctx) }

// Close implements driver.Producer. It waits at most 2 s for outstanding answers.
func (p *producer) Close(ctx context.Context) error {
	p.pipe.Close(ctx)
	return p.link.Close(ctx)
}
