package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/proctree"
	"github.com/weirmq/weir/internal/tcpreset"
	"github.com/weirmq/weir/result"
)

// A Disturbance has what the execution of server faults needs from the run.
type Disturbance struct {
	Clock   *pace.Clock                                       // counts from the epoch of the run
	Leaders func(ctx context.Context) (all []string, e error) // as in driver.Facts
	Keep    func(n int, f result.Fault)                       // stores the state of the n-th fault
	Tell    func(at int64, text string)                       // reports a step of it, after Keep
}

// permits refuses faults, with protocol.ErrNotAllowed, if the agent may execute none.
func (a *Agent) permits(faults int) error {
	if faults > 0 && !slices.Contains(a.Allow, AllowFaults) {
		return fmt.Errorf("%w: faults on this host need weir agent --allow faults", protocol.ErrNotAllowed)
	}
	return nil
}

// able refuses fault verbs, with protocol.ErrNotAllowed, that the agent may not, or cannot, execute on its
// host.
func (a *Agent) able(ctx context.Context, verbs []string) error {
	if len(verbs) == 0 {
		return nil
	}
	if err := a.permits(len(verbs)); err != nil || a.Able == nil {
		return err
	}
	err := a.Able(ctx, verbs)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded): // a check that timed out proves nothing missing
		return fmt.Errorf("trying faults on its host: %w", err)
	}
	return fmt.Errorf("%w: %w", protocol.ErrNotAllowed, err)
}

// A troubling executes a run's faults on the servers of a hosting.
type troubling struct {
	agent *Agent
	of    *hosting
	does  func(context.Context, Disturbance)
	ctx   context.Context // lifetime of the system
	wg    sync.WaitGroup

	exchanges exchanges

	mu    sync.Mutex
	notes []protocol.Note
	last  protocol.Note      // completed by Tell
	end   context.CancelFunc // stops the faults; nil: the run has not begun
	over  chan struct{}      // closed when all faults have ended
}

// newTroubling starts to compare clocks with the coordinator, so that the run's epoch can be translated. It
// ends with ctx.
func newTroubling(ctx context.Context, a *Agent, h *hosting, does func(context.Context, Disturbance)) *troubling {
	t := &troubling{agent: a, of: h, does: does, ctx: ctx, over: make(chan struct{})}
	t.wg.Go(func() { a.compare(ctx, a.base, h.session, &t.exchanges) })
	return t
}

// wait returns when all faults have ended. Its context must have ended. t may be nil.
func (t *troubling) wait() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.close()
	t.mu.Unlock()
	t.wg.Wait()
}

// close prevents further faults. The lock must be held.
func (t *troubling) close() {
	if t.end == nil {
		t.end = func() {}
		close(t.over)
	}
	t.end()
}

// answer executes an order, and reports the progress.
func (t *troubling) answer(o *protocol.Trouble) (x protocol.Troubled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case o.End:
		t.close()
	case o.EpochNS != 0 && t.end == nil:
		var ctx context.Context
		ctx, t.end = context.WithCancel(t.ctx)
		t.wg.Go(func() {
			defer close(t.over)
			t.do(ctx, t.agent.base.At(o.EpochNS))
		})
	}
	over := latch.Closed(t.over)
	x.Exchanges = t.exchanges.take()
	left := t.notes[min(o.Seen, len(t.notes)):]
	x.Notes = left[:min(len(left), protocol.MostNotes)]
	x.Over = over && len(x.Notes) == len(left)
	return x
}

// do executes the faults until ctx ends.
func (t *troubling) do(ctx context.Context, clock *pace.Clock) {
	t.does(ctx, Disturbance{
		Clock:   clock,
		Leaders: func(ctx context.Context) ([]string, error) { return t.agent.leaders(ctx, t.of.session) },
		Keep: func(n int, f result.Fault) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.last = protocol.Note{N: n, Fault: protocol.Brief(f)}
		},
		Tell: func(at int64, text string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.last.AtNS, t.last.Text = at, protocol.BriefText(text)
			t.notes = append(t.notes, t.last)
		},
	})
}

// faults handles an order about faults.
func (a *Agent) faults(r micro.Request) {
	var o protocol.Trouble
	err := a.open(r.Data(), &o)
	if err == nil {
		err = o.Check()
	}
	var x protocol.Troubled
	if err == nil {
		var t *troubling
		if t, err = a.troubling(&o); err == nil {
			x = t.answer(&o)
		}
	}
	if err != nil {
		x = protocol.Troubled{Error: err.Error(), Kind: protocol.KindOf(err)}
		a.limited.Warn("faults are refused", "", "run", o.Run, "why", err)
	}
	reply(r, &x)
}

