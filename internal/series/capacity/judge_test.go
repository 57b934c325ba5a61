package capacity

import (
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

func TestJudgementOfProbeRun(t *testing.T) {
	check := func(name string, status result.Status, value string) result.Check {
		return result.Check{Name: name, Status: status, Value: value}
	}
	met := result.SLO{Expr: "e2e.p99 <= 1ms", Status: result.Pass, Pass: true}
	missed := result.SLO{Expr: "e2e.p99 <= 1ms", Status: result.Fail}
	open := result.SLO{Expr: "e2e.p99 <= 1ms", Status: result.Undecided, NeedsS: 11.2}
	for name, tt := range map[string]struct {
		verdict result.Verdict
		broken  bool
		onTime  int64 // p99 of e2e without lateness, ns; 0: not stored
		agents  []result.Agent
		want    Judgement
		why     string
	}{
		"the figure is the host's, and misses the limit only for this": {
			verdict: result.Verdict{
				Status: result.Valid, SLO: []result.SLO{{Expr: "e2e.p99 <= 1ms", Status: result.Undecided, Codes: []string{"objective.marked"}}},
				Figures: []result.Figure{{Name: "e2e.p99", By: judge.CheckHiccups}},
			},
			want: Limited, why: "e2e.p99 <= 1ms: undecided, since something other than the system moved the figure (hiccups)",
		},
		"of the system's part too little is known": {
			verdict: result.Verdict{
				Status: result.Valid, SLO: []result.SLO{{Expr: "e2e.system.p99 < 1ms", Status: result.Undecided, Codes: []string{"objective.marked"}}},
				Figures: []result.Figure{{Name: "e2e.system.p99", By: judge.CheckWire}},
			},
			want: Undecided, why: "e2e.system.p99 < 1ms: undecided, since too many of the sampled messages are left out (wire)",
		},
		"the system's part misses, and the whole latency is the host's": {
			verdict: result.Verdict{
				Status: result.Valid, SLO: []result.SLO{{Expr: "e2e.system.p99 < 1ms", Status: result.Fail}},
				Figures: []result.Figure{{Name: "e2e.p99", By: judge.CheckHiccups}, {Name: "e2e.system.p99", Quotable: true}},
			},
			want: Failed, why: "e2e.system.p99 < 1ms: fail",
		},
		"too short for an interval, beside stalls": {
			verdict: result.Verdict{Status: result.Valid, SLO: []result.SLO{open}, Figures: []result.Figure{{Name: "e2e.p99", By: judge.CheckHiccups}}},
			want:    Undecided, why: "e2e.p99 <= 1ms: undecided (a window of 12 s would probably decide it); the host was disturbed: hiccups",
		},
		"all is well": {verdict: result.Verdict{Status: result.Valid, SLO: []result.SLO{met}}, want: Passed},
		"messages are lost, and that counts first": {
			verdict: result.Verdict{Status: result.Invalid, SLO: []result.SLO{met}}, broken: true,
			want: Failed, why: "lost 0, corrupted 0, duplicated 0, reordered 0",
		},
		"an agent was lost, and that counts before what became of messages": {
			verdict: result.Verdict{Status: result.Invalid, SLO: []result.SLO{missed}, Checks: []result.Check{
				check(judge.CheckAgents, result.Invalid, "b vanished at 3.0 s"), check(judge.CheckFailed, result.Suspect, "7"),
				check(judge.CheckRate, result.Valid, "the system took 60 % of the rate"),
			}},
			broken: true, agents: []result.Agent{{Name: "a", Producers: 1}, {Name: "b", Consumers: 1, Missing: true}},
			want: Limited, why: "INVALID for agents: b vanished at 3.0 s",
		},
		"the system refused messages": {
			verdict: result.Verdict{Status: result.Suspect, Checks: []result.Check{check(judge.CheckFailed, result.Suspect, "7")}},
			want:    Failed, why: "failed messages: 7",
		},
		"the system did not take the rate": {
			verdict: result.Verdict{Status: result.Valid, SLO: []result.SLO{met}, Checks: []result.Check{check(judge.CheckRate, result.Valid, "the system took 60 % of the rate")}},
			want:    Failed, why: "the system took 60 % of the rate",
		},
		"the generator was late, whatever the objective says": {
			verdict: result.Verdict{Status: result.Invalid, SLO: []result.SLO{missed}, Checks: []result.Check{
				check(judge.CheckLateness, result.Invalid, ""), {Name: judge.CheckHiccups, Status: result.Invalid, With: judge.CheckLateness}, check(judge.CheckCPU, result.Suspect, ""),
			}},
			want: Limited, why: "INVALID for lateness",
		},
		"the backlog grows": {
			verdict: result.Verdict{Status: result.Suspect, SLO: []result.SLO{met}, Checks: []result.Check{check(judge.CheckSteady, result.Suspect, "the backlog grew by 9 messages (1/s)")}},
			want:    Failed, why: "the backlog grew by 9 messages (1/s)",
		},
		"confirmations come ever later": {
			verdict: result.Verdict{Status: result.Suspect, SLO: []result.SLO{met}, Checks: []result.Check{check(judge.CheckSteady, result.Suspect, "messages sent and not yet confirmed grew by 900 messages (100/s)")}},
			want:    Failed, why: "messages sent and not yet confirmed grew by 900 messages (100/s)",
		},
		"the system warms up, which is no failure": {
			verdict: result.Verdict{Status: result.Suspect, SLO: []result.SLO{met}, Checks: []result.Check{check(judge.CheckSteady, result.Suspect, "p50 went up")}},
			want:    Passed,
		},
		"one objective failed and another is open": {verdict: result.Verdict{Status: result.Valid, SLO: []result.SLO{open, missed}}, want: Failed, why: "e2e.p99 <= 1ms: fail"},
		"an objective failed on a host that had other work": {
			verdict: result.Verdict{Status: result.Suspect, SLO: []result.SLO{missed}, Checks: []result.Check{check(judge.CheckCPU, result.Suspect, ""), check(judge.CheckGC, result.Suspect, "")}},
			want:    Failed, why: "e2e.p99 <= 1ms: fail; the host was disturbed: cpu, gc",
		},
		"an objective failed, and without the generator's lateness it would not have": {
			verdict: result.Verdict{Status: result.Suspect, SLO: []result.SLO{missed}, Checks: []result.Check{check(judge.CheckLateness, result.Suspect, "")}},
			onTime:  900_000, want: Limited, why: "e2e.p99 <= 1ms: failed because the generator was late; without that it does not fail",
		},
		"an objective failed, also without the generator's lateness": {
			verdict: result.Verdict{Status: result.Suspect, SLO: []result.SLO{missed}, Checks: []result.Check{check(judge.CheckLateness, result.Suspect, "")}},
			onTime:  1_100_000, want: Failed, why: "e2e.p99 <= 1ms: fail; the host was disturbed: lateness",
		},
		"an objective is open": {
			verdict: result.Verdict{Status: result.Valid, SLO: []result.SLO{met, open}},
			want:    Undecided, why: "e2e.p99 <= 1ms: undecided (a window of 12 s would probably decide it)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &result.Result{Verdict: tt.verdict, Agents: tt.agents}
			if tt.onTime > 0 {
				r.Latency.E2E.OnTime = &result.Dist{Count: 1000, Percentiles: []result.Percentile{{P: 99, NS: tt.onTime, Supported: true, LoNS: &tt.onTime, HiNS: &tt.onTime}}}
			}
			j, why := Judge(r, tt.broken)
			if j != tt.want || why != tt.why {
				t.Errorf("%v, %q; want %v, %q", j, why, tt.want, tt.why)
			}
		})
	}
}

