package view

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/result"
)

// broken has faults of many kinds, and one that failed.
func broken(r *result.Result) {
	ns := func(v int64) *int64 { return &v }
	fault := result.Fault{Do: "restart", To: "broker", Processes: []string{"server-1"}, BeganNS: 4e9, UndoneNS: ns(9e9), Effect: &result.FaultEffect{
		UntilNS: 20e9, StepNS: 1e8, Unconfirmed: &result.Span{FromNS: 4e9, ToNS: 9.5e9}, Failed: 5703, WorstNS: ns(5.63e9), BandNS: ns(12e6), BackNS: ns(5.7e9),
	}}
	r.Faults = []result.Fault{fault, {Do: "kill", To: "leader", Error: "asking which node leads: no answer came"}, fault, fault, fault}
}

// stopped has consumers that took nothing for a while.
func stopped(r *result.Result) {
	x := r.Latency.E2E.Response
	at := int64(9e9)
	r.Pause = &result.Pause{BeganNS: 6e9, ResumedNS: 8e9, Before: 7, Waiting: 2000, CaughtUpNS: &at, UntilNS: at, Old: x, Live: x}
}

// stepped has more stages than a screen has room for.
func stepped(r *result.Result) {
	received := 950.0
	for i := range 7 {
		pair := &result.Pair{Response: r.Latency.E2E.Response, Service: r.Latency.E2E.Service}
		r.Stages = append(r.Stages, result.Stage{
			Plan: fmt.Sprintf("%d000/s..%d000/s", i+1, i+2), FromNS: int64(i) * 1e9, ToNS: int64(i+1) * 1e9,
			OfferedPerS: 1000, SentPerS: 1000, ConfirmedPerS: 990, ReceivedPerS: &received, E2E: pair, Send: pair,
		})
	}
}

// lossy lost and spoilt messages, and failed some.
func lossy(r *result.Result) {
	for _, m := range []*result.Messages{&r.Messages, &r.MessagesAll} {
		m.Lost, m.Duplicated, m.Corrupted, m.Misrouted, m.Failed, m.Unconfirmed, m.Pending = 17, 4, 2, 3, 1200, 7, 5
	}
}

// refused failed many messages after a fault of weir's own.
func refused(r *result.Result) {
	r.Verdict.Status = result.Suspect
	r.Verdict.Checks = []result.Check{{
		Name: judge.CheckFailed, Status: result.Suspect, Value: "1,199 of 12,000 messages failed (9.99 %)",
		Why: "All of it came after weir's own fault restart broker at 4.0 s. The most frequent error, 1,150 times: overloaded: OOM command not allowed when used memory > 'maxmemory'. " +
			"The rates describe what the system accepted. The latencies count what failed as lower bounds. Look at the errors in events.jsonl, or state the share that may fail (limits.failed).",
	}}
}

func objectives(r *result.Result) {
	for i, status := range []result.Outcome{result.Pass, result.Pass, result.Undecided, result.Pass, result.Fail} {
		r.Verdict.SLO = append(r.Verdict.SLO, result.SLO{Expr: fmt.Sprintf("e2e.p99 <= %dms", i+1), Status: status, Unit: "ns", Value: 1e6})
	}
}

