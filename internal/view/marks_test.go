package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// Both responses have the run's lateness, but only one is dominated by it.
func TestLatenessMarkPerResponse(t *testing.T) {
	t.Parallel()
	at := func(ns int64) *result.Dist {
		return &result.Dist{Count: 1000, Percentiles: []result.Percentile{{P: 50, NS: ns, LoNS: &ns, Supported: true}}}
	}
	r := &result.Result{Latency: result.Latency{
		Send: result.Send{Response: at(50_000_000), OnTime: at(48_000_000), Lateness: at(2_000_000)},
		E2E:  result.Pair{Response: at(2_100_000), OnTime: at(100_000)},
	}}
	page := func() string {
		b := rendered(t, Text, entry(r), Options{})
		return b
	}
	if s := page(); strings.Contains(s, "!50.0 ms") || !strings.Contains(s, "!2.10 ms") || strings.Contains(s, "an older weir") {
		t.Errorf("%s\nwant e2e marked and send not, by what each is on time", s)
	}
	r.Latency.Send.OnTime, r.Latency.E2E.OnTime = nil, nil
	if s := page(); strings.Contains(s, "!50.0 ms") || !strings.Contains(s, "!2.10 ms") || !strings.Contains(s, "an older weir") {
		t.Errorf("%s\nwant e2e marked by lateness, and the rule of older results named", s)
	}
}

// Only the check that reports a finding prints it; the folded part of an HTML page has every check.
func TestAFindingIsPrintedOnce(t *testing.T) {
	t.Parallel()
	r := &result.Result{Verdict: result.Verdict{Status: result.Suspect, Checks: []result.Check{
		{Name: "lateness", Status: result.Suspect, Value: "the first", Limit: "l", Why: "Because."},
		{Name: "hiccups", Status: result.Suspect, Value: "the second", Limit: "l", Why: "Again.", With: "lateness"},
	}}}
	var text, html strings.Builder
	must.Do(t, Text(&text, entry(r), Options{}))
	if s := text.String(); !strings.Contains(s, "the first") || strings.Contains(s, "the second") || strings.Contains(s, "Again.") {
		t.Errorf("%s\nwant lateness told and hiccups not", s)
	}
	must.Do(t, HTML(&html, entry(r), Options{}))
	if s := html.String(); !strings.Contains(s, "the second") || !strings.Contains(s, "suspect, included in lateness") {
		t.Error("the page of a browser does not say with what hiccups is told")
	}
}

// TestWholeLatenciesAreExplainedFirst: a screen has a line for one cause.
func TestWholeLatenciesAreExplainedFirst(t *testing.T) {
	t.Parallel()
	r := &result.Result{Verdict: result.Verdict{Figures: []result.Figure{
		{Name: "send.system.p90", By: judge.CheckWire, Part: 1, Why: "left out"}, {Name: "send.p99", By: judge.CheckHiccups, Part: 0.2, Why: "stalls"},
	}}}
	if got := whyNot(r, nil); len(got) != 2 || got[0] != "send p99: stalls" {
		t.Errorf("%q", got)
	}
	if got := whyNot(r, []string{"send.p50", "send.system.p90"}); len(got) != 1 || got[0] != "send.system p90: left out" {
		t.Errorf("%q; want only what is shown", got)
	}
}
