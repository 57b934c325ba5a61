package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A System is what an agent started on its host.
type System struct {
	Address []string
	Options map[string][]string // further options to connect with
	Started *result.Started
	Done    <-chan struct{}             // closed when it ends by itself
	Stop    func(context.Context) error // stops it
	Servers []protocol.Server           // where clients reach them, if faults break connections
	Guard   int                         // ancestor of all its processes; 0: unknown

	// Disturb executes the scenario's faults on its servers, until ctx ends or all are done. It returns
	// before Stop is called.
	Disturb func(ctx context.Context, d Disturbance)

	// Samples returns samples of this host that ended after an instant, in order and few enough for an
	// answer. Instants are on the host's monotonic clock. Nil: none available.
	Samples func(since int64) []host.Sample
}

// A Happening is an event of one of a system's servers.
type Happening struct {
	MonotonicNS int64 // on the host's clock
	Text        string
}

// attendEvery is how often it is checked whether a system is still needed.
const attendEvery = 20 * time.Millisecond

// mostKept is the longest time a system is kept without a coordinator.
const mostKept = 48 * time.Hour

// A hosting is a system on the agent's host, from the wish for it until nothing of it is left.
type hosting struct {
	session, run string
	end          context.CancelFunc
	done         chan struct{} // closed when nothing of it is left

	mu     sync.Mutex
	doing  string
	up     *System
	err    error // why it failed to start, or ended
	facts  host.Facts
	events []Happening
	keep   time.Time // may be needed until then without a coordinator

	trouble *troubling // server faults; nil: none, or not started yet
}

// system handles a wish.
func (a *Agent) system(r micro.Request) {
	var w protocol.Wish
	err := a.open(r.Data(), &w)
	if err == nil {
		err = w.Check()
	}
	var h protocol.Hosted
	if err == nil {
		h, err = a.grant(&w)
	}
	if err != nil {
		h = protocol.Hosted{Error: err.Error(), Kind: protocol.KindOf(err)}
		a.limited.Warn("a system is refused", "", "run", w.Run, "why", err)
	}
	reply(r, &h)
}

