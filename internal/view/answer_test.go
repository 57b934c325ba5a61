package view

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func TestNextCommandFitsFindings(t *testing.T) {
	t.Parallel()
	suspect := func(name, value, why string) func(*result.Result) {
		return func(r *result.Result) {
			r.Verdict.Checks = []result.Check{{Name: name, Status: result.Suspect, Value: value, Why: why}}
		}
	}
	for name, tt := range map[string]struct {
		change func(*result.Result)
		want   string
	}{
		"nothing":     {func(*result.Result) {}, "weir run 'a b/scenario.yaml' --repeat 6"},
		"a busy host": {suspect(judge.CheckCPU, "", ""), "weir doctor"},
		"a warm-up":   {suspect(judge.CheckSteady, "", "Use a warm-up of 11 s (--warmup 11s)."), "weir run 'a b/scenario.yaml' --warmup 11s"},
		"first seconds that differ on a host that woke pacers late": {func(r *result.Result) {
			suspect(judge.CheckSteady, "", "If the system was warming up, use a warm-up of 11 s (--warmup 11s).")(r)
			r.Verdict.Checks = append(r.Verdict.Checks, result.Check{Name: judge.CheckLateness, Status: result.Suspect})
		}, "weir doctor"},
		"a slow start that fails messages": {func(r *result.Result) {
			suspect(judge.CheckFailed, "", "")(r)
			r.Verdict.Checks[0].Values = map[string]any{"warmup": 5.0}
		}, "weir run 'a b/scenario.yaml' --warmup 5s"},
		"a slow start that drops messages": {func(r *result.Result) {
			r.Verdict.Checks = []result.Check{{Name: judge.CheckRate, Status: result.Valid, Values: map[string]any{"warmup": 5.0}}}
		}, "weir run 'a b/scenario.yaml' --warmup 5s"},
		"failed messages": {suspect(judge.CheckFailed, "", ""), "less 'a b/events.jsonl'"},
		"slow consumers":  {suspect(judge.CheckSteady, "the backlog grew by 9 messages (1/s)", ""), "weir capacity 'a b/scenario.yaml' --rate 49/s --slo 'e2e.p99 <= 10ms'"},
		"consumers that nearly keep up": {func(r *result.Result) {
			suspect(judge.CheckSteady, "the backlog grew by 9 messages (1/s)", "")(r)
			r.Throughput.ReceivedPerS = new(900.0)
		}, "weir run 'a b/scenario.yaml' --rate 720/s"},
		"confirmations that nearly keep up": {func(r *result.Result) {
			suspect(judge.CheckSteady, "messages sent and not yet confirmed grew by 9 messages (1/s)", "")(r)
			r.Throughput.ReceivedPerS = new(900.0)
		}, "weir run 'a b/scenario.yaml' --rate 720/s"},
		"slow consumers of a profile": {func(r *result.Result) {
			suspect(judge.CheckSteady, "the backlog grew by 9 messages (1/s)", "")(r)
			r.Stages = make([]result.Stage, 2)
		}, "weir run 'a b/scenario.yaml' --rate 390/s"},
		"something drifts": {suspect(judge.CheckSteady, "", ""), "weir run 'a b/scenario.yaml' --measure 20s"},
		"books":            {suspect(judge.CheckAccounting, "", ""), ""},
		"loss":             {func(r *result.Result) { r.MessagesAll.Lost = 1 }, "less 'a b/events.jsonl'"},
		"a short drain":    {func(r *result.Result) { r.MessagesAll.Pending, r.Host.DrainNeedsNS = 1, 90e9 }, "weir run 'a b/scenario.yaml' --drain 3m"},
		"an interruption":  {func(r *result.Result) { r.Run.Interrupted = true }, "weir run 'a b/scenario.yaml'"},
		"no decision": {func(r *result.Result) {
			r.Verdict.SLO = []result.SLO{{Expr: "e2e.p99 <= 1ms", Status: result.Undecided, NeedsS: 61.5}}
		}, "weir run 'a b/scenario.yaml' --measure 1m2s"},
		"a closed loop": {func(r *result.Result) { r.Run.Loop = result.LoopClosed }, "weir capacity 'a b/scenario.yaml' --rate 49/s --slo 'e2e.p99 <= 10ms'"},
		"a closed loop with objectives": {func(r *result.Result) {
			r.Run.Loop, r.Verdict.SLO = result.LoopClosed, []result.SLO{{Expr: "lost == 0", Status: result.Pass, Pass: true}}
		}, "weir capacity 'a b/scenario.yaml' --rate 49/s"},
		"a closed loop that fills the system": {func(r *result.Result) {
			r.Run.Loop = result.LoopClosed
			suspect(judge.CheckSteady, "the backlog grew by 9 messages (1/s)", "")(r)
		}, "weir capacity 'a b/scenario.yaml' --rate 49/s --slo 'e2e.p99 <= 10ms'"},
		"a backlog that was filled slower than it was due": {func(r *result.Result) {
			r.Run.Mode, r.Throughput.ConfirmedPerS = result.ModeBacklog, 300
			suspect(judge.CheckSteady, "messages sent and not yet confirmed grew by 9 messages (1/s)", "")(r)
		}, "weir run 'a b/scenario.yaml' --rate 240/s"},
		"a backlog that a closed loop fills": {func(r *result.Result) {
			r.Run.Mode, r.Run.Loop = result.ModeBacklog, result.LoopClosed
		}, "weir run 'a b/scenario.yaml' --repeat 6"},
		"a closed loop of requests": {func(r *result.Result) {
			r.Run.Loop, r.Latency.RTT.Service = result.LoopClosed, new(result.Dist)
		}, "weir capacity 'a b/scenario.yaml' --rate 49/s --slo 'rtt.p99 <= 10ms'"},
		"a fleet": {func(r *result.Result) { r.Agents = make([]result.Agent, 2) }, "weir report 'a b' -o 'a b.html'"},
		"two processes of a busy host": {func(r *result.Result) {
			r.Agents = []result.Agent{{Hostname: "h"}, {Hostname: "h"}}
			suspect(judge.CheckCPU, "", "")(r)
		}, "weir doctor"},
		"a busy host of a fleet": {func(r *result.Result) {
			r.Agents = []result.Agent{{Hostname: "h"}, {Hostname: "i"}}
			suspect(judge.CheckCPU, "", "")(r)
		}, "weir report 'a b' -o 'a b.html'"},
		"loss in a fleet": {func(r *result.Result) {
			r.Agents = make([]result.Agent, 2)
			r.MessagesAll.Lost = 1
		}, "less 'a b/events.jsonl'"},
		"too few samples on a busy host": {func(r *result.Result) {
			r.Verdict.Checks = []result.Check{{Name: judge.CheckSamples, Status: result.Suspect}, {Name: judge.CheckCPU, Status: result.Suspect}}
			r.Run.MeasureS = 0.001
		}, "weir run 'a b/scenario.yaml' --measure 10s"},
	} {
		perS := 490.0
		r := &result.Result{
			Run:         result.Run{MeasureS: 10, Loop: result.LoopOpen},
			Messages:    result.Messages{Scheduled: 10, Sent: 10, Delivered: 10},
			MessagesAll: result.Messages{Scheduled: 10, Sent: 10, Delivered: 10},
			Throughput:  result.Throughput{OfferedPerS: 1000, ConfirmedPerS: 1000, ReceivedPerS: &perS},
		}
		tt.change(r)
		x := &single{Page: new(layout.Page), r: r}
		if got, _ := x.next("a b/scenario.yaml"); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// Right after a run it is known how its agents met.
func TestFleetRunRepeatCommandKeepsFlags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fleet  Fleet
		checks []result.Check
		want   string
	}{
		"nothing":       {Fleet{Again: "--fleet 2"}, nil, "weir run r/scenario.yaml --fleet 2 --repeat 6"},
		"split":         {Fleet{}, nil, "weir run r/scenario.yaml --repeat 6"},
		"a busy host":   {Fleet{"--fleet 2 --listen :7000", "weir fleet doctor --listen :7000"}, []result.Check{{Name: judge.CheckCPU, Status: result.Suspect}}, "weir fleet doctor --listen :7000"},
		"a short drain": {Fleet{Again: "--fleet 2"}, []result.Check{{Name: judge.CheckSamples, Status: result.Suspect}}, "weir run r/scenario.yaml --fleet 2 --measure 20s"},
	} {
		r := &result.Result{Run: result.Run{MeasureS: 10, Loop: result.LoopOpen}, Agents: []result.Agent{{Hostname: "h"}, {Hostname: "i"}}, Verdict: result.Verdict{Checks: tt.checks}}
		x := &single{Page: new(layout.Page), r: r, o: Options{Fleet: &tt.fleet}}
		if got, _ := x.next("r/scenario.yaml"); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	x := &single{Page: new(layout.Page), r: &result.Result{Agents: make([]result.Agent, 2)}}
	if got, _ := x.next(result.FileScenario); got != "" {
		t.Errorf("a page that stands in the folder says %q", got)
	}
}

func TestTheAnswerFitsATerminal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jetstream-500", "jetstream-synced", "nats-500", "chan-closed", "noop-1000"} {
		e := run(t, name, "lost == 0", "send.service.p99 <= 50ms")
		b := rendered(t, Text, e, Options{Dir: "results/x", Width: 80})
		all := strings.Split(strings.TrimSuffix(b, "\n"), "\n")
		last := all
		for i, l := range all {
			if l == "" {
				last = all[i+1:]
			}
		}
		if len(last) > 7 {
			t.Errorf("%s: the answer has %d lines; want 7 at most:\n%s", name, len(last), strings.Join(last, "\n"))
		}
		for _, l := range last {
			if n := layout.Length(l); n > 80 && !strings.HasPrefix(l, "next ") { // a command is not broken
				t.Errorf("%s: %d characters: %s", name, n, l)
			}
		}
	}
}

