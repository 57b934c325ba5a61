package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// Limits of a coordinator's waits.
const (
	startLead  = 20 * time.Millisecond // from the agreement to the epoch, if all workers are in this process
	beginLimit = 30 * time.Second      // as SilentLimit before the run begins, when agents calibrate side by side
	graceLimit = 3 * time.Second       // for the others' same second to arrive
)

// SilentLimit is how long a remote worker may be silent before it counts as gone, until it is heard
// from again.
const SilentLimit = 10 * time.Second

// Errors that callers distinguish.
var (
	// ErrAgent: an agent ended before the run's end, or never began.
	ErrAgent = errors.New("agent failed")
	// ErrSilent: an agent was no longer heard from.
	ErrSilent = errors.New("agent silent")
	// ErrLost: an agent was lost before the measured window, and the run was called off (Remote.Restarts).
	ErrLost = errors.New("lost before the measured window")
)

// A Coordinator decides for all workers of a run: when each stage is passed, the epoch, when to
// stop, when paused consumers resume, when the drain is over. It sums what the workers report and
// combines their results.
//
// Its methods may be called by any goroutine.
type Coordinator struct {
	cfg     engine.Config
	outline engine.Outline
	base    *pace.Clock // of this process, with an epoch of its own
	remote  *Remote     // nil: all workers are in this process

	mu          sync.Mutex
	workers     []*worker
	released    [engine.NumStages]chan struct{} // closed when all may pass
	epochNS     int64                           // of the run, on this host's monotonic clock; 0 before
	clock       *pace.Clock                     // that counts from it
	failure     error                           // why the run ends; nil while it continues
	abort       error                           // why it has no figures; nil: it may have
	orders      engine.Orders                   // decisions so far
	interrupted bool                            // the user wants the run to end; local workers know that themselves
	cut         bool                            // immediately
	quietAt     int64                           // since when nothing is open anywhere; -1: something is
	figured     bool                            // Figures was called: later reports are ignored
	seconds     seconds
	phases      []string        // that were reported
	statuses    []engine.Status // scratch of standing
	listened    int64           // last call of Listen, by base
	stalled     int64           // total time for which this process stood still

	looking sync.Mutex      // one call of look at a time
	seen    []engine.Status // scratch of look
	drain   *drain
	union   ledger.Part // of deliveries

	// together is what all remote workers observed, of all kinds but the scheduling stalls of each worker's host. A histogram
	// takes up to a quarter of a MiB, and nobody asks for those of one agent.
	together measure.Snapshot
}

// A worker is one process's part of the run: in this process, or on an agent.
type worker struct {
	name  string
	share engine.Worker

	come     int // stages reached
	facts    driver.Facts
	status   engine.Status
	stood    bool  // it has reported a status
	heard    int64 // last time, as returned by awake
	silent   bool
	absences []Absence

	snapshot measure.Snapshot // sum of its intervals, without the kinds that Coordinator.together has
	seen     int64            // instant of the latest interval's end
	ledger   ledger.Part
	knownAt  int64 // instant of the ledger
	final    *engine.WorkerResult
	err      error // it ended without figures
	ended    bool
	early    bool // ended before the drain was over

	holds func(sub int) (nothing, answered bool)
}

// An Absence is when a worker was not heard from, in ns since the run's epoch. To is 0 if it never
// came back.
type Absence struct{ From, To int64 }

// New returns the coordinator of a run of cfg. Its callbacks receive the sum over all workers.
// names are the workers' names, shares what each carries. remote is nil if they are in this
// process.
func New(cfg engine.Config, names []string, shares []engine.Worker, remote *Remote) (*Coordinator, error) {
	outline, err := cfg.Outline()
	if err != nil {
		return nil, err
	}
	c := &Coordinator{cfg: cfg, outline: outline, base: cfg.Clock, remote: remote, quietAt: -1}
	c.drain = newDrain(&c.cfg, outline)
	for i := range c.released {
		c.released[i] = make(chan struct{})
	}
	for i, n := range names {
		w := &worker{name: n, share: shares[i], heard: c.base.Now()}
		if remote != nil {
			w.holds = func(sub int) (bool, bool) { return remote.Holds(i, sub) }
		}
		c.workers = append(c.workers, w)
	}
	c.seconds.emit, c.seconds.every, c.seconds.workers = cfg.OnInterval, int64(cfg.Every), len(names)
	return c, nil
}

