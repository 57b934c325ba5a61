package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/buildinfo"
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
	figures *metrics.Figures // for other programs; nil: none
	hide    func()
	deaf    func() // ends the listening
}

// observe begins to show a run. What is said meanwhile goes above its block.
func (c *runCommand) observe(e *env, h *halting, r runs.Run) runs.Observer {
	x := &showing{env: e, run: r, figures: c.figures}
	if c.figures != nil {
		if c.push != nil {
			c.push.Flush(context.Background()) // the last of the run before
		}
		c.figures.Begin(r.Scenario.Name, r.Number, r.Scenario.System.Definition.Name)
	}
	x.View, x.hide = c.view(e, r.Scenario, which(&r))
	x.deaf = h.listen(x.Note)
	return x
}

// Event implements runs.Observer.
func (x *showing) Event(at int64, kind, text string) {
	if x.figures != nil && kind == "phase" {
		x.figures.Phase(text)
	}
	x.View.Event(at, kind, text)
}

// Interval implements runs.Observer.
func (x *showing) Interval(iv *measure.Interval) {
	if x.figures != nil {
		x.figures.Interval(iv)
	}
	x.View.Interval(iv)
}

// serve shows the runs to Prometheus where --metrics says so, and pushes them to
// OpenTelemetry where --otlp does, until end is called.
func (c *runCommand) serve(ctx context.Context, e *env) (end func(), err error) {
	if c.Metrics == nil && c.OTLP == nil {
		return func() {}, nil
	}
	c.figures = new(metrics.Figures)
	var ends []func()
	if c.Metrics != nil {
		at, err := metrics.Address(*c.Metrics)
		var server *metrics.Server
		if err == nil {
			err = network.OnHost(func() (err error) {
				server, err = metrics.Listen(ctx, at, c.figures)
				return err
			})
		}
		if err != nil {
			return nil, fmt.Errorf("--metrics: %w", err)
		}
		if !c.quiet {
			e.say("weir: metrics at %s", server.URL())
		}
		ends = append(ends, func() {
			if err := server.Close(); err != nil {
				e.complain(err)
			}
		})
	}
	if c.OTLP != nil {
		to, err := metrics.Collector(*c.OTLP)
		if err == nil {
			c.push, err = metrics.Pushing(ctx, to, buildinfo.Version(), c.figures, onHost(), func(err error) {
				e.say("weir: --otlp: a push failed, and the run goes on: %v", err)
			})
		}
		if err != nil {
			return nil, fmt.Errorf("--otlp: %w", err)
		}
		ends = append(ends, func() {
			if pushes, failures := c.push.Close(context.WithoutCancel(ctx)); failures > 0 {
				e.say("weir: --otlp: %d of %d pushes failed; the result folder has all figures", failures, pushes)
			}
		})
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}, nil
}

// onHost dials in the host's own network from a run that has another one; nil elsewhere.
func onHost() metrics.Dial {
	if !network.Inside() {
		return nil
	}
	return func(ctx context.Context, kind, address string) (conn net.Conn, err error) {
		err = network.OnHost(func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, kind, address)
			return err
		})
		return conn, err
	}
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
