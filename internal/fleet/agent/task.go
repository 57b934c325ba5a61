package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Limits of a task's waits.
const (
	postLimit  = 5 * time.Minute  // to store the last report
	errorLimit = 15 * time.Second // for the coordinator to learn that the part failed
)

// A task is an agent's part of one run.
type task struct {
	agent *Agent
	job   *protocol.Job
	cfg   engine.Config
	clock *pace.Clock
	post  *post

	ctx       context.Context
	cancel    context.CancelFunc
	ended     chan struct{} // closed when the part has ended, and only reporting remains
	dismissed chan struct{} // closed when the coordinator has a next job
	dismissal sync.Once
	done      chan struct{}

	mu        sync.Mutex
	orders    protocol.Orders
	ordered   time.Time     // time of the latest orders
	news      chan struct{} // closed and replaced when orders arrive
	come      int
	progress  *engine.Progress
	status    engine.Status
	stood     bool
	drainedAt time.Time // start of the drain
	failure   error     // why it ended without figures
	cut       bool
	folder    *result.Folder
	seconds   measure.Seconds // for the folder
	exchanges exchanges
	lines     atomic.Pointer[[]protocol.Line]
	epoch     atomic.Int64 // on the host's monotonic clock; 0: unknown yet
	owners    []int        // agent of each producer
	limits    ledger.Limits
	facts     atomic.Pointer[func(context.Context) (driver.Facts, error)] // of the part that declares destinations; nil before that
	breaks    *breaking                                                   // connection and clock faults; nil: none
}