// translate converts an instant of this host's monotonic clock to a worker's.
func (c *Coordinator) translate(i int, ns int64) int64 {
	if c.remote == nil {
		return ns
	}
	return c.remote.Translate(i, ns)
}

// Now returns the instant in ns since the run's epoch; 0 before there is one.
func (c *Coordinator) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instant()
}

// instant is Now under the lock.
func (c *Coordinator) instant() int64 {
	if c.clock == nil {
		return 0
	}
	return c.clock.Now()
}

// Reached records how many stages a worker has reached, with what it has read from the system; nil:
// nothing yet.
func (c *Coordinator) Reached(i, stages int, facts *driver.Facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workers[i]
	c.hear(w)
	w.come = max(w.come, min(stages, int(engine.NumStages)))
	if facts != nil {
		w.facts = *facts
	}
	c.advance()
}

// advance opens the stages that every worker has reached. A worker that has ended, or is silent
// once the run has begun, does not block the others.
func (c *Coordinator) advance() {
	if c.failure != nil && c.epochNS == 0 {
		return // the run does not take place
	}
	for stage := range c.released {
		if latch.Closed(c.released[stage]) {
			continue
		}
		for _, w := range c.workers {
			if w.come <= stage && !w.ended && (!w.silent || c.epochNS == 0) {
				return
			}
		}
		if c.begins(engine.Stage(stage)) {
			if c.remote != nil && !c.remote.Ready() {
				return
			}
			c.begin()
		}
		close(c.released[stage])
	}
}

// begins reports whether releasing the stage fixes the epoch.
func (c *Coordinator) begins(stage engine.Stage) bool {
	if c.cfg.Mode == engine.Consume {
		return stage == engine.Declared
	}
	return stage == engine.Opened
}

// begin fixes the epoch.
func (c *Coordinator) begin() {
	lead := startLead
	switch {
	case c.cfg.Mode == engine.Consume:
		lead = 0 // the first delivery may come as soon as a consumer runs
	case c.remote != nil:
		lead = c.remote.Lead
	}
	c.start(c.base.Monotonic() + int64(lead))
}

// start starts the run at an epoch on this host's monotonic clock.
func (c *Coordinator) start(epochNS int64) {
	c.epochNS, c.clock = epochNS, c.base.At(epochNS)
	if c.cfg.OnStart != nil {
		c.cfg.OnStart(c.clock.Epoch())
	}
}

// agreed returns what the workers agreed on at a released stage.
func (c *Coordinator) agreed(i int, stage engine.Stage) (a engine.Agreed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epochNS != 0 {
		a.EpochNS = c.translate(i, c.epochNS)
	}
	if stage == engine.Filled {
		a.Lay = engine.Behind(c.standing()).Waiting()
	}
	return a
}

// Status records the status of a worker.
func (c *Coordinator) Status(i int, s *engine.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workers[i]
	c.hear(w)
	if len(s.Subs) > c.outline.Limits.Subscriptions {
		return // not a worker of this run
	}
	subs := append(w.status.Subs[:0], s.Subs...)
	w.status, w.stood = *s, true
	w.status.Subs = subs
}

// event reports an event of a worker, or one that it reported.
func (c *Coordinator) event(w *worker, ev engine.Event) {
	if c.cfg.OnEvent == nil {
		return
	}
	if len(c.workers) > 1 {
		switch {
		case ev.Kind != "phase":
			ev.Text = w.name + ": " + ev.Text
		case slices.Contains(c.phases, ev.Text):
			return // all workers report the same: the first one's counts
		default:
			c.phases = append(c.phases, ev.Text)
		}
	}
	c.cfg.OnEvent(ev)
}

// Event takes an event from a worker; none after Figures.
func (c *Coordinator) Event(i int, ev engine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.figured {
		c.event(c.workers[i], ev)
	}
}

// Tell reports a run-level event.
func (c *Coordinator) Tell(ev engine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.OnEvent != nil {
		c.cfg.OnEvent(ev)
	}
}

