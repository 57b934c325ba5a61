package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// An addressed is a memory that is reached at an address.
type addressed struct {
	*reach
	Address []string `option:"address" help:"Where it is."`
}

// servedDrivers is a registry of a memory that has a recipe.
func servedDrivers(t *testing.T) *driver.Registry {
	t.Helper()
	m := newMemory("memory")
	d := m.definition()
	d.New = func() driver.Config { return &addressed{reach: &reach{m}} }
	d.Recipe = []byte(`recipe: 1
name: memory
title: A memory
version: "1"
nodes: [1]
install: {pypi: {package: memory, version: "1", programs: {memory: memory}}}
processes: [{name: server, ports: {client: 4000}, start: ['{{program "memory"}}']}]
connect: {address: '{{.At "client"}}'}
`)
	return registry(t, d)
}

const servedRun = "system: {driver: memory, start: process}\nload: {rate: 200/s}\nwarmup: 100ms\nmeasure: 500ms\n"

// A shop counts the systems that agents started.
type shop struct {
	mu       sync.Mutex
	started  int
	ended    int
	fail     error
	hold     chan struct{} // a start waits for it; nil: for nothing
	happened func(agent.Happening)
	gone     chan struct{} // of the latest
}

// parts are the whole thirds of a second of the host's clock after an instant: each is a
// sample, with its number as a count.
func parts(since int64) (all []host.Sample) {
	const part = int64(time.Second / 3)
	now := pace.NewClock().Epoch().MonotonicNS
	if since == 0 { // the first of them
		since = now - 2*part
	}
	for n := (since + part/2) / part; (n+1)*part <= now && len(all) < protocol.MostSamples; n++ {
		all = append(all, host.Sample{
			FromNS: n * part, ToNS: (n + 1) * part, Host: host.HostSample{DiskReads: new(uint64(n))},
			Processes: []host.ProcessSample{{Name: "server-1", Processes: 1}},
		})
	}
	return all
}

func (s *shop) counts() (started, ended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started, s.ended
}

// may has an agent start its systems here.
func (s *shop) may(a *agent.Agent) {
	a.Allow = []string{agent.AllowBroker}
	a.Start = func(ctx context.Context, x *scenario.Scenario, doing func(string), happened func(agent.Happening)) (*agent.System, error) {
		s.mu.Lock()
		s.started++
		hold, fail := s.hold, s.fail
		s.happened, s.gone = happened, make(chan struct{})
		gone := s.gone
		s.mu.Unlock()
		end := func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended++
			return nil
		}
		doing("installing " + x.System.Recipe.Name)
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				_ = end(ctx)
				return nil, ctx.Err()
			}
		}
		if fail != nil {
			_ = end(ctx)
			return nil, fail
		}
		return &agent.System{
			Address: []string{"here:1"}, Started: &result.Started{By: "process", Recipe: x.System.Recipe.Name, Processes: []result.Process{}},
			Done: gone, Stop: end, Samples: parts,
		}, nil
	}
}

// over waits until all that was started is ended.
func (s *shop) over(t *testing.T, started int) {
	t.Helper()
	must.Until(t, "the end of what was started", func() bool {
		n, ended := s.counts()
		return n == started && ended == n
	})
}

func quiet(string) {}

// hosted returns a fleet of agents a and b, and the run of a scenario for which b has
// started the system.
func hosted(t *testing.T, text string, b ...func(*agent.Agent)) (*world, *Run) {
	t.Helper()
	drivers := servedDrivers(t)
	w := open(t, drivers, Options{})
	w.agent(t, "a")
	w.agent(t, "b", b...)
	w.await(t, 2)
	run := runOf(t, drivers, "r", text)
	up := must.Get(w.Bring(t.Context(), "b", run, quiet))(t)
	run.Address, run.StartOn = up.Address, "b"
	return w, run
}