// Whatever happened, the final screen fits a terminal and states the essentials. Commands are never
// wrapped.
func TestALastScreenIsOneScreen(t *testing.T) {
	t.Parallel()
	of := func(file string, change ...func(*result.Result)) func(io.Writer) error {
		return func(w io.Writer) error {
			r := stored(t, "testdata/"+file+".json")
			for _, f := range change {
				f(r)
			}
			return Text(w, entry(r), Options{Dir: "results/x", Short: true})
		}
	}
	several := func(entries ...Entry) func(io.Writer) error {
		return func(w io.Writer) error { return Overview(w, entries, Options{Dir: "results/x", Short: true}) }
	}
	many := fiveRuns(t)
	for len(many) < 30 {
		many = append(many, many[0])
	}
	curve := []capacity.Probed{{RatePerS: 500, Judgement: "passed", Dir: "curve-01", Of: "send"}}
	search := &capacity.Report{
		Promise: []string{"send.p99 <= 5ms"}, Curve: curve, Answer: capacity.Answered{PassPerS: 1000, FailPerS: 2000, Stop: capacity.Found},
		Probes: []capacity.Probed{
			{RatePerS: 1000, Judgement: "passed", Dir: "001-1000", Of: "send"},
			{RatePerS: 2000, Judgement: "failed", Why: strings.Repeat("send.p99 is 9.00 ms, and ", 20), Dir: "002-2000", Of: "send"},
		},
	}
	for name, x := range map[string]struct {
		write func(io.Writer) error
		says  []string
	}{
		"default":    {of("valid"), []string{"VALID  the figures can be used", "99.9 %   1.59 ms  1.54 to 1.65 ms     1.79 ms  1.74 to 1.86 ms", "loss        lost 0", "weir report results/x --full"}},
		"request":    {of("request"), []string{"rtt  ", "2 failed, 1 undecided, 5 passed"}},
		"consume":    {of("consume"), []string{"received 79,750/s"}},
		"produce":    {of("produce"), []string{"loss was not checked"}},
		"backlog":    {of("backlog"), []string{"drained 126,771/s"}},
		"closed":     {of("closed"), []string{"closed loop: service times at saturation", "  99 %   234 ns"}},
		"fault":      {of("valid", broken), []string{"restart server-1 at 4.0 s: nothing confirmed for 5.50 to 5.70 s", "kill leader failed: asking which node leads", "and 2 more faults"}},
		"pause":      {of("valid", stopped), []string{"the consumers took nothing for 2.00 s", "caught up 1.00 s after"}},
		"steps":      {of("valid", stepped), []string{"1000/s..2000/s", "and 2 further stages"}},
		"fleet":      {of("fleet"), []string{"agents      4: a on north, b on south", "clock       e2e rests on two clocks"}},
		"invalid":    {of("nothing"), []string{"INVALID  do not use the figures: there are too few samples", "Nothing was measured"}},
		"lost":       {of("valid", lossy), []string{"the system lost 17 messages and corrupted 2", "the system failed 1,200 of", "3 messages from another destination"}},
		"refused":    {of("valid", refused), []string{"All of it came after weir's own fault restart broker at 4.0 s.", "OOM command not allowed", "lower bounds.\n"}},
		"crowded":    {of("valid", refused, broken, lossy, objectives, stepped), []string{"All of it came after weir's own fault restart broker at 4.0 s."}},
		"objectives": {of("valid", objectives), []string{"fail       objective e2e.p99 <= 5ms", "undecided  objective e2e.p99 <= 3ms", "pass       objective e2e.p99 <= 4ms"}},
		"everything": {of("suspect", lossy, broken, stopped, stepped, objectives), []string{"SUSPECT", "the system lost 17 messages", "fail       objective"}},
		"matrix":     {several(fiveRuns(t)[:3]...), []string{"3 runs: ", "\njetstream-500     INVALID", "guarantees differ"}},
		"runs":       {several(many...), []string{"and 22 more runs"}},
		"capacity": {func(w io.Writer) error {
			return Overview(w, fiveRuns(t)[:1], Options{Short: true, Searches: []*Search{{Dir: "results/x", Report: search}}})
		}, []string{"capacity    1,000/s met every objective, 2,000/s did not\n", "objectives  send.p99 <= 5ms", "curve "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := same(t, "screen-"+name+".txt", x.write)
			fits(t, got, MostLines)
			for _, want := range x.says {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
		})
	}
}

// fits reports a screen that is too high or too wide.
func fits(t *testing.T, got string, most int) {
	t.Helper()
	lines, command := 0, false
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		if label := strings.TrimRight(line[:min(len(line), 12)], " "); label != "" {
			command = label == "next" || label == "details"
		}
		n := utf8.RuneCountInString(line)
		if lines++; n >= ScreenWidth {
			lines += (n - 1) / ScreenWidth
			if !command {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	if lines > most {
		t.Errorf("%d lines; want at most %d\n%s", lines, most, got)
	}
}

// Also if many sides differ in many figures.
func TestComparisonScreenIsShort(t *testing.T) {
	t.Parallel()
	found := &compare.Comparison{Alpha: 0.05, Band: 0.05, Warnings: []string{strings.Repeat("settings differ ", 20), "B has lost messages in 1 of 6 runs"}}
	for i := range 9 {
		s := compare.SideSummary{Side: string(rune('A' + i)), Given: fmt.Sprintf("load.in_flight=%d", i), Used: 6, Tally: &compare.Tally{}}
		found.Sides = append(found.Sides, s)
	}
	for _, name := range []string{"p50", "p99", "max"} {
		f := compare.Figure{Family: "e2e.response", Name: name, Unit: compare.UnitTime}
		for range found.Sides {
			f.Sides = append(f.Sides, compare.Values{Change: &compare.Change{Verdict: compare.Worse, Shift: 1e6, Tests: 1}})
		}
		found.Figures = append(found.Figures, f)
	}
	for _, sides := range []int{2, 9} {
		some := *found
		some.Sides = some.Sides[:sides]
		var b bytes.Buffer
		must.Do(t, ComparisonScreen(&some, Parting{}).Write(&b, MostAnswer, 0, false))
		fits(t, b.String(), MostAnswer)
		for _, want := range []string{"yes: load.in_flight=1 is slower: e2e p99", "B has lost messages"} {
			if sides == 2 && !strings.Contains(b.String(), want) {
				t.Errorf("%q is not in\n%s", want, b.String())
			}
		}
	}
}

// The golden files of texts are what a pipe gets: 80 columns, but for what is to be copied.
func TestTextsFit80Columns(t *testing.T) {
	t.Parallel()
	texts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(texts) < 20 {
		t.Fatalf("%d texts (%v)", len(texts), err)
	}
	for _, name := range texts {
		b := must.Get(os.ReadFile(name))(t)
		for _, line := range golden.Wide(string(b), ScreenWidth) {
			t.Errorf("%s: %q", name, line)
		}
	}
}