// Interval adds a worker's latest interval. It does not keep iv.
func (c *Coordinator) Interval(i int, iv *measure.Interval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.figured {
		return
	}
	w := c.workers[i]
	if c.remote != nil { // a local worker returns everything at the end
		own, others := measure.Snapshot{Counters: iv.Counters, Window: iv.Window}, measure.Snapshot{At: iv.To, Kinds: iv.Kinds}
		own.Kinds[measure.Hiccups], others.Kinds[measure.Hiccups] = iv.Kinds[measure.Hiccups], own.Kinds[measure.Hiccups]
		w.snapshot.Merge(&own)
		c.together.Merge(&others)
	}
	w.seen = max(w.seen, iv.To)
	if len(c.workers) > 1 {
		iv.Backlog = engine.Behind(c.standing())
	}
	c.seconds.add(i, iv, c.base.Now())
}

// Ledger records the contents of a worker's ledger at the instant at. It does not keep the part.
func (c *Coordinator) Ledger(i int, at int64, p *ledger.Part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.figured {
		return
	}
	w := c.workers[i]
	w.ledger.Assign(p)
	w.knownAt = at
}

// standing returns the statuses of all workers; a worker that is gone has nothing under way. nil: a
// status is missing. The slice is valid until the next call.
func (c *Coordinator) standing() []engine.Status {
	c.statuses = c.statuses[:0]
	for _, w := range c.workers {
		if !w.stood {
			if w.silent || w.ended {
				continue
			}
			return nil
		}
		s := w.status
		if w.silent || w.ended {
			s.Open, s.Draining, s.Replying, s.Failed, s.Gone, s.Cut = 0, true, false, "", "", false
		}
		c.statuses = append(c.statuses, s)
	}
	return c.statuses
}

// snap copies the statuses, for use without the lock: a worker of this process overwrites its
// subscriptions with its next status. Called with looking held.
func (c *Coordinator) snap(statuses []engine.Status) []engine.Status {
	for len(c.seen) < len(statuses) {
		c.seen = append(c.seen, engine.Status{})
	}
	copies := c.seen[:len(statuses)]
	for i := range statuses {
		subs := append(copies[i].Subs[:0], statuses[i].Subs...)
		copies[i] = statuses[i]
		copies[i].Subs = subs
	}
	return copies
}

// look decides, as of the instant now of the run, what all workers do next.
func (c *Coordinator) look(now int64) engine.Orders {
	c.looking.Lock()
	defer c.looking.Unlock()
	c.mu.Lock()
	if c.orders.Over || c.clock == nil {
		defer c.mu.Unlock()
		return c.orders
	}
	statuses := c.snap(c.standing())
	open := uint64(0)
	for i := range statuses {
		open += statuses[i].Open
	}
	if open > 0 || len(statuses) == 0 {
		c.quietAt = -1
	} else if c.quietAt < 0 {
		c.quietAt = now
	}
	c.mu.Unlock()
	o := c.drain.look(now, statuses, func() bool { return c.complete(statuses) }, c.ask)
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Stop && !c.orders.Stop {
		c.orders.Stop, c.orders.Why = true, o.Why
	}
	c.orders.Over = c.orders.Over || o.Over
	c.orders.Resume = o.Resume
	return c.orders
}

// complete reports whether nothing is missing. A single process knows by itself; with several, all
// ledgers must be newer than the moment when the last message was no longer open.
func (c *Coordinator) complete(statuses []engine.Status) bool {
	if len(statuses) == 1 {
		return statuses[0].Complete
	}
	if engine.Behind(statuses).Waiting() > 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if !w.silent && !w.ended && w.knownAt <= c.quietAt {
			return false
		}
	}
	joined, err := c.joined()
	return err == nil && joined.Complete()
}

// joined joins the workers' latest ledgers.
func (c *Coordinator) joined() (*ledger.Joined, error) {
	var ledgers []*ledger.Part
	for _, w := range c.workers {
		if !w.ledger.Empty() {
			ledgers = append(ledgers, &w.ledger)
		}
	}
	return ledger.Join(ledgers, c.vanished)
}

// vanished reports whether a stream's producer is on a worker that is gone.
func (c *Coordinator) vanished(stream uint32) bool {
	return slices.ContainsFunc(c.workers, func(w *worker) bool {
		return (w.silent || w.ended) && w.final == nil && w.share.Sends(c.cfg.Plan.Producers, stream)
	})
}

