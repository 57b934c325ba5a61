package iris

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/fifo"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// A tunneller is a producer with an outbox for each of its destinations.
type tunneller struct {
	*blocking.Outgoing
	c        *conn
	targets  *driver.Targets[*outbox]
	outboxes []*outbox
	life     context.Context
	stop     context.CancelFunc
	all      sync.WaitGroup
}

// An outbox holds the messages waiting for a tunnel to a destination. The tunnel has its own
// connection.
type outbox struct {
	p                *tunneller
	name, at, target string
	sockets          sockets.Set
	queue            *fifo.Queue[item]

	mu      sync.Mutex
	now     *tunnel
	down    bool          // no tunnel, because there is no relay
	changed chan struct{} // closed when now or down changes
}

// An item is a message waiting to be sent, with the context of its Publish.
type item struct {
	ctx context.Context
	m   *driver.Message
}

// tunneller creates a tunnel to each destination.
func (c *conn) tunneller(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &tunneller{Outgoing: blocking.NewOutgoing(done), c: c}
	p.life, p.stop = context.WithCancel(context.Background())
	var err error
	p.targets, err = driver.NewTargets(spec.Destinations, func(d string) (*outbox, error) {
		target, err := c.place(d)
		l := &outbox{
			p: p, name: spec.Name(), at: c.cfg.at(spec.Index + len(p.outboxes)), target: target,
			queue: fifo.New[item](), changed: make(chan struct{}),
		}
		if err == nil {
			err = l.open(ctx)
		}
		return l, err
	})
	if err != nil {
		_ = p.Close(ctx)
		return nil, err
	}
	c.producers.Note(p, "")
	return p, nil
}

// open creates the first tunnel, and replaces it from then on.
func (l *outbox) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.p.c.cfg.Timeout)
	defer cancel()
	var t *tunnel
	untaken := func(err error) bool { return errors.Is(err, errNoMember) }
	if err := retry.While(ctx, joinPause, untaken, func() (err error) {
		t, err = l.connect(ctx)
		return err
	}); err != nil {
		if errors.Is(err, errNoMember) {
			err = fmt.Errorf("%w: %w within %v", driver.ErrTimeout, errNoMember, l.p.c.cfg.Timeout)
		}
		return err
	}
	l.set(t, false)
	l.p.outboxes = append(l.p.outboxes, l)
	l.p.all.Go(func() { l.keep(t) })
	l.p.all.Go(l.send)
	return nil
}

// set announces that there is a tunnel, or why there is none.
func (l *outbox) set(t *tunnel, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.down = t, down
	close(l.changed)
	l.changed = make(chan struct{})
}

// keep creates a new tunnel whenever one has ended.
func (l *outbox) keep(t *tunnel) {
	k := retry.Connection[tunnel]{
		Connect: func(ctx context.Context) (*tunnel, error) {
			t, err := l.connect(ctx)
			if err != nil {
				l.set(nil, !errors.Is(err, errNoMember))
			}
			return t, err
		},
		Hold: func(ctx context.Context, t *tunnel) error {
			err := t.hold(ctx)
			l.set(nil, !errors.Is(err, errOver))
			t.fail(failure.Map{}.Lost(err))
			return err
		},
		Made: func(_, now *tunnel, _ error) {
			l.set(now, false)
			l.p.c.run.Tell(driver.Reconnect, l.name)
		},
		Wait: l.p.c.cfg.ReconnectWait, For: math.MaxInt64, Final: failure.Hopeless,
		AtOnce: func(why error) bool { return errors.Is(why, errOver) },
	}
	if err := k.Keep(l.p.life, t); err != nil {
		l.p.c.run.Tell("lost", l.name+": "+err.Error())
	}
}

func (p *tunneller) Publish(ctx context.Context, m *driver.Message) {
	l, err := p.targets.Of(ctx, m)
	if len(m.Payload) == 0 {
		err = fmt.Errorf("an empty message: a tunnel has none: %w", driver.ErrUnsupported)
	}
	if p.Admit(m, err) {
		l.queue.Put(item{ctx, m})
	}
}

func (l *outbox) send() {
	for it := range l.queue.All() {
		if err := l.sendOne(it); err != nil {
			l.p.Complete(it.m, err)
		}
	}
}

// sendOne sends a message. On success, the tunnel completes it later.
func (l *outbox) sendOne(it item) error {
	for {
		if l.p.Ending() {
			return driver.ErrClosed
		}
		t, err := l.await(it.ctx)
		if err == nil {
			err = t.send(it.ctx, it.m.Payload, it.m)
		}
		if t != nil && l.queue.Empty() {
			t.flush()
		}
		if !errors.Is(err, errOver) {
			return err
		}
	}
}

// await returns the tunnel, or an error after the option timeout.
func (l *outbox) await(ctx context.Context) (*tunnel, error) {
	var late *time.Timer
	for {
		l.mu.Lock()
		t, down, changed := l.now, l.down, l.changed
		l.mu.Unlock()
		switch {
		case t != nil:
			return t, ctx.Err()
		case down:
			return nil, fmt.Errorf("not connected: %w", driver.ErrDisconnected)
		case late == nil:
			late = time.NewTimer(l.p.c.cfg.Timeout)
			defer late.Stop()
		}
		select {
		case <-changed:
		case <-late.C:
			return nil, fmt.Errorf("%w: %w within %v", driver.ErrTimeout, errNoMember, l.p.c.cfg.Timeout)
		case <-l.p.life.Done():
			return nil, driver.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// behind implements asked: the consumer has received everything sent to the target before.
func (p *tunneller) behind(ctx context.Context, target string, _ []byte) error {
	for _, l := range p.outboxes {
		if l.target != target {
			continue
		}
		t, err := l.await(ctx)
		if err == nil {
			err = t.ask(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close implements driver.Producer. When a tunnel closes, a relay drops whatever it has not
// forwarded. Close therefore waits, at most 2 s, until the consumers have everything.
func (p *tunneller) Close(ctx context.Context) error {
	return p.End(ctx, func(late bool) error {
		p.c.producers.Forget(p)
		wait, cancel := context.WithTimeout(ctx, flushWait)
		defer cancel()
		for _, l := range p.outboxes {
			l.mu.Lock()
			t := l.now
			l.mu.Unlock()
			if !late && t != nil {
				late = t.ask(wait) != nil
			}
		}
		p.stop()
		for _, l := range p.outboxes {
			l.queue.Close()
			if late {
				l.sockets.Refuse()
			}
		}
		p.all.Wait()
		for _, l := range p.outboxes {
			l.sockets.Refuse()
		}
		return p.Wait(context.Background())
	})
}