// If other programs used the host's cores, a missed objective says nothing about the rate. A kept one
// counts.
func TestOtherProcessesCPUIsNotTheSystems(t *testing.T) {
	run := func(busy, weir, server float64, checks ...result.Check) *result.Result {
		r := &result.Result{Verdict: result.Verdict{Status: result.Suspect, Checks: checks, SLO: []result.SLO{{Expr: "e2e.p99 <= 1ms", Status: result.Fail}}}}
		r.Host.Usage = &host.Usage{Cores: 2, CPUShare: &weir, HostBusyShare: &busy}
		half := server / 2
		r.Servers = &result.Servers{Processes: []host.ServerUsage{{Cores: &half}, {Cores: &half}}}
		return r
	}
	kept := run(0.99, 0.1, 0.2)
	kept.Verdict.SLO = nil
	elsewhere := run(0.99, 0.1, 0.2)
	elsewhere.Servers = nil // not of weir's: they may be what used the host
	fleet := run(0.99, 0.1, 0.2)
	fleet.Agents = make([]result.Agent, 2)
	grows := result.Check{Name: judge.CheckSteady, Status: result.Suspect, Value: "the backlog grew by 9 messages (1/s)"}
	failed := result.Check{Name: judge.CheckFailed, Status: result.Suspect, Value: "7"}
	for name, tt := range map[string]struct {
		r    *result.Result
		want Judgement
		why  string
	}{
		"other programs":         {run(0.99, 0.1, 0.2), Limited, "e2e.p99 <= 1ms: fail; other programs used 79 % of the host's cores"},
		"the servers themselves": {run(0.99, 0.3, 1.2), Failed, "e2e.p99 <= 1ms: fail"},
		"a little":               {run(0.5, 0.1, 0.4), Failed, "e2e.p99 <= 1ms: fail"},
		"a backlog":              {run(0.99, 0.1, 0.2, grows), Limited, "the backlog grew by 9 messages (1/s); other programs used 79 % of the host's cores"},
		"refused messages":       {run(0.99, 0.1, 0.2, failed), Failed, "failed messages: 7"},
		"all is kept":            {kept, Passed, ""},
		"servers of the user":    {elsewhere, Failed, "e2e.p99 <= 1ms: fail"},
		"agents":                 {fleet, Failed, "e2e.p99 <= 1ms: fail"},
	} {
		if j, why := Judge(tt.r, false); j != tt.want || why != tt.why {
			t.Errorf("%s: %v, %q; want %v, %q", name, j, why, tt.want, tt.why)
		}
	}
}

