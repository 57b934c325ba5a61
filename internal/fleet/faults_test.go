package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// troubled has an agent start its systems here, with faults that do nothing.
func (s *shop) troubled(a *agent.Agent) {
	s.may(a)
	a.Allow = append(a.Allow, agent.AllowFaults)
	start := a.Start
	a.Start = func(ctx context.Context, x *scenario.Scenario, doing func(string), happened func(agent.Happening)) (*agent.System, error) {
		up, err := start(ctx, x, doing, happened)
		if err != nil {
			return nil, err
		}
		up.Disturb = func(ctx context.Context, d agent.Disturbance) {
			fault.Conduct(ctx, fault.System{
				Servers: []fault.Server{{Name: "server-1", Node: 1}}, Now: d.Clock.Now, Leaders: d.Leaders, Keep: d.Keep, Tell: d.Tell,
				Order: func(context.Context, string, time.Duration, ...string) (result.Span, error) {
					now := d.Clock.Now()
					return result.Span{FromNS: now, ToNS: now}, nil
				},
			}, x.Faults, x.WarmUp, x.Length()-x.WarmUp)
		}
		return up, nil
	}
}

// A listener keeps the events of a kind.
type listener struct {
	mu    sync.Mutex
	kind  string
	texts []string
}

func (l *listener) hear(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Kind == l.kind {
		l.texts = append(l.texts, e.Text)
	}
}

// At their times, also if the agent has no part and a different clock, and for more faults than fit in an
// answer.
func TestHostingAgentInjectsServerFaults(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		fault   string
		n       int
		part    bool
		another bool // clock
	}{
		"one, beside the run":     {"kill 1 at 200ms for 100ms", 1, false, false},
		"many, by another clock":  {"stop 1 at 10ms for 5ms every 20ms", 50, false, true},
		"where a part is done":    {"kill 1 at 200ms for 100ms", 1, true, false},
		"a part by another clock": {"kill 1 at 0s for 100ms", 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(servedRun, "measure: 500ms", "measure: 1s", 1) + "faults: [" + x.fault + "]\n"
			w, run := hosted(t, text, (&shop{}).troubled, func(a *agent.Agent) { a.OwnTime = x.another })
			run.Troubled = true
			if !x.part {
				run.Agents = []string{"a"}
			}
			said := &listener{kind: "injected"}
			run.Config.OnEvent = said.hear
			done := w.do(t, run)
			if done.Unreported != nil {
				t.Error(done.Unreported)
			}
			if len(done.Faults) != x.n {
				t.Fatalf("%d faults: %+v; want %d", len(done.Faults), done.Faults, x.n)
			}
			// An agent waits by one offset estimate, and reports by a later one. Each has its bound.
			const estimates = int64(10 * time.Millisecond)
			for _, f := range done.Faults {
				if f.Error != "" || !slices.Equal(f.Processes, []string{"server-1"}) || !slices.Equal(f.Agents, []string{"b"}) || f.BoundNS == nil || f.UndoneNS == nil {
					t.Fatalf("%+v", f)
				}
				if late, off := f.BeganNS-f.DueNS, *f.BoundNS; late < -off-estimates || late > int64(patience) || *f.UndoneNS < f.BeganNS-off {
					t.Errorf("due at %d, began at %d, undone at %d, to within %d", f.DueNS, f.BeganNS, *f.UndoneNS, off)
				}
			}
			said.mu.Lock()
			defer said.mu.Unlock()
			if len(said.texts) != 2*x.n || !strings.HasPrefix(said.texts[0], "b: ") {
				t.Errorf("%d events, first %q; want %d of b", len(said.texts), said.texts[:min(1, len(said.texts))], 2*x.n)
			}
			if by := strings.Contains(said.texts[0], " (by its clock, within "); by != x.another {
				t.Errorf("told %q; another clock: %t", said.texts[0], x.another)
			}
			if err := w.End(t.Context(), "b", "r"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunEndStopsOngoingFaults(t *testing.T) {
	t.Parallel()
	s := &shop{}
	w, run := hosted(t, servedRun+"faults: [kill 1 at 100ms for 1h]\n", s.troubled)
	run.Troubled = true
	done := w.do(t, run)
	if len(done.Faults) != 1 || done.Faults[0].UndoneNS != nil || done.Unreported != nil {
		t.Errorf("%+v (%v)", done.Faults, done.Unreported)
	}
	if err := w.End(t.Context(), "b", "r"); err != nil {
		t.Error(err)
	}
	s.over(t, 1)
}

func TestFaultsNeedPermission(t *testing.T) {
	t.Parallel()
	drivers := servedDrivers(t)
	s := &shop{}
	w := open(t, drivers, Options{})
	cannot := errors.New("this host has no loop devices")
	w.agent(t, "a", s.may)
	w.agent(t, "b", s.troubled, func(a *agent.Agent) {
		a.Able = func(ctx context.Context, verbs []string) error {
			switch {
			case slices.Contains(verbs, "fill"):
				return cannot
			case slices.Contains(verbs, "slow"):
				return fmt.Errorf("trying it: %w", context.DeadlineExceeded) // by a limit of its own
			case slices.Contains(verbs, "cut"): // a trial takes its time on a busy host
				select {
				case <-time.After(protocol.AskLimit + 500*time.Millisecond):
				case <-ctx.Done():
					return errors.New("a process said nothing")
				}
			}
			return nil
		}
	})
	w.await(t, 2)
	asks := func(faults ...string) func(string) protocol.Query {
		return func(string) protocol.Query { return protocol.Query{Driver: drivers.Names()[0], Faults: faults} }
	}
	for _, x := range []struct {
		agents, faults []string
		want           string
	}{
		{[]string{"a", "b"}, nil, ""},
		{[]string{"b"}, []string{"kill", "disconnect"}, ""},
		{[]string{"b"}, []string{"cut"}, ""},
		{[]string{"a", "b"}, []string{"kill"}, "agent a: not allowed: faults on this host need weir agent --allow faults"},
		{[]string{"b"}, []string{"kill", "fill"}, "agent b: not allowed: this host has no loop devices"},
	} {
		err := w.May(t.Context(), x.agents, asks(x.faults...))
		if got := fmt.Sprint(err); x.want == "" && err != nil || x.want != "" && (got != x.want || !errors.Is(err, protocol.ErrNotAllowed)) {
			t.Errorf("%q of %q: %s; want %q", x.faults, x.agents, got, x.want)
		}
	}
	if err := w.May(t.Context(), []string{"b"}, asks("slow")); err == nil || errors.Is(err, protocol.ErrNotAllowed) {
		t.Errorf("a trial that took too long: %v; want an error that is not a refusal", err)
	}
	// An agent that is not asked before refuses all the same.
	run := runOf(t, drivers, "r", servedRun+"faults: [kill 1 at 100ms]\n")
	if _, err := w.Bring(t.Context(), "a", run, quiet); !errors.Is(err, protocol.ErrNotAllowed) {
		t.Errorf("servers with faults: %v", err)
	}
	run = runOf(t, drivers, "r", servedRun+"faults: [disconnect clients at 100ms]\n")
	run.Agents, run.Address = []string{"a"}, []string{"here:1"}
	run.Servers = []protocol.Server{{Name: "server-1", Node: 1, Host: "127.0.0.1", Ports: []uint16{1}}}
	if _, err := w.Do(t.Context(), nil, run); !errors.Is(err, protocol.ErrNotAllowed) {
		t.Errorf("connections: %v", err)
	}
	if n, _ := s.counts(); n != 0 {
		t.Errorf("%d systems were started", n)
	}
}
