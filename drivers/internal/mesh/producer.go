package mesh

import (
	"context"
	"errors"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// Producer opens a socket for each destination of spec.
func (c *Conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	s := &sender{conn: c}
	var err error
	s.nodes, err = driver.NewTargets(spec.Destinations, func(d string) (*node, error) {
		n, err := c.join(ctx, d, "", sends)
		if err == nil {
			s.all = append(s.all, n)
		}
		return n, err
	})
	if err != nil {
		_ = s.leave()
		return nil, err
	}
	if !c.options.pipeline() {
		return &publisher{sender: s, done: done}, nil
	}
	return &pusher{sender: s, Pool: blocking.New(1, spec.InFlight, s.send, done)}, nil
}

// A sender has the sockets of a producer.
type sender struct {
	conn  *Conn
	nodes *driver.Targets[*node]
	all   []*node
}

// send sends a message through its socket.
func (s *sender) send(ctx context.Context, _ int, m *driver.Message) error {
	n, err := s.nodes.Of(ctx, m)
	if err != nil {
		return err
	}
	if err := n.socket.Send(m.Payload); err != nil {
		return err
	}
	n.count.Add(1)
	return nil
}

// leave closes the sockets.
func (s *sender) leave() error {
	var errs []error
	for _, n := range s.all {
		errs = append(errs, s.conn.leave(n))
	}
	return errors.Join(errs...)
}

// A publisher has PUB sockets, which never wait.
type publisher struct {
	*sender
	done driver.Completer
}

func (p *publisher) Publish(ctx context.Context, m *driver.Message) {
	p.done.Complete(m, p.send(ctx, 0, m))
}

// Flush returns at once: a message has completed when Publish returns.
func (p *publisher) Flush(context.Context) error { return nil }

func (p *publisher) Close(context.Context) error { return p.leave() }

// A pusher has PUSH sockets, which wait for room; the waiting messages are in the Pool.
type pusher struct {
	*sender
	*blocking.Pool
}

// Close implements driver.Producer. Without a consumer there will never be room, so then it does
// not wait.
func (p *pusher) Close(ctx context.Context) error {
	leave := func() { _ = p.leave() }
	defer context.AfterFunc(ctx, leave)() // ends a waiting Send
	for _, n := range p.all {
		if n.socket.Peers() == 0 {
			leave()
		}
	}
	return errors.Join(p.Pool.Close(ctx), p.leave())
}
