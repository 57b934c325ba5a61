package fleet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/placement"
)

// The agent that hosts the system is waited for besides those that execute the run, reports on its servers,
// and has no part unless a list of the placement names it.
func TestHostingAgentRunsNoClients(t *testing.T) {
	t.Parallel()
	drivers := servedDrivers(t)
	s := &shop{}
	w := open(t, drivers, Options{})
	w.agent(t, "a")
	w.agent(t, "bk", s.may, func(a *agent.Agent) { a.Labels = map[string]string{"zone": "x"} })
	w.await(t, 2)
	named := placement.Spec{Producers: []placement.Selector{{Labels: []placement.Label{{Key: "zone", Value: "x"}}}}}
	for _, tt := range []struct {
		want Want
		says string // "": all are there
	}{
		{Want{Agents: 2}, ""},
		{Want{Agents: 1, StartOn: "bk"}, ""},
		{Want{Agents: 2, StartOn: "bk"}, "1 of 2 joined within 300ms, and bk to start the system there (a on "},
		{Want{Agents: 2, StartOn: "bk", Placements: []placement.Spec{named}}, ""},
		{Want{Agents: 2, StartOn: "bk", Placements: []placement.Spec{named, {}}}, "1 of 2"},
		{Want{Agents: 2, StartOn: "nobody"}, "2 of 2 joined within 300ms, and not nobody, where the system is to be started (a on "},
	} {
		err := w.Await(t.Context(), tt.want, 300*time.Millisecond)
		if (err == nil) != (tt.says == "") || err != nil && (!errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%+v: %v; want %q", tt.want, err, tt.says)
		}
	}
	if got := w.Choose(2, named, "bk"); !slices.Equal(got, []string{"bk", "a"}) {
		t.Errorf("named, it is not chosen: %v", got)
	}
	if got := w.Choose(2, placement.Spec{}, "bk"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("chosen: %v", got)
	}

	run := runOf(t, drivers, "r1", strings.Replace(servedRun, "measure: 500ms", "measure: 2s", 1))
	up := must.Get(w.Bring(t.Context(), "bk", run, quiet))(t)
	must.Until(t, "the agent to say that it is busy", func() bool { return w.busy(t, "bk") == "r1" })
	s.mu.Lock()
	happened, began := s.happened, make(chan engine.Event, 16)
	s.mu.Unlock()
	run.Address, run.StartOn, run.Agents = up.Address, "bk", []string{"a"}
	var samples []host.Sample
	run.OnSample = func(x host.Sample) { samples = append(samples, x) }
	run.Config.OnEvent = func(e engine.Event) {
		switch e.Kind {
		case "phase":
			happened(agent.Happening{MonotonicNS: w.clock.Monotonic(), Text: "server-1 ended: signal: killed"})
		case "server":
			began <- e
		}
	}
	done := w.do(t, run)
	exact(t, done.Raw, 420)
	if len(samples) < 2 {
		t.Errorf("the run was told %d samples of the host", len(samples))
	}
	// There is a sample for each third of a second. One that a better clock estimate puts wholly before the
	// end of another is not reported.
	for i, x := range samples {
		if x.ToNS < int64(-patience) || x.ToNS > int64(3*patience) || x.Processes[0].Name != "server-1" || i > 0 && (x.FromNS < samples[i-1].ToNS || *x.Host.DiskReads <= *samples[i-1].Host.DiskReads) {
			t.Errorf("sample %d: %+v", i, x)
		}
	}
	x := done.Starter
	if len(done.Agents) != 1 || x == nil || x.Part || x.Name != "bk" || x.Facts.Cores == 0 || len(x.Absences) > 0 {
		t.Errorf("agents %+v, started by %+v", done.Agents, x)
	}
	select {
	case e := <-began:
		if e.Text != "bk: server-1 ended: signal: killed" || e.At > int64(patience) {
			t.Errorf("%+v", e)
		}
	default:
		t.Error("the run was not told what became of a server")
	}
	must.Do(t, w.End(t.Context(), "bk", "r1"))
}
