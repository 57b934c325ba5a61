package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// Limits of waits for remote workers.
const (
	lookEvery  = 20 * time.Millisecond
	stallLimit = time.Second      // between two looks: this process stood still, and could hear from nobody
	endLimit   = 45 * time.Second // from the end of the drain and of listening after it to the last report of a connected worker
	awayLimit  = 5 * time.Second  // the same for a disconnected worker
	hurryLimit = 5 * time.Second  // if the user aborts
	lostLimit  = 30 * time.Second // beyond the drain, for workers to come back when none is connected
)

// Remote is how workers are reached over a network. They may vanish. Its functions are called by
// any goroutine; Lead, Translate, Ready and Holds must not call the coordinator.
type Remote struct {
	Lead time.Duration // from the agreement to the epoch
	// Restarts says that a run that loses a worker before its measured window can be started again with
	// another one: it is called off with ErrLost.
	Restarts bool
	// Translate converts an instant of this host's monotonic clock, in ns, to a worker's; Ready
	// reports whether it can.
	Translate func(worker int, ns int64) int64
	Ready     func() bool
	// Holds asks the system about a subscription through a worker, as
	// engine.Progress.Holds does.
	Holds func(worker, sub int) (nothing, answered bool)
	// Order sends the decisions to the workers.
	Order func()
	// Look is called about every 20 ms.
	Look func()
}

// Conduct coordinates remote workers until the run is over, and returns its figures. When stop is
// closed, no further message is offered and the run drains; when ctx ends, it ends at once. Either
// way it returns what was measured.
func (c *Coordinator) Conduct(ctx context.Context, stop <-chan struct{}) (*engine.Raw, error) {
	if err := c.conduct(ctx, stop); err != nil {
		c.Abort(err)
		return nil, err
	}
	raw, err := c.Figures()
	if raw == nil {
		c.Abort(err)
		return nil, err
	}
	raw.Interrupted = raw.Interrupted || latch.Closed(stop)
	return raw, err
}

// conduct returns when all workers have ended or have been given up. An error is why the run does
// not begin.
func (c *Coordinator) conduct(ctx context.Context, stop <-chan struct{}) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	done := ctx.Done()
	var over, hurried int64 // instants by awake; 0: not yet
	since := func(from int64) time.Duration { return time.Duration(c.awake() - from) }
	for {
		c.Listen()
		c.remote.Look()
		o := c.Look()
		if err := c.Why(); err != nil && (!c.Begun() || errors.Is(err, ErrLost)) {
			return err
		}
		if o.Over && over == 0 {
			over = c.awake()
			c.remote.Order()
		}
		gone := c.Ended(true)
		switch {
		case c.Ended(false),
			over != 0 && (since(over) > endLimit+c.cfg.AfterDrain || since(over) > awayLimit && gone),
			hurried != 0 && since(hurried) > hurryLimit,
			c.Begun() && gone && c.silentFor(lostLimit+c.cfg.Drain):
			return nil
		}
		select {
		case <-tick.C:
		case <-stop:
			stop = nil
			if !c.Begun() {
				return fmt.Errorf("stopped before the first message: %w", context.Canceled)
			}
			c.halt(false)
		case <-done:
			done = nil
			if !c.Begun() {
				return fmt.Errorf("stopped before the first message: %w", context.Cause(ctx))
			}
			hurried = c.awake()
			c.halt(true)
		}
	}
}

// awake returns how long this process has been running without stalls, ns.
func (c *Coordinator) awake() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Now() - c.stalled
}

// halt stops offering because the user asked for it; cut ends everything at once.
func (c *Coordinator) halt(cut bool) {
	c.mu.Lock()
	c.orders.Stop, c.orders.Leave, c.interrupted = true, true, true
	c.cut = c.cut || cut
	c.mu.Unlock()
	c.remote.Order()
}

// Abort tells the workers that the run has no figures.
func (c *Coordinator) Abort(err error) {
	c.mu.Lock()
	c.abort = err
	c.mu.Unlock()
	c.remote.Order()
}

// hear records that a worker was heard from.
func (c *Coordinator) hear(w *worker) {
	w.heard = c.base.Now() - c.stalled
	if !w.silent {
		return
	}
	w.silent = false
	at := c.instant()
	away := &w.absences[len(w.absences)-1]
	away.To = at
	c.event(w, engine.Event{At: at, Kind: "agent-back", Text: fmt.Sprintf("answers again after %v of silence", time.Duration(at-away.From).Round(100*time.Millisecond))})
}