// The purpose of a file of several scenarios is also named if a run is SUSPECT.
func TestSeveralScenariosSuggestComparison(t *testing.T) {
	var entries []Entry
	for i := range 8 {
		name, driver := "js", "jetstream"
		if i%2 > 0 {
			name, driver = "redis", "redis-streams"
		}
		entries = append(entries, Entry{Entry: result.Entry{Dir: fmt.Sprintf("turns/%02d-%s", i+1, name), Result: &result.Result{
			Run:     result.Run{ID: strconv.Itoa(i), Name: name, Series: name, Place: 1 + i%2},
			System:  result.System{Driver: driver},
			Verdict: result.Verdict{Status: result.Suspect},
		}}})
	}
	for n, want := range map[int]string{8: "next        weir compare turns --by system.driver  # says how they differ\n", 6: "next        weir report turns/01-js  # says why\n"} {
		page := &layout.Page{}
		summary(page, entries[:n], Options{})
		if got := (layout.Text{}).Page(page); !strings.HasSuffix(got, want) {
			t.Errorf("of %d runs:\n%s\nwant %s", n, got, want)
		}
	}
}

// An INVALID run lists only the reasons that make its figures unusable.
func TestVerdictNamesItsChecks(t *testing.T) {
	t.Parallel()
	e := Entry{Entry: result.Entry{Dir: "results/x", Result: stored(t, "testdata/valid.json")}}
	e.Result.Verdict = result.Verdict{Status: result.Invalid, Checks: []result.Check{
		{Name: judge.CheckFailed, Status: result.Suspect},
		{Name: judge.CheckLateness, Status: result.Invalid},
		{Name: judge.CheckHiccups, Status: result.Invalid, With: judge.CheckLateness},
		{Name: judge.CheckCPU, Status: result.Suspect},
	}}
	if _, says := verdictOn(e.Result, nil); says != "do not use the figures: the generator sent late" {
		t.Error(says)
	}
	page := &layout.Page{}
	doubts(page, []Entry{e})
	if says := (layout.Text{}).Page(page); !strings.Contains(says, " for lateness\n") {
		t.Error(says)
	}
}

