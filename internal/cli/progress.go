package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/live"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/runs"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
)

// A console is where errors and the log go. While a run is shown there, what is
// written goes above its block.
type console struct {
	out io.Writer

	mu   sync.Mutex
	view *live.View // of the run that is shown; nil: none
}

// sated is an output with a reader that may leave when it has seen enough, which is not a
// failure: what comes after it is thrown away.
type sated struct {
	w    io.Writer
	left atomic.Bool
}

// Write implements io.Writer.
func (s *sated) Write(b []byte) (int, error) {
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

// Write implements io.Writer.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil {
		return c.view.Write(b)
	}
	return c.out.Write(b)
}

// show makes v what is shown, or nothing where it is nil.
func (c *console) show(v *live.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.view = v
}

// A showing shows a run while it goes, and listens to signals.
type showing struct {
	*live.View
	env     *env
	run     runs.Run
	metrics *metrics.Server // nil: none
	hide    func()
	deaf    func() // ends the listening
}

// observe begins to show a run. What is said meanwhile goes above its block.
func (c *runCommand) observe(e *env, h *halting, r runs.Run) runs.Observer {
	x := &showing{env: e, run: r, metrics: c.metrics}
	if c.metrics != nil {
		c.metrics.Begin(r.Scenario.Name, r.Number, r.Scenario.System.Definition.Name)
	}
	x.View, x.hide = c.view(e, r.Scenario, which(&r))
	x.deaf = h.listen(x.Note)
	return x
}

// Event implements runs.Observer.
func (x *showing) Event(at int64, kind, text string) {
	if x.metrics != nil && kind == "phase" {
		x.metrics.Phase(text)
	}
	x.View.Event(at, kind, text)
}

// Interval implements runs.Observer.
func (x *showing) Interval(iv *measure.Interval) {
	if x.metrics != nil {
		x.metrics.Interval(iv)
	}
	x.View.Interval(iv)
}

// serve listens for Prometheus where --metrics says so, until end is called.
func (c *runCommand) serve(ctx context.Context, e *env) (end func(), err error) {
	if c.Metrics == nil {
		return func() {}, nil
	}
	at, err := metrics.Address(*c.Metrics)
	if err == nil {
		err = network.OnHost(func() (err error) {
			c.metrics, err = metrics.Listen(ctx, at)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	if !c.quiet {
		e.say("weir: metrics at %s", c.metrics.URL())
	}
	return func() {
		if err := c.metrics.Close(); err != nil {
			e.complain(err)
		}
	}, nil
}

// Complain implements runs.Observer.
func (x *showing) Complain(err error) { x.env.complainOf(&x.run, err) }

// Done implements runs.Observer.
func (x *showing) Done() {
	x.deaf()
	x.hide()
}

// view returns the view of a run, and lets it have the console until done is
// called. which names the run among several.
func (c *runCommand) view(e *env, s *scenario.Scenario, which string) (v *live.View, done func()) {
	rewrite := e.StderrTerminal && !c.noColor && !e.colourless()
	t := live.Terminal{Out: e.console.out, Rewrite: rewrite, Colour: rewrite, Size: e.Size}
	p := live.Plan{
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
	if c.quiet {
		t.Out = nil
		return live.New(t, p), func() {}
	}
	v = live.New(t, p)
	e.console.show(v)
	return v, func() {
		v.Done()
		e.console.show(nil)
	}
}

// A halting is how signals end runs.
type halting struct {
	signals <-chan os.Signal
	stop    chan struct{} // closed by the first
	cancel  context.CancelFunc
	heard   int
}

// listen takes signals until end is called: the first closes stop, the second cancels.
func (h *halting) listen(note func(format string, args ...any)) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case _, ok := <-h.signals: // nil: never
				if !ok {
					return
				}
				if h.heard++; h.heard > 1 {
					note("stopping now")
					h.cancel()
					return
				}
				note("stopping: waiting for messages in flight; press Ctrl-C again to stop now")
				close(h.stop)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// asked reports whether several runs are to end between two of them, when no run listens.
func (h *halting) asked(ctx context.Context) bool {
	select {
	case _, ok := <-h.signals: // nil: never
		return ok
	case <-h.stop:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
