package iris

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// A producer writes one message at a time, on its own connection.
type producer struct {
	*blocking.Pool
	linked
	targets *driver.Targets[string]

	target string          // of the message being written
	m      *driver.Message // the message being written
	write  func(*session) error
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	switch c.cfg.Pattern {
	case patternRequest:
		return c.requester(ctx, spec, done, false)
	case patternTunnel:
		return c.tunneller(ctx, spec, done)
	}
	targets, err := driver.NewTargets(spec.Destinations, c.place)
	if err != nil {
		return nil, err
	}
	l, err := c.connect(ctx, spec.Name(), c.cfg.at(spec.Index))
	if err != nil {
		return nil, err
	}
	p := &producer{linked: linked{c, l}, targets: targets}
	op := c.op()
	p.write = func(s *session) error { return s.message(op, p.target, p.m.Payload) }
	p.Pool = blocking.New(1, spec.InFlight, p.send, done)
	c.producers.Note(p, "")
	return p, nil
}

// send writes a message to the socket. The relay does not answer.
func (p *producer) send(ctx context.Context, _ int, m *driver.Message) (err error) {
	if p.target, err = p.targets.Of(ctx, m); err != nil {
		return err
	}
	p.m = m
	return p.l.Do(ctx, p.write)
}

func (p *producer) Close(ctx context.Context) error {
	p.c.producers.Forget(p)
	err := p.Pool.Close(ctx)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	_ = p.l.Do(leaving, (*session).left) // otherwise the relay drops messages it has not forwarded
	p.l.Close()
	return err
}