// A resumed search asks for the same next probe.
func TestReportResumesWhereItStopped(t *testing.T) {
	r := Report{Plan: Planned{FromPerS: 1000, Precision: 0.1, Retests: 3, Probes: 40, Seed: 1}}
	s := New(r.Plan.Plan())
	ends := map[float64]bool{}
	for range 40 {
		rate, why, more := s.Next()
		stored, storedWhy, storedMore := r.Again(0).Next()
		if rate != stored || more != storedMore || why != storedWhy {
			t.Fatalf("after %d probes: %v, %v; the stored search asks for %v, %v", len(r.Probes), rate, why, stored, storedWhy)
		}
		if !more {
			break
		}
		if why == Retest {
			ends[rate] = true
		}
		j := upTo(7300)(rate)
		s.Add(Probe{rate, why, j})
		r.Probes = append(r.Probes, Probed{RatePerS: rate, Purpose: why, Judgement: j.String()})
	}
	if len(ends) != 2 {
		t.Errorf("tested again: %v; want both ends", ends)
	}
}

func TestProbeReportsObjectiveFigures(t *testing.T) {
	t.Parallel()
	dist := func(ns int64) *result.Dist {
		return &result.Dist{Percentiles: []result.Percentile{{P: 50, NS: ns, Supported: true}, {P: 99, NS: 2 * ns, Supported: true}}}
	}
	for _, c := range []struct {
		promise []string
		want    string
	}{
		{[]string{"send.p99 <= 5ms"}, "send"},
		{[]string{"lost == 0"}, "e2e"},
		{[]string{"send.p99 <= 5ms", "e2e.p99 <= 9ms"}, "e2e"},
		{[]string{"rtt.p99 <= 5ms"}, "e2e"}, // this run has none
	} {
		r := &result.Result{Latency: result.Latency{Send: result.Send{Response: dist(1)}, E2E: result.Pair{Response: dist(10)}}}
		for _, expr := range c.promise {
			r.Verdict.SLO = append(r.Verdict.SLO, result.SLO{Expr: expr})
		}
		var p Probed
		p.Measured(r, false)
		want := map[string]int64{"send": 1, "e2e": 10}[c.want]
		if p.Of != c.want || p.P50NS == nil || *p.P50NS != want {
			t.Errorf("with %q a probe tells %q, p50 %v; want %q, %d ns", c.promise, p.Of, p.P50NS, c.want, want)
		}
	}
}