// troubling returns the faults of a run's system on this host.
func (a *Agent) troubling(o *protocol.Trouble) (*troubling, error) {
	a.mu.Lock()
	h, session := a.hosting, a.session
	a.mu.Unlock()
	if o.Session != session || h == nil || h.session != o.Session || h.run != o.Run {
		return nil, errors.New("this host has no system of this run")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble == nil {
		return nil, errors.New("the system of this run has no faults, or is not up")
	}
	return h.trouble, nil
}

// leaders asks the coordinator which servers lead.
func (a *Agent) leaders(ctx context.Context, session string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, protocol.AskLimit)
	defer cancel()
	m, err := a.nc.RequestWithContext(ctx, protocol.LeadersSubject(session, a.instance), nil)
	if err != nil {
		return nil, fmt.Errorf("asking the coordinator: %w", err)
	}
	var got protocol.Answer
	if err := protocol.Decode(m.Data, protocol.StandingSize, &got); err != nil {
		return nil, err
	}
	return got.Leaders, protocol.ErrorOf(got.Error, got.Kind)
}

// tellLeaders answers the coordinator's query which servers lead, through the connection of a part that
// declared the destinations.
func (a *Agent) tellLeaders(r micro.Request) {
	a.mu.Lock()
	t := a.task
	a.mu.Unlock()
	var got protocol.Answer
	if t == nil || t.job.Run != string(r.Data()) {
		got.Error = "the run is not under way here"
	} else if facts := t.facts.Load(); facts == nil {
		got.Error = "the system is not open yet"
	} else {
		ctx, cancel := context.WithTimeout(t.ctx, protocol.ThirdLimit)
		defer cancel()
		f, err := (*facts)(ctx)
		if err != nil {
			got.Error, got.Kind = err.Error(), protocol.KindOf(err)
		}
		got.Leaders = f.Leaders
	}
	reply(r, &got)
}

// A breaking breaks connections of a task's clients, and steps the clock that they and this process see, as
// the run's faults say.
type breaking struct {
	task   *task
	clock  *stepping // nil: no fault steps the clock
	faults []fault.Fault
	from   time.Duration
	window time.Duration
	end    context.CancelFunc
	over   chan struct{} // closed when done is set; nil: not begun
	done   []result.Fault
}

// begin starts when the epoch is known. b may be nil.
func (b *breaking) begin(epoch pace.Epoch) {
	if b == nil {
		return
	}
	var ctx context.Context
	ctx, b.end = context.WithCancel(b.task.ctx)
	b.over = make(chan struct{})
	clock := b.task.clock.At(epoch.MonotonicNS)
	go func() {
		defer close(b.over)
		b.done = fault.Conduct(ctx, b.system(clock), b.faults, b.from, b.window)
		if err := b.clock.end(); err != nil {
			b.task.agent.Log.Warn("the clock of this process still has its step", "run", b.task.job.Run, "why", err)
		}
	}()
}

// finish stops it, and returns the executed faults. b may be nil.
func (b *breaking) finish() (done []result.Fault) {
	if b == nil || b.over == nil {
		return nil
	}
	b.end()
	<-b.over
	for _, f := range b.done {
		done = append(done, protocol.Brief(f))
	}
	return done
}

// system returns the subject of the faults.
func (b *breaking) system(clock *pace.Clock) fault.System {
	t := b.task
	s := fault.System{
		Others: true, Now: clock.Now, Agent: t.agent.Name,
		Order: func(_ context.Context, _ string, by time.Duration, _ ...string) (result.Span, error) {
			from := clock.Now()
			err := b.clock.step(by)
			return result.Span{FromNS: from, ToNS: clock.Now()}, err
		},
		Sever: func(group tcpreset.Group, processes ...string) (int, error) {
			var at []netip.AddrPort
			for _, server := range t.job.Servers {
				if slices.Contains(processes, server.Name) {
					at = append(at, server.At()...)
				}
			}
			return tcpreset.ResetTo(group, t.agent.clients(), at)
		},
		Leaders: func(ctx context.Context) ([]string, error) { return t.agent.leaders(ctx, t.job.Session) },
		Tell: func(at int64, text string) {
			t.event(engine.Event{At: at, Kind: "injected", Text: protocol.BriefText(text)})
		},
	}
	for _, server := range t.job.Servers {
		at := []string{server.Address}
		for _, a := range server.At() {
			at = append(at, a.String())
		}
		s.Servers = append(s.Servers, fault.Server{Name: server.Name, Node: server.Node, At: at})
	}
	return s
}

// clients returns the processes that may hold driver connections: this one and its descendants, without the
// servers on this host.
func (a *Agent) clients() []int {
	all := proctree.All(proctree.Host())
	a.mu.Lock()
	h := a.hosting
	a.mu.Unlock()
	if h != nil {
		h.mu.Lock()
		if h.up != nil {
			delete(all, h.up.Guard)
		}
		h.mu.Unlock()
	}
	return append([]int{os.Getpid()}, proctree.Below(all, os.Getpid())...)
}