// newTask creates a task from a job. It reads the scenario, which this agent must be allowed to execute.
func newTask(a *Agent, j *protocol.Job) (*task, error) {
	s, err := theScenario(a, j.Scenario, j.Files, false)
	if err != nil {
		return nil, err
	}
	switch {
	case len(j.Address) > 0:
		if err := s.Connect(j.Address, j.Options); err != nil {
			return nil, err
		}
	case s.System.Start != scenario.StartNone:
		return nil, errors.New("the scenario starts the system, and agents start none on their hosts (let the coordinator start it, use --start-on AGENT, or set start: none and an address)")
	}
	_, broken := fault.Apart(s.Faults)
	broken = slices.DeleteFunc(fault.Share(broken, a.Name), func(f fault.Fault) bool {
		return len(j.Servers) == 0 && !f.OfAgents() // another process breaks connections
	})
	if err := a.permits(len(broken)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &task{
		agent: a, job: j, ctx: ctx, cancel: cancel, news: make(chan struct{}), ordered: time.Now(),
		ended: make(chan struct{}), dismissed: make(chan struct{}), done: make(chan struct{}),
	}
	t.clock = a.Clock()
	if len(broken) > 0 {
		t.breaks = &breaking{task: t, faults: broken, from: s.WarmUp, window: max(0, s.Length()-s.WarmUp)}
		if slices.ContainsFunc(broken, fault.Fault.OfAgents) {
			t.breaks.clock = newStepping(a)
		}
	}
	t.cfg = s.Config(j.Run, j.Number)
	t.cfg.OnOpen = func(facts func(context.Context) (driver.Facts, error)) { t.facts.Store(&facts) }
	t.cfg.Worker = j.Workers[j.Index]
	t.cfg.Clock, t.cfg.Log, t.cfg.Wire = t.clock, a.Log, j.Wire
	t.cfg.OnStart, t.cfg.OnInterval, t.cfg.OnEvent, t.cfg.OnLedger = t.start, t.interval, t.event, t.ledger
	t.owners = make([]int, t.cfg.Plan.Producers)
	for p := range t.owners {
		for i, share := range j.Workers {
			if share.Sends(t.cfg.Plan.Producers, uint32(p)) {
				t.owners[p] = i
			}
		}
	}
	outline, err := t.cfg.Outline()
	if err != nil {
		cancel()
		return nil, err
	}
	t.limits = outline.Limits
	if len(j.Agents) > 1 {
		t.cfg.Correct = t.correct
	}
	if t.post, err = newPost(a.nc, protocol.ReportSubject(j.Session, j.Run, a.instance), a.Name, j.Run+"."+a.instance, a.Log); err != nil {
		cancel()
		return nil, err
	}
	return t, nil
}

// run executes the part, and returns when it has been reported or no coordinator listens.
func (t *task) run() {
	defer t.cancel()
	sub, err := t.agent.nc.Subscribe(protocol.OrdersPrefix+t.job.Session, t.hear)
	if err != nil {
		t.fail(fmt.Errorf("listening for orders: %w", err))
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	union, err := t.agent.nc.Subscribe(protocol.DeliveriesSubject(t.job.Session, t.job.Run), t.adopt)
	if err != nil {
		t.fail(fmt.Errorf("listening for the deliveries of others: %w", err))
		return
	}
	defer func() { _ = union.Unsubscribe() }()
	var side sync.WaitGroup
	telling, end := context.WithCancel(context.Background())
	side.Go(func() { t.stand(telling) })
	side.Go(func() { t.agent.compare(telling, t.clock, t.job.Session, &t.exchanges) })
	side.Go(func() { t.post.run(telling) })
	defer side.Wait()
	defer end()

	f, part, err := t.measure()
	if part == nil {
		t.fail(err)
		close(t.ended)
		t.await(errorLimit, func(o *protocol.Orders) bool { return o.Abort != "" || o.Run != "" && o.Run != t.job.Run })
		return
	}
	if err != nil {
		f.Error, f.Kind = err.Error(), protocol.KindOf(err)
	}
	if part.Gone != nil {
		f.Gone, f.GoneKind = part.Gone.Error(), protocol.KindOf(part.Gone)
	}
	f.Part, f.Window = part, part.Snapshot.Window
	f.Extremes = part.Snapshot.Extremes()
	if part.Late != nil {
		f.Late, _ = part.Late.AppendBinary(nil) // never fails for the engine's ledgers
	}
	ledger, _ := part.Ledger.AppendBinary(nil) // likewise
	t.post.last(part.Ended, ledger, f)
	close(t.ended)
	if t.folder != nil {
		if rest := t.seconds.Rest(); rest != nil {
			_ = t.folder.AppendInterval(rest)
		}
		_ = t.folder.Close() // its own files are optional: the coordinator has the run's
	}
	if !t.post.wait(postLimit, t.agent.ending) {
		t.agent.Log.Warn("the last report was not taken", "run", t.job.Run)
	}
	// Compare the clocks for a moment longer than the run.
	t.await(time.Second, func(*protocol.Orders) bool { return false })
}

// measure calibrates and runs the engine's part.
func (t *task) measure() (*protocol.Final, *engine.WorkerResult, error) {
	f := &protocol.Final{Host: host.Environment(t.ctx), Daemons: []host.Daemon{host.AskDaemon(t.ctx, t.clock)}}
	t.cfg.FIFO = t.agent.FIFO
	t.cfg.Pace(pace.Cores())
	if t.cfg.FIFO && !t.cfg.Calibration.FIFO {
		t.agent.note("--fifo: a pacer %s", t.cfg.Calibration.Why)
	}
	f.Procs = t.cfg.Procs()
	var err error
	if f.Cost, err = selftest.Cost(t.ctx, t.cfg.Plan, t.cfg.Calibration, t.cfg.Pacers); err != nil {
		return f, nil, err
	}
	part, err := engine.Execute(t.ctx, nil, t.cfg, t)
	f.Faults = t.breaks.finish()
	if f.Daemons[0].Known() {
		f.Daemons = append(f.Daemons, host.AskDaemon(t.ctx, t.clock))
	}
	return f, part, err
}

func (t *task) fail(err error) {
	if err == nil {
		err = errors.New("it returned nothing")
	}
	if latch.Closed(t.agent.ending) {
		err = fmt.Errorf("%w: %w", protocol.ErrLeft, err)
	}
	t.mu.Lock()
	t.failure = err
	t.mu.Unlock()
	t.agent.Log.Warn("part failed", "run", t.job.Run, "why", err)
}

// how says how the task ended, unless it succeeded.
func (t *task) how() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure != nil {
		return ": " + t.failure.Error()
	}
	return ""
}

// dismiss ends a task that is only lingering.
func (t *task) dismiss() { t.dismissal.Do(func() { close(t.dismissed) }) }

// await waits until the orders satisfy satisfied, the coordinator has a next job, or most has passed.
func (t *task) await(most time.Duration, satisfied func(*protocol.Orders) bool) {
	ctx, cancel := context.WithTimeout(t.ctx, most)
	defer cancel()
	for {
		t.mu.Lock()
		ok, news := satisfied(&t.orders), t.news
		t.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-t.dismissed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// hear handles orders.
func (t *task) hear(m *nats.Msg) {
	var o protocol.Orders
	if err := protocol.Decode(m.Data, protocol.OrdersSize, &o); err != nil {
		t.agent.limited.Warn("orders refused", "", "why", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ordered = time.Now()
	if o.Run != t.job.Run {
		return
	}
	t.orders = o
	if len(o.Lines) == len(t.job.Agents) {
		t.lines.Store(&o.Lines)
	}
	close(t.news)
	t.news = make(chan struct{})
	if (o.Cut || o.Abort != "" && t.come > int(engine.Opened)) && !t.cut {
		t.cut = true
		t.cancel()
	}
}

// adopt applies what all agents together received.
func (t *task) adopt(m *nats.Msg) {
	t.mu.Lock()
	p, stood := t.progress, t.stood
	t.mu.Unlock()
	if p == nil || !stood {
		return
	}
	part := &ledger.Part{Limits: t.limits}
	if err := part.UnmarshalBinary(m.Data); err != nil {
		t.agent.limited.Warn("a message about deliveries of others is refused", "", "why", err)
		return
	}
	p.Adopt(part)
}

// Meet implements engine.Peers.
func (t *task) Meet(ctx context.Context, stage engine.Stage, p *engine.Progress) (engine.Agreed, error) {
	t.mu.Lock()
	t.progress, t.come = p, max(t.come, int(stage)+1)
	t.mu.Unlock()
	for {
		t.mu.Lock()
		o, news, lost := t.orders, t.news, time.Since(t.ordered) > protocol.LostLimit
		t.mu.Unlock()
		switch {
		case stage == engine.Left && t.cfg.Worker.Follows && o.Remover != t.agent.Name:
			return engine.Agreed{}, nil
		case stage == engine.Left && o.Remover == t.agent.Name:
			return engine.Agreed{Removes: true}, nil
		case o.Abort != "":
			return engine.Agreed{}, fmt.Errorf("%w: %s", coordinator.ErrAgent, o.Abort)
		case o.Released > int(stage):
			return engine.Agreed{EpochNS: o.Epoch[t.agent.Name], Lay: o.Lay}, nil
		case lost:
			return engine.Agreed{}, fmt.Errorf("no orders from the coordinator for %v", protocol.LostLimit)
		}
		select {
		case <-news:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return engine.Agreed{}, context.Cause(ctx)
		}
	}
}

// Orders implements engine.Peers.
func (t *task) Orders(s *engine.Status) engine.Orders {
	t.mu.Lock()
	defer t.mu.Unlock()
	subs := append(t.status.Subs[:0], s.Subs...)
	t.status = *s
	t.status.Subs = subs
	t.stood = true
	o := engine.Orders{Resume: t.orders.Resume, Stop: t.orders.Stop || t.orders.Abort != "", Why: t.orders.Why, Over: t.orders.Over || t.orders.Abort != "", Leave: t.orders.Leave || t.orders.Abort != ""}
	if s.Draining {
		if t.drainedAt.IsZero() {
			t.drainedAt = time.Now()
		}
		// Without a coordinator the processes know nothing of each other: what is open after the drain's
		// time stays open.
		o.Over = o.Over || time.Since(t.drainedAt) > t.cfg.Drain && time.Since(t.ordered) > protocol.LostLimit
	}
	return o
}

// correct is engine.Config.Correct.
func (t *task) correct(stream uint32, at int64) int64 {
	from := t.owners[int(stream)%len(t.owners)]
	lines := t.lines.Load()
	if from == t.job.Index || lines == nil {
		return 0
	}
	return (*lines)[t.job.Index].Added(at) - (*lines)[from].Added(at)
}

// stand publishes the part's standing until ctx ends.
func (t *task) stand(ctx context.Context) {
	tick := time.NewTicker(standingEvery)
	defer tick.Stop()
	for {
		s := protocol.Standing{Run: t.job.Run, Exchanges: t.exchanges.take()}
		t.mu.Lock()
		s.Come = t.come
		if t.stood {
			s.Status = &t.status
		}
		if t.progress != nil && t.come > int(engine.Opened) {
			facts := t.progress.Facts()
			s.Facts = &facts
		}
		if t.failure != nil {
			s.Error, s.Kind = t.failure.Error(), protocol.KindOf(t.failure)
		}
		b := protocol.Encode(&s)
		t.mu.Unlock()
		_ = t.agent.nc.Publish(protocol.StandingSubject(t.job.Session, t.agent.instance), b) // the next one repeats it
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// exchanges are the latest unreported exchanges with a coordinator's clock.
type exchanges struct {
	mu  sync.Mutex
	all []offset.Exchange
}

// mostExchanges is how many may wait to be reported.
const mostExchanges = 64

func (x *exchanges) add(e offset.Exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.all) == mostExchanges {
		x.all = x.all[1:]
	}
	x.all = append(x.all, e)
}

func (x *exchanges) take() (all []offset.Exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all, x.all = x.all, nil
	return all
}

// compare compares a clock with that of a session's coordinator until ctx ends.
func (a *Agent) compare(ctx context.Context, clock *pace.Clock, session string, into *exchanges) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		if e, ok := a.exchange(ctx, clock, session); ok {
			into.add(e)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// exchange asks the coordinator for its clock's readings.
func (a *Agent) exchange(ctx context.Context, clock *pace.Clock, session string) (e offset.Exchange, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, protocol.ClockLimit)
	defer cancel()
	e.T1 = clock.Monotonic()
	m, err := a.nc.RequestWithContext(ctx, protocol.ClockSubject(session), nil)
	e.T4 = clock.Monotonic()
	if err != nil || len(m.Data) != 16 {
		return e, false
	}
	e.T2, e.T3 = int64(binary.LittleEndian.Uint64(m.Data)), int64(binary.LittleEndian.Uint64(m.Data[8:]))
	return e, true
}

// holds queries the system about a subscription during the part.
func (t *task) holds(sub int) (nothing, answered bool) {
	t.mu.Lock()
	p, stood := t.progress, t.stood
	subs := len(t.status.Subs)
	t.mu.Unlock()
	if p == nil || !stood || sub < 0 || sub >= subs {
		return false, false
	}
	return p.Holds(sub)
}

// start is engine.Config.OnStart.
func (t *task) start(epoch pace.Epoch) {
	t.epoch.Store(epoch.MonotonicNS)
	t.breaks.begin(epoch)
	if t.agent.Dir == "" {
		return
	}
	f, err := result.Create(filepath.Join(t.agent.Dir, t.job.Run+"-"+t.agent.Name))
	if err == nil {
		err = f.StartIntervals(epoch.Wall, t.agent.Version)
	}
	if err != nil {
		t.agent.Log.Warn("the agent's own files could not be written", "why", err)
		return
	}
	t.folder = f
}

// interval is engine.Config.OnInterval.
func (t *task) interval(iv *measure.Interval) {
	if t.folder != nil {
		if second := t.seconds.Add(iv); second != nil {
			_ = t.folder.AppendInterval(second) // see run
		}
	}
	t.post.interval(iv)
}

// event is engine.Config.OnEvent.
func (t *task) event(ev engine.Event) {
	if t.folder != nil {
		_ = t.folder.AppendEvent(result.Event{TNS: ev.At, Kind: ev.Kind, Text: ev.Text})
	}
	t.post.event(ev)
}

// ledger is engine.Config.OnLedger.
func (t *task) ledger(at int64, p *ledger.Part) { t.post.ledger(at, p) }
