package nats

import (
	"context"
	"fmt"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// flushers is how many flushes of one producer may be under way: one would make
// a message published just after a PING wait for two round trips.
const flushers = 4

// A producer publishes on a connection of its own.
type producer struct {
	link     *natsconn.Link
	done     driver.Completer
	subjects map[string]string
	gate     *gate.Gate
	pending  *pending // nil: confirm: none
	over     func()
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{done: done}
	var err error
	if p.subjects, err = c.targets(spec); err != nil {
		return nil, err
	}
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, fmt.Sprintf("producer %d", spec.Index), natsconn.Events{})
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	if err := link.CheckSize(spec.Largest); err != nil {
		_ = link.Close(ctx)
		return nil, fmt.Errorf("nats: %w", err)
	}
	p.link, p.gate, p.over = link, gate.New(link.Kill), c.ends.sends(link)
	if c.cfg.Confirm == confirmFlush {
		p.pending = newPending(link, done, c.cfg.ConfirmTimeout, max(spec.InFlight, 1))
	}
	return p, nil
}

// targets returns the subject of each of the producer's destinations.
func (c *conn) targets(spec driver.ProducerSpec) (map[string]string, error) {
	subjects := map[string]string{}
	for _, d := range spec.Destinations {
		subject, err := natsconn.Target(c.run, d)
		if err != nil {
			return nil, fmt.Errorf("nats: %w", err)
		}
		subjects[d] = subject
	}
	return subjects, nil
}

// Publish implements driver.Producer. The payload is copied by the client before
// it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	if err := ctx.Err(); err != nil {
		p.done.Complete(m, err)
		return
	}
	subject, ok := p.subjects[m.Destination]
	if !ok {
		p.done.Complete(m, fmt.Errorf("nats: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported))
		return
	}
	// Read before the message is handed over: had the connection changed since,
	// a PONG on the new one would say nothing of it.
	epoch := p.link.Epoch()
	p.gate.Enter(ctx)
	err := p.link.Publish(subject, m.Payload)
	p.gate.Leave()
	switch {
	case err != nil && ctx.Err() != nil:
		p.done.Complete(m, fmt.Errorf("%w: %w", ctx.Err(), err))
	case err != nil:
		p.done.Complete(m, natsconn.Cause(err))
	case p.pending == nil:
		p.done.Complete(m, nil)
	default:
		p.pending.add(m, epoch)
	}
}

// Flush implements driver.Producer. With confirm: none all is complete already.
func (p *producer) Flush(ctx context.Context) error {
	if p.pending == nil {
		return nil
	}
	return p.pending.wait(ctx)
}

// Close implements driver.Producer.
func (p *producer) Close(ctx context.Context) error {
	p.gate.Close()
	p.over()
	if p.pending == nil {
		return p.link.Close(ctx)
	}
	_ = p.pending.wait(ctx) // what is left fails below
	p.pending.stop()
	err := p.link.Close(ctx)
	p.pending.join()
	return err
}

// An item is a message that waits for a PONG.
type item struct {
	m     *driver.Message
	epoch uint64 // of the link, before it was published
}

// pending holds what was published and not yet flushed, and the goroutines that
// flush it.
type pending struct {
	link    *natsconn.Link
	done    driver.Completer
	life    context.Context // ends with stop
	stop    context.CancelFunc
	wake    chan struct{} // holds one token while waiting is not empty
	joined  sync.WaitGroup
	mu      sync.Mutex
	waiting []item
	open    int           // added and not completed
	idle    chan struct{} // closed and replaced when open falls to 0, if watched
	watched bool
}