// A screen names each outcome that some message has, whatever it is.
func TestTheLossLineHidesNoOutcome(t *testing.T) {
	t.Parallel()
	uneventful := []string{"Scheduled", "Sent", "Confirmed", "Delivered", "Settled"}
	counts := reflect.TypeFor[result.Messages]()
	for i := range counts.NumField() {
		name := counts.Field(i).Name
		if slices.Contains(uneventful, name) {
			continue
		}
		r := stored(t, "testdata/valid.json")
		reflect.ValueOf(&r.MessagesAll).Elem().Field(i).SetUint(1810)
		r.MessagesAll.Failed = max(r.MessagesAll.Failed, r.MessagesAll.FailedDelivered)
		r.MessagesAll.Unconfirmed = max(r.MessagesAll.Unconfirmed, r.MessagesAll.UnconfirmedDelivered)
		if screen := rendered(t, Text, entry(r), Options{Dir: "results/x", Short: true}); !strings.Contains(screen, "1,810") {
			t.Errorf("%s is not on the screen:\n%s", name, screen)
		}
	}
	r := stored(t, "testdata/valid.json")
	for i := range counts.NumField() {
		reflect.ValueOf(&r.MessagesAll).Elem().Field(i).SetUint(uint64(11_001 + i))
	}
	screen := strings.ReplaceAll(rendered(t, Text, entry(r), Options{Dir: "results/x", Short: true}), "\n            ", " ")
	for i := range counts.NumField() {
		if n := quantity.Count(uint64(11_001 + i)); !slices.Contains(uneventful, counts.Field(i).Name) && !strings.Contains(screen, n) {
			t.Errorf("%s is not on a screen of all outcomes:\n%s", counts.Field(i).Name, screen)
		}
	}
}

// Each check that may decide says so in plain words.
func TestEachVerdictHasItsWords(t *testing.T) {
	t.Parallel()
	r := stored(t, "testdata/fleet.json")
	r.Agents = nil
	named := []string{judge.CheckNetwork, judge.CheckReceived, judge.CheckDrain, judge.CheckAgents, judge.CheckStart, judge.CheckClock}
	for _, c := range judge.Verdict(r, nil).Checks {
		named = append(named, c.Name)
	}
	for _, name := range named {
		switch name {
		case judge.CheckRun, judge.CheckHeadroom, judge.CheckBlocked: // one has its own words, the others decide nothing
		default:
			if finding.Verdict(name) == "" {
				t.Errorf("the catalogue has no words for a verdict by %s", name)
			}
		}
	}
}

func TestFiguresAreGrouped(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"send and e2e p95 up to p99.9":                {"send p95 up to p99.9", "e2e p95 up to p99.9"},
		"send p95, e2e p50 and p99, the rates":        {"send p95", "e2e p50 and p99", "the rates"},
		"the rates":                                   {"the rates"},
		"send and e2e service p99, send system p99.9": {"send p99", "e2e service p99", "send system p99.9"},
	} {
		if got := grouped(names); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
