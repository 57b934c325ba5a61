package nats

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// A producer publishes on its own connection.
type producer struct {
	link     *natsconn.Link
	done     driver.Completer
	subjects *driver.Targets[string]
	gate     *gate.Gate
	pending  *pending // nil: confirm: none
	ends     *natsconn.Ends
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	subjects, err := c.targets(&spec)
	if err != nil {
		return nil, err
	}
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, spec.Name(), natsconn.Events{})
	if err != nil {
		return nil, err
	}
	if err := link.CheckSize(spec.Largest); err != nil {
		_ = link.Close(ctx)
		return nil, err
	}
	p := &producer{link: link, done: done, subjects: subjects, gate: gate.New(link.Kill), ends: &c.ends}
	p.ends.Producers.Note(link, "")
	if c.cfg.Confirm == confirmFlush {
		p.pending = newPending(link, done, c.cfg.ConfirmTimeout, max(spec.InFlight, 1))
	}
	return p, nil
}

// targets returns the subject of each of the producer's destinations.
func (c *conn) targets(spec *driver.ProducerSpec) (*driver.Targets[string], error) {
	return driver.NewTargets(spec.Destinations, func(d string) (string, error) { return natsconn.Target(c.run, d) })
}

// Publish implements driver.Producer. The client copies the payload before it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	subject, err := p.subjects.Of(ctx, m)
	if err != nil {
		p.done.Complete(m, err)
		return
	}
	// Read before publishing: if the connection changed in between, a PONG on the new one would
	// prove nothing.
	epoch := p.link.Epoch()
	p.gate.Enter(ctx)
	err = p.link.Publish(subject, m.Payload)
	p.gate.Leave()
	switch {
	case err != nil:
		p.done.Complete(m, natsconn.NotTaken(ctx, err))
	case p.pending == nil:
		p.done.Complete(m, nil)
	default:
		p.pending.add(m, epoch)
	}
}

// Flush implements driver.Producer. With confirm: none, all messages have already completed.
func (p *producer) Flush(ctx context.Context) error {
	if p.pending == nil {
		return nil
	}
	return p.pending.open.Wait(ctx)
}

func (p *producer) Close(ctx context.Context) error {
	p.gate.Close()
	p.ends.Producers.Forget(p.link)
	_ = p.Flush(ctx) // the rest fails below
	if p.pending != nil {
		p.pending.stop()
		defer p.pending.joined.Wait()
	}
	return p.link.Close(ctx)
}