// ask asks the system about a subscription through every connected worker: each knows only its own
// connections. answered if each was, and nothing if each says so.
func (c *Coordinator) ask(sub int) (nothing, answered bool) {
	c.mu.Lock()
	var can []func(int) (bool, bool)
	for _, w := range c.workers {
		if w.holds != nil && !w.silent && !w.ended {
			can = append(can, w.holds)
		}
	}
	c.mu.Unlock()
	var all sync.WaitGroup
	said := make([]struct{ nothing, answered bool }, len(can))
	for i, holds := range can {
		all.Go(func() { said[i].nothing, said[i].answered = holds(sub) })
	}
	all.Wait()
	nothing, answered = true, len(can) > 0
	for _, s := range said {
		nothing, answered = nothing && s.nothing, answered && s.answered
	}
	return nothing && answered, answered
}

// End records that a worker has ended: with figures, or an error, or both.
func (c *Coordinator) End(i int, result *engine.WorkerResult, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(i, result, err)
}

func (c *Coordinator) end(i int, result *engine.WorkerResult, err error) {
	w := c.workers[i]
	if w.ended {
		return
	}
	w.ended, w.final, w.err, w.early = true, result, err, !c.orders.Over
	if result != nil && result.Interrupted && !c.interrupted {
		c.lost(w, "it ended by itself")
	}
	if result == nil && c.failure == nil {
		if err == nil {
			err = errors.New("it returned nothing")
		}
		if len(c.workers) > 1 {
			err = fmt.Errorf("agent %s: %w", w.name, err)
		}
		c.failure = err
		c.orders.Stop = true
	}
	c.seconds.workers--
	c.advance()
}

// lost calls the run off if it can be started again with another worker.
func (c *Coordinator) lost(w *worker, why string) {
	if c.remote == nil || !c.remote.Restarts || c.failure != nil || c.measuring() {
		return
	}
	c.failure = fmt.Errorf("agent %s was %w: %s", w.name, ErrLost, why)
	c.orders.Stop, w.early = true, true
}

// Why returns why the run ends; nil while it continues.
func (c *Coordinator) Why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// Figures combines the workers' results. A nil Raw comes with an error; both are returned if a
// worker ended with figures and an error. Reports of workers that were given up may still arrive: they
// are ignored from here on.
func (c *Coordinator) Figures() (*engine.Raw, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seconds.flush()
	c.figured = true
	var results []*engine.WorkerResult
	var errs []error
	figures, known := false, false
	for i, w := range c.workers {
		r := w.final
		if r == nil {
			r = c.leftover(i)
		} else {
			figures = true
			r.Worker = w.share
			if c.remote != nil && r.Interrupted && !c.interrupted {
				// Stopped by its own user while the others continued: what it had still to send is
				// missing, as if it had vanished.
				r.Missing, r.Interrupted = true, false
				w.absences = append(w.absences, Absence{From: r.To})
				c.event(w, engine.Event{At: r.To, Kind: "agent-ended", Text: "ended by itself, before the run's end"})
			}
			errs = append(errs, w.err)
		}
		known = known || !r.Ledger.Empty()
		results = append(results, r)
	}
	if !known || !figures && (c.failure != nil || c.epochNS == 0) {
		if c.failure == nil {
			return nil, fmt.Errorf("%w: nothing was reported", ErrAgent)
		}
		return nil, c.failure
	}
	found := c.drain.outcome
	found.Together = c.together
	found.Ended = c.instant()
	raw, err := engine.Assemble(c.cfg, results, found)
	if raw != nil && c.epochNS != 0 && (c.remote != nil || len(c.workers) > 1) {
		raw.Epoch = c.clock.Epoch()
	}
	return raw, errors.Join(append(errs, err)...)
}

// leftover returns what is known of a worker that vanished.
func (c *Coordinator) leftover(i int) *engine.WorkerResult {
	w := c.workers[i]
	r := &engine.WorkerResult{Worker: w.share, Missing: true, Facts: w.facts, Ended: w.seen, From: c.outline.From, To: w.seen, Snapshot: w.snapshot, Ledger: w.ledger}
	if c.epochNS != 0 {
		r.Epoch = pace.Epoch{Wall: c.clock.Epoch().Wall, MonotonicNS: c.translate(i, c.epochNS)}
	}
	return r
}
