package noop

import (
	"context"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// pretended is a simulated system with known latencies: it confirms each message a set time after
// it was published, and may freeze for a while, or become slow.
type pretended struct {
	conn
	config

	mu     sync.Mutex
	idle   *sync.Cond // a message has completed, or a Flush gives up
	timers []*time.Timer
	takes  time.Duration // current time to answer
	frozen bool
	held   []*answer // answers that became due while the system was frozen, in order
}

// An answer is a message in transit; it lives as long as the message's slot.
type answer struct {
	to    *pretender
	m     *driver.Message
	timer *time.Timer
	open  bool // not completed; guarded by the system's lock, as are the fields below
}

func newPretended(c config) *pretended {
	s := &pretended{config: c, takes: c.Answer}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// Producer returns a producer with its pending answers.
func (s *pretended) Producer(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &pretender{system: s, done: done, open: make(map[*answer]struct{}, spec.InFlight)}, nil
}

// Close stops the system's timers.
func (s *pretended) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.timers {
		t.Stop()
	}
	return nil
}

// begin schedules the system's changes, counted from its first message.
func (s *pretended) begin() {
	if s.timers != nil {
		return
	}
	at := func(d time.Duration, do func()) {
		s.timers = append(s.timers, time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			do()
		}))
	}
	at(s.Freeze.At, func() { s.frozen = s.Freeze.For > 0 })
	at(s.Freeze.At+s.Freeze.For, s.thaw)
	at(s.Slow.At, func() {
		if s.Slow.Answer > 0 {
			s.takes = s.Slow.Answer
		}
	})
}

// thaw sends the answers held back by a freeze.
func (s *pretended) thaw() {
	s.frozen = false
	for _, a := range s.held {
		a.complete(nil)
	}
	s.held = s.held[:0]
}

// due is called when a message's time is up.
func (a *answer) due() {
	s := a.to.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen {
		s.held = append(s.held, a)
		return
	}
	a.complete(nil)
}

// complete completes the message unless it has already completed.
func (a *answer) complete(err error) {
	if !a.open {
		return
	}
	a.open = false
	delete(a.to.open, a)
	a.to.done.Complete(a.m, err)
	a.to.system.idle.Broadcast()
}

// pretender is a producer of a pretended system.
type pretender struct {
	system *pretended
	done   driver.Completer
	open   map[*answer]struct{} // at most as many as may be in flight
	closed bool
}

// Publish confirms m when its time is up.
func (p *pretender) Publish(_ context.Context, m *driver.Message) {
	s := p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.closed {
		p.done.Complete(m, driver.ErrClosed)
		return
	}
	s.begin()
	a, known := m.Slot.(*answer)
	if !known {
		a = new(answer)
		m.Slot = a
	}
	a.to, a.m, a.open = p, m, true
	p.open[a] = struct{}{}
	if a.timer == nil {
		a.timer = time.AfterFunc(s.takes, a.due)
		return
	}
	a.timer.Reset(s.takes)
}

// PublishBatch publishes ms, in order.
func (p *pretender) PublishBatch(ctx context.Context, ms []*driver.Message) {
	for _, m := range ms {
		p.Publish(ctx, m)
	}
}

// Flush waits until all have completed.
func (p *pretender) Flush(ctx context.Context) error {
	s := p.system
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p.open) > 0 && ctx.Err() == nil {
		s.idle.Wait()
	}
	if len(p.open) > 0 {
		return ctx.Err()
	}
	return nil
}

// Close completes the unanswered messages with driver.ErrClosed.
func (p *pretender) Close(context.Context) error {
	s := p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	p.closed = true
	for a := range p.open {
		a.timer.Stop()
		a.complete(driver.ErrClosed)
	}
	return nil
}