// Listen records which workers have been silent for long. Time for which this process stood still,
// as on a suspended host, does not count, since it could hear from nobody.
func (c *Coordinator) Listen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.base.Now()
	if stood := now - c.listened; c.listened != 0 && stood > int64(stallLimit) {
		c.stalled += stood
	}
	c.listened = now
	limit := SilentLimit
	if c.epochNS == 0 {
		limit = beginLimit
	}
	awake := now - c.stalled
	for _, w := range c.workers {
		w.heard = min(w.heard, awake)
		if w.silent || w.ended || awake-w.heard < int64(limit) {
			continue
		}
		w.silent = true
		at := c.instant()
		w.absences = append(w.absences, Absence{From: at - int64(limit)})
		c.event(w, engine.Event{At: at, Kind: "agent-silent", Text: fmt.Sprintf("silent for %v", limit)})
		c.lost(w, fmt.Sprintf("silent for %v", limit))
		if c.epochNS == 0 && c.failure == nil {
			c.failure = fmt.Errorf("agent %s: %w for %v before the run began", w.name, ErrSilent, limit)
		}
	}
	c.advance()
	c.seconds.late(now)
}

// Vanished records that a worker is no longer connected. In the measured window that alone decides nothing: the
// worker may come back.
func (c *Coordinator) Vanished(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.workers[i]; !w.ended {
		c.lost(w, "its connection ended")
	}
}

// Measuring reports whether the measured window has begun.
func (c *Coordinator) Measuring() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.measuring()
}

func (c *Coordinator) measuring() bool { return c.clock != nil && c.instant() >= c.outline.From }

// silentFor reports whether all workers were silent for that long.
func (c *Coordinator) silentFor(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if !w.ended && c.base.Now()-c.stalled-w.heard < int64(d) {
			return false
		}
	}
	return true
}

// Begun reports whether the epoch is fixed.
func (c *Coordinator) Begun() bool { return c.EpochNS() != 0 }

// Ended reports whether every worker has ended; with gone, vanished ones count as ended.
func (c *Coordinator) Ended(gone bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if !w.ended && (!gone || !w.silent) {
			return false
		}
	}
	return true
}

// EndReported is End for a worker that has reported its intervals and ledger before.
func (c *Coordinator) EndReported(i int, r *engine.WorkerResult, extremes *measure.Extremes, window measure.Window, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workers[i]
	r.Snapshot, r.Ledger = w.snapshot, w.ledger
	r.Snapshot.Widen(extremes)
	c.together.Widen(extremes)
	r.Snapshot.Window = window
	c.end(i, r, err)
}

// A Decision is what has been decided for all workers so far.
type Decision struct {
	engine.Orders
	Released int     // stages that all may pass
	EpochsNS []int64 // the run's epoch on each worker's monotonic clock; nil before it is fixed
	Lay      uint64  // see engine.Agreed
	Remover  int     // the worker that removes the destinations, if the one that created them is gone; -1: none
	Cut      bool    // all end at once
	Abort    error   // why the run has no figures; nil: it may have
}

// Decided returns the decisions so far.
func (c *Coordinator) Decided() Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := Decision{Orders: c.orders, Remover: -1, Cut: c.cut, Abort: c.abort}
	for _, r := range c.released {
		if !latch.Closed(r) {
			break
		}
		d.Released++
	}
	if c.epochNS != 0 {
		for i := range c.workers {
			d.EpochsNS = append(d.EpochsNS, c.translate(i, c.epochNS))
		}
	}
	if d.Released > int(engine.Filled) {
		d.Lay = engine.Behind(c.standing()).Waiting()
	}
	if first := c.workers[0]; (d.Over || d.Abort != nil) && (first.silent || first.early) {
		for i, w := range c.workers {
			if !w.silent && !w.ended && !w.early {
				d.Remover = i
				break
			}
		}
	}
	if d.Abort == nil && c.epochNS == 0 {
		d.Abort = c.failure
	}
	return d
}

// Look decides, as of now, what all workers do next.
func (c *Coordinator) Look() engine.Orders { return c.look(c.Now()) }

// Absences returns when a worker was not heard from.
func (c *Coordinator) Absences(i int) []Absence {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workers[i].absences
}

// Limits returns the number of streams and subscriptions in this run's ledgers.
func (c *Coordinator) Limits() ledger.Limits { return c.outline.Limits }

// EpochNS returns the run's epoch on this host's monotonic clock; 0 before it is fixed.
func (c *Coordinator) EpochNS() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochNS
}

// Wall returns the epoch, which must be fixed, on the wall clock.
func (c *Coordinator) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.Epoch().Wall
}

// Resume sets the epoch, on this host's monotonic clock, of a run that has already begun. It must
// be called before anything else.
func (c *Coordinator) Resume(epochNS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start(epochNS)
	for stage := engine.Declared; stage <= engine.Opened; stage++ {
		close(c.released[stage])
	}
}

// Deliveries appends to b the encoded deliveries, of all workers together, of the streams that
// several of them receive; nothing if there are none.
func (c *Coordinator) Deliveries(b []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	receive := 0
	for _, w := range c.workers {
		if !w.ledger.Empty() && w.share.Consumers.Index < c.cfg.Consumers {
			receive++
		}
	}
	if receive < 2 {
		return b, nil
	}
	joined, err := c.joined()
	if err != nil {
		return b, err
	}
	joined.Deliveries(&c.union)
	return c.union.AppendBinary(b)
}