func TestAgentStartsAndStopsSystem(t *testing.T) {
	t.Parallel()
	drivers := servedDrivers(t)
	s := &shop{}
	w := open(t, drivers, Options{})
	w.agent(t, "a")
	w.agent(t, "b", s.may)
	w.await(t, 2)
	run := runOf(t, drivers, "r1", servedRun)
	var said []string
	up := must.Get(w.Bring(t.Context(), "b", run, func(line string) { said = append(said, line) }))(t)
	if !slices.Equal(up.Address, []string{"here:1"}) || up.Started.Recipe != "memory" {
		t.Errorf("%+v", up)
	}
	if n, ended := s.counts(); n != 1 || ended != 0 {
		t.Errorf("started %d, ended %d", n, ended)
	}
	run.Address, run.StartOn = up.Address, "b"
	done := w.do(t, run)
	exact(t, done.Raw, 120)
	if n, ended := s.counts(); n != 1 || ended != 0 {
		t.Errorf("after the run: started %d, ended %d", n, ended)
	}
	must.Do(t, w.End(t.Context(), "b", "r1"))
	s.over(t, 1)
	if err := w.End(t.Context(), "b", "r1"); err != nil {
		t.Errorf("once more: %v", err)
	}
	// The next run's wish ends what another left.
	must.Get(w.Bring(t.Context(), "b", runOf(t, drivers, "r2", servedRun), quiet))(t)
	must.Get(w.Bring(t.Context(), "b", runOf(t, drivers, "r3", servedRun), quiet))(t)
	if n, ended := s.counts(); n != 3 || ended != 2 {
		t.Errorf("started %d, ended %d; want 3, 2", n, ended)
	}
	// What is left is ended with the agent.
	for _, a := range w.agents {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
	s.over(t, 3)
}

func TestAnAgentStartsNothingUnlessAllowed(t *testing.T) {
	t.Parallel()
	drivers := servedDrivers(t)
	s := &shop{}
	w := open(t, drivers, Options{})
	w.agent(t, "a", s.may, func(a *agent.Agent) { a.Allow = nil })
	w.agent(t, "b", s.may)
	w.await(t, 2)
	_, err := w.Bring(t.Context(), "a", runOf(t, drivers, "r", servedRun), quiet)
	if !errors.Is(err, protocol.ErrNotAllowed) || !strings.Contains(err.Error(), "starting servers on this host needs weir agent --allow broker") {
		t.Errorf("%v", err)
	}
	_, err = w.Bring(t.Context(), "b", runOf(t, drivers, "r", strings.Replace(servedRun, "start: process", "start: none", 1)), quiet)
	if !errors.Is(err, protocol.ErrNotAllowed) {
		t.Errorf("start: none: %v", err)
	}
	s.mu.Lock()
	s.fail = driver.ErrUnreachable
	s.mu.Unlock()
	if _, err = w.Bring(t.Context(), "b", runOf(t, drivers, "r", servedRun), quiet); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("a start that fails: %v", err)
	}
	s.over(t, 1)
}

// Invalid wishes, and those from unauthorized senders, start nothing; agents may not send wishes to each
// other.
func TestInvalidWishesAreRejected(t *testing.T) {
	t.Parallel()
	drivers := servedDrivers(t)
	s := &shop{}
	w := open(t, drivers, Options{})
	w.agent(t, "b", s.may)
	w.await(t, 1)
	run := runOf(t, drivers, "r", servedRun)
	good := protocol.Wish{Session: w.session, Run: "r", Scenario: run.Scenario}
	other, both, empty, broken := good, good, good, good
	stranger := must.Get(admission.NewSelf())(t)
	other.Session, both.End, empty.Scenario, broken.Scenario = "another", true, nil, []byte("weir: 1\nsystem: {driver: nobody}")
	about := w.of(t, "b")
	for what, x := range map[string][]byte{
		"garbage": []byte("\x00garbage"), "nothing": nil, "not sealed": protocol.Encode(&good), "a list": sealed(t, about, []int{}), "no wish": sealed(t, about, &protocol.Answer{}),
		"unknown": sealed(t, about, map[string]any{"run": "r", "x": 1}), "for another": sealed(t, protocol.About{Key: stranger.Key()}, &good),
		"another's": sealed(t, about, &other), "start and end": sealed(t, about, &both), "of what": sealed(t, about, &empty), "no scenario": sealed(t, about, &broken),
	} {
		m, err := w.nc.Request(protocol.OrderSubject(about.Instance, "system"), x, patience)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var h protocol.Hosted
		if err := protocol.Decode(m.Data, protocol.SmallSize, &h); err != nil || h.Error == "" || h.Up {
			t.Errorf("%s: %s (%v)", what, m.Data, err)
		}
	}
	nc, _ := dial(t, w.address(t), "agent c")
	if m, err := nc.Request(protocol.OrderSubject(about.Instance, "system"), sealed(t, about, &good), time.Second); err == nil || errors.Is(err, nats.ErrNoResponders) && m != nil {
		t.Errorf("another agent's wish: %v", err)
	}
	if n, _ := s.counts(); n != 0 {
		t.Errorf("%d were started", n)
	}
	w.do(t, func() *Run { r := runOf(t, drivers, "r", servedRun); r.Address = []string{"here:1"}; return r }()) // the agent is as it was
}

// The coordinator's user stopped waiting.
func TestAbandonedSystemStart(t *testing.T) {
	t.Parallel()
	drivers := servedDrivers(t)
	s := &shop{hold: make(chan struct{})}
	w := open(t, drivers, Options{})
	w.agent(t, "b", s.may)
	w.await(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.Bring(ctx, "b", runOf(t, drivers, "r", servedRun), func(line string) {
		if line != "installing memory" {
			t.Errorf("said %q", line)
		}
		cancel()
	})
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.over(t, 1)
}
