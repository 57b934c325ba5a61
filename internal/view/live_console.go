package view

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario"
)

// A Console is where a program's errors and log go. While a run is shown there, what is
// written goes above its block.
type Console struct {
	Out io.Writer

	mu   sync.Mutex
	view *Live // of the run that is shown; nil: none
}

// Write implements io.Writer.
func (c *Console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil {
		return c.view.Write(b)
	}
	return c.Out.Write(b)
}

func (c *Console) show(v *Live) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.view = v
}

// Live returns the view of a run, and lets it have the console until done is called. t is
// what the console is; a quiet view shows nothing.
func (c *Console) View(t Terminal, p LivePlan, quiet bool) (v *Live, done func()) {
	if quiet {
		t.Out = nil
		return NewLive(t, p), func() {}
	}
	t.Out = c.Out
	v = NewLive(t, p)
	c.show(v)
	return v, func() {
		v.Done()
		c.show(nil)
	}
}

// LivePlanOf is what is known of a run of a scenario. which names it among several.
func LivePlanOf(s *scenario.Scenario, which string) LivePlan {
	return LivePlan{
		Which:    which,
		WarmUp:   s.WarmUp,
		End:      s.Length(),
		Drain:    s.Drain,
		Messages: s.Messages,
		Closed:   s.Load.Closed,
		Sends:    s.Mode != engine.Consume,
		Receives: s.Mode != engine.Produce,
		Backlog:  s.Mode == engine.Backlog,
	}
}

// IgnoreClosedPipe is an output with a reader that may leave when it has seen enough, which is not a
// failure: what comes after it is thrown away.
func IgnoreClosedPipe(w io.Writer) io.Writer { return &closedPipeWriter{w: w} }

type closedPipeWriter struct {
	w    io.Writer
	left atomic.Bool
}

// Write implements io.Writer.
func (s *closedPipeWriter) Write(b []byte) (int, error) {
	if s.left.Load() {
		return len(b), nil
	}
	n, err := s.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		s.left.Store(true)
		return len(b), nil
	}
	return n, err
}
