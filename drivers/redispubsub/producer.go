package redispubsub

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// A producer publishes on a connection of its own.
type producer struct {
	link *redisconn.Link
	done driver.Completer
	head map[string][]any // of a PUBLISH, by destination
	pipe *redisconn.Pipe[*driver.Message]
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if err := c.link.CheckSize(ctx, spec.Largest); err != nil {
		return nil, fmt.Errorf("redis-pubsub: producer %d: %w", spec.Index, err)
	}
	p := &producer{done: done, head: map[string][]any{}}
	for _, d := range spec.Destinations {
		p.head[d] = []any{"publish", redisconn.Key(c.run, d)}
	}
	link, err := c.link.Another(ctx, fmt.Sprintf("producer %d", spec.Index))
	if err != nil {
		return nil, fmt.Errorf("redis-pubsub: producer %d: %w", spec.Index, err)
	}
	p.link = link
	if p.pipe, err = redisconn.NewPipe(link, spec.InFlight, done.Complete); err != nil {
		_ = link.Close(ctx)
		return nil, fmt.Errorf("redis-pubsub: producer %d: %w", spec.Index, err)
	}
	return p, nil
}

// Publish implements driver.Producer.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	if err := ctx.Err(); err != nil {
		p.done.Complete(m, err)
		return
	}
	head, ok := p.head[m.Destination]
	if !ok {
		p.done.Complete(m, fmt.Errorf("redis-pubsub: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported))
		return
	}
	p.pipe.Submit(redis.NewIntCmd(context.Background(), redisconn.ArgsOf(m).Fill(head).Bytes(m.Payload).All()...), m)
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error { return p.pipe.Wait(ctx) }

// Close implements driver.Producer. It waits for answers under way, at most 2 s.
func (p *producer) Close(ctx context.Context) error {
	p.pipe.Close(ctx)
	return p.link.Close(ctx)
}
