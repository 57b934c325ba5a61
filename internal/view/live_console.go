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

// A Console receives a program's errors and log. While it shows a run, output goes above the block.
type Console struct {
	Out io.Writer

	mu   sync.Mutex
	view *Live // of the run on show; nil: none
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

// View returns the view of a run, which has the console until done is called. t describes the console; a
// quiet view shows nothing.
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

// LivePlanOf returns what is known of a run of a scenario. which says which of several runs it is.
func LivePlanOf(s *scenario.Scenario, which string) LivePlan {
	return LivePlan{
		Which:    which,
		System:   s.System.Definition.Name,
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

// IgnoreClosedPipe returns a writer to w that discards output after the reader has closed the pipe, which
// is not a failure.
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
