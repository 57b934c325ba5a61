package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/outliers"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// Limits of the folded evidence.
const (
	mostEvents   = 200
	mostChecks   = 100
	mostSettings = 300
	mostLines    = 500 // of a scenario
)

// evidence adds, folded, what the figures rest on: every check of the verdict, the run's events, its
// environment, and the scenario, which repeats it.
func (t *single) evidence() {
	t.Gap()
	if t.o.lone { // among several runs its own page has them
		t.checks()
		t.events()
		t.slowestTable()
		t.place()
	}
	t.serverLogTable()
	t.scenario()
}

// listed returns a page with one table of prose.
func listed(rows [][]layout.Span, heads ...string) *layout.Page {
	p := new(layout.Page)
	p.Table(&layout.Table{Columns: layout.Columns(layout.Prose, layout.Strong, heads...), Rows: rows, Cards: true})
	return p
}

func (t *single) checks() {
	var rows [][]layout.Span
	for _, c := range t.r.Verdict.Checks[:min(len(t.r.Verdict.Checks), mostChecks)] {
		word := string(c.Status)
		switch {
		case c.Inapplicable:
			word = "does not apply"
		case c.Status == result.NotRun:
			word = "not run"
		case c.With != "":
			word += ", included in " + c.With
		case c.Noted:
			word = t.noted(c.Name)
		}
		rows = append(rows, []layout.Span{plain(c.Name), colour(c.Status).Of(word), plain(c.Value), plain(c.Limit), plain(c.Why)})
	}
	if len(rows) > 0 {
		t.Fold(listed(rows, "check", "status", "found", "limit", "what it means"), plain("the checks of the verdict"))
	}
}

// noted says what a check that is over its limit but does not decide about the run does instead.
func (t *single) noted(check string) string {
	marks := check == judge.CheckLateness || check == judge.CheckBlocked
	if marks || slices.ContainsFunc(t.r.Verdict.Figures, func(f result.Figure) bool { return f.By == check }) {
		return "marks figures"
	}
	return "names a cause"
}

// told is the name of a kind of event for readers.
func told(kind string) string {
	if kind == outliers.Hiccup {
		return "stall"
	}
	return kind
}

func (t *single) events() {
	if t.Course == nil || len(t.Course.marks) == 0 {
		return
	}
	marks := t.Course.marks
	var rows [][]layout.Span
	for _, m := range marks[:min(len(marks), mostEvents)] {
		n := layout.Span{}
		if m.count > 1 {
			n.Text = quantity.Count(m.count)
		}
		rows = append(rows, []layout.Span{plain(seconded(m.at)), plain(told(m.kind)), n, plain(m.text)})
	}
	p := listed(rows, "at", "event", "events then", "what")
	if len(marks) > mostEvents {
		p.Note("the others are in events.jsonl")
	}
	t.Fold(p, plain("what happened in the run"))
}

func (t *single) place() {
	var rows [][]layout.Span
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []layout.Span{plain(name), plain(value)})
		}
	}
	settings := t.Environment.System.Settings
	for i, h := range t.Environment.Hosts {
		if i == mostValues {
			add("further hosts", quantity.Count(uint64(len(t.Environment.Hosts)-i)))
			break
		}
		if h.Agent != "" {
			add("agent", h.Agent)
		}
		add("host", h.Hostname)
		add("processors", cpu(h))
		if h.MemoryBytes > 0 {
			add("memory", quantity.Bytes(float64(h.MemoryBytes)))
		}
		add("system", strings.TrimSpace(cmp.Or(h.Distribution, h.OS)+" "+h.Kernel))
		add("clock source", h.ClockSource)
		add("container", h.Container)
	}
	for i, name := range slices.Sorted(maps.Keys(settings)) {
		if i == mostSettings {
			add("further settings", quantity.Count(uint64(len(settings)-i)))
			break
		}
		add(t.r.System.Driver+" "+name, settings[name])
	}
	add("measured by", strings.TrimSpace("weir "+cmp.Or(t.Environment.Weir.Version, t.r.Run.Weir)))
	if len(rows) > 0 {
		t.Fold(listed(rows, "", ""), plain("where it was measured"))
	}
}

func (t *single) scenario() {
	text := strings.TrimSpace(string(t.Scenario))
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if n := len(lines); n > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("# and %s further lines", quantity.Count(uint64(n-mostLines))))
	}
	p := new(layout.Page)
	p.Say("as it was run; weir run scenario.yaml repeats it")
	p.Add(layout.Block{Form: layout.Verbatim, Lines: lines})
	t.Fold(p, plain("the scenario"))
}