// grant fulfils a wish, or reports the progress.
func (a *Agent) grant(w *protocol.Wish) (protocol.Hosted, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.allows(AllowBroker):
		return protocol.Hosted{}, fmt.Errorf("%w: starting servers on this host needs weir agent --allow broker", protocol.ErrNotAllowed)
	case a.left:
		return protocol.Hosted{}, errors.New("the agent is ending")
	case w.Session != a.session:
		return protocol.Hosted{}, errors.New("the agent belongs to another coordinator, or to none yet")
	}
	h := a.hosting
	if h != nil && (h.session != w.Session || h.run != w.Run) && !latch.Closed(h.done) {
		h.end() // of a run that is over, or has no coordinator
		return protocol.Hosted{Busy: true}, nil
	}
	mine := h != nil && h.session == w.Session && h.run == w.Run
	switch {
	case w.End:
		if mine {
			h.end()
			return protocol.Hosted{Gone: latch.Closed(h.done)}, nil
		}
		return protocol.Hosted{Gone: true}, nil
	case mine:
		h.needed(time.Duration(w.KeepNS))
		return h.state(w.Seen, w.Sampled, a.base.Monotonic()), nil
	case len(w.Scenario) == 0:
		return protocol.Hosted{}, errors.New("this host has no system of this run")
	}
	s, err := theScenario(a, w.Scenario, w.Files, true)
	if err != nil {
		return protocol.Hosted{}, err
	}
	if s.System.Start != scenario.StartProcess {
		return protocol.Hosted{}, fmt.Errorf("%w: an agent starts only real servers on its host (start: process), not %s", protocol.ErrNotAllowed, s.System.Start)
	}
	servers, _ := fault.Apart(s.Faults)
	if err := a.permits(len(servers)); err != nil {
		return protocol.Hosted{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h = &hosting{session: w.Session, run: w.Run, end: cancel, done: make(chan struct{})}
	h.needed(time.Duration(w.KeepNS))
	a.hosting = h
	a.note("starting %[2]s on this host for run %[1]s", w.Run, s.System.Recipe.Name)
	go func() {
		defer close(h.done)
		a.host(ctx, h, s)
	}()
	return h.state(0, 0, a.base.Monotonic()), nil
}

// hosts reports whether a system is on this host. The lock must be held.
func (a *Agent) hosts() bool { return a.hosting != nil && !latch.Closed(a.hosting.done) }

// allows reports whether the agent is allowed something.
func (a *Agent) allows(what string) bool {
	return a.Start != nil && slices.Contains(a.Allow, what)
}

// needed records how long the system may be needed without a coordinator.
func (h *hosting) needed(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d = min(d, mostKept); d > 0 {
		h.keep = time.Now().Add(d)
	}
}

// state is the system's state at now on the host's monotonic clock, for a receiver that already has seen
// events, and samples until sampled.
func (h *hosting) state(seen int, sampled, now int64) protocol.Hosted {
	h.mu.Lock()
	defer h.mu.Unlock()
	var x protocol.Hosted
	for _, e := range h.events[min(max(0, seen), len(h.events)):] {
		x.Since = append(x.Since, protocol.Event{AgoNS: max(0, now-e.MonotonicNS), Text: e.Text})
	}
	switch {
	case h.err != nil:
		x.Error, x.Kind = h.err.Error(), protocol.KindOf(h.err)
	case h.up == nil:
		x.Doing = h.doing
	default:
		x.Up, x.Address, x.Options, x.Started, x.Host = true, h.up.Address, h.up.Options, h.up.Started, &h.facts
		x.Servers = h.up.Servers
		if h.up.Samples != nil {
			x.NowNS, x.Samples = now, h.up.Samples(sampled)
		}
	}
	return x
}

// host keeps the system on this host until it should end, or its coordinator has been gone for long; then
// it stops it.
func (a *Agent) host(ctx context.Context, h *hosting, s *scenario.Scenario) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end()
	watch.Go(func() {
		a.attend(ctx, h)
		end()
	})
	starting, over := context.WithTimeout(ctx, protocol.BringLimit)
	up, err := a.Start(starting, s, func(line string) {
		h.mu.Lock()
		h.doing = line
		h.mu.Unlock()
	}, h.happened)
	over()
	facts := host.Environment(ctx)
	var trouble *troubling
	if servers, _ := fault.Apart(s.Faults); len(servers) > 0 && err == nil && up.Disturb != nil {
		trouble = newTroubling(ctx, a, h, up.Disturb)
	}
	h.mu.Lock()
	h.up, h.err, h.facts, h.trouble = up, err, facts, trouble
	h.mu.Unlock()
	if err != nil {
		a.note("run %s: starting %s failed: %v", h.run, s.System.Recipe.Name, err)
		return
	}
	select {
	case <-ctx.Done():
	case <-up.Done:
		h.mu.Lock()
		h.err = errors.New("the system has ended by itself")
		h.mu.Unlock()
	}
	end()
	trouble.wait()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), protocol.DownLimit)
	defer cancel()
	if err := up.Stop(ending); err != nil {
		a.Log.Warn("the system of a run still runs", "run", h.run, "why", err)
	}
	a.note("run %s: %s has ended", h.run, s.System.Recipe.Name)
}

// attend returns when ctx ends, the agent belongs to another coordinator, or the system's coordinator has
// been silent for long. Without a coordinator the system is kept during the agent's own part of the run,
// which ends by itself, or without a part for as long as others' parts may last.
func (a *Agent) attend(ctx context.Context, h *hosting) {
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	patience := a.patience
	if patience == 0 {
		patience = protocol.LostLimit
	}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		a.mu.Lock()
		mine, heard, t := a.session == h.session, a.heard, a.task
		a.mu.Unlock()
		if !mine {
			return
		}
		h.mu.Lock()
		keep := h.keep
		h.mu.Unlock()
		measuring := t != nil && t.job.Run == h.run && !latch.Closed(t.ended)
		if time.Since(heard) > patience && !measuring && time.Now().After(keep) {
			a.note("run %s: its coordinator is gone; stopping its servers", h.run)
			return
		}
	}
}

// happened records a server event for the coordinator's next query.
func (h *hosting) happened(x Happening) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.Text = protocol.Short(x.Text); len(h.events) < protocol.MostHappenings {
		h.events = append(h.events, x)
	}
}

// leave stops the system on this host when the agent ends.
func (a *Agent) leave() {
	a.mu.Lock()
	h := a.hosting
	a.left = true
	a.mu.Unlock()
	if h != nil {
		h.end()
		<-h.done
	}
}
