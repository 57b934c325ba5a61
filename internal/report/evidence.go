package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirmq/weir/result"
)

// Bounds of what is folded away.
const (
	mostEvents   = 200
	mostChecks   = 100
	mostSettings = 300
	mostLines    = 500 // of a scenario
)

// evidence folds away what the figures rest on: every check of the verdict, what
// happened in the run, where it was measured, and the scenario, which repeats it.
func (t *single) evidence(e Entry) {
	t.gap()
	t.checks()
	t.events()
	t.place(e)
	t.scenario(e)
}

// listed is a page of one table whose columns are all words.
func listed(rows [][]cell, heads ...string) *page {
	p := new(page)
	x := &table{rows: rows, words: true}
	for i, h := range heads {
		x.columns = append(x.columns, tableColumn{head: h, left: true, key: i == 0, paint: bold})
	}
	p.tabular(x)
	return p
}

func (t *single) checks() {
	var rows [][]cell
	for _, c := range t.r.Verdict.Checks[:min(len(t.r.Verdict.Checks), mostChecks)] {
		word := string(c.Status)
		switch {
		case c.Inapplicable:
			word = "does not apply"
		case c.Status == result.NotRun:
			word = "not run"
		case c.With != "":
			word += ", included in " + c.With
		}
		rows = append(rows, []cell{{text: c.Name}, {word, colour(string(c.Status))}, {text: c.Value}, {text: c.Limit}, {text: c.Why}})
	}
	if len(rows) > 0 {
		t.folded("the checks of the verdict", listed(rows, "check", "status", "found", "limit", "what it means"))
	}
}

func (t *single) events() {
	if t.course == nil || len(t.course.marks) == 0 {
		return
	}
	marks := t.course.marks
	var rows [][]cell
	for _, m := range marks[:min(len(marks), mostEvents)] {
		n := cell{}
		if m.count > 1 {
			n.text = Count(m.count)
		}
		rows = append(rows, []cell{{text: seconded(m.at)}, {text: m.kind}, n, {text: m.text}})
	}
	p := listed(rows, "at", "event", "about then", "what")
	if len(marks) > mostEvents {
		p.note("the others are in events.jsonl")
	}
	t.folded("what happened in the run", p)
}

// place is where it was measured, and with what.
func (t *single) place(e Entry) {
	var rows [][]cell
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []cell{{text: name}, {text: value}})
		}
	}
	for i, h := range e.Hosts {
		if i == mostValues {
			add("further hosts", Count(uint64(len(e.Hosts)-i)))
			break
		}
		if h.Agent != "" {
			add("agent", h.Agent)
		}
		add("host", h.Hostname)
		add("processors", cpu(h))
		if h.MemoryBytes > 0 {
			add("memory", Size(float64(h.MemoryBytes)))
		}
		add("system", strings.TrimSpace(or(h.Distribution, h.OS)+" "+h.Kernel))
		add("clock source", h.ClockSource)
		add("container", h.Container)
	}
	for i, name := range slices.Sorted(maps.Keys(e.Settings)) {
		if i == mostSettings {
			add("further settings", Count(uint64(len(e.Settings)-i)))
			break
		}
		add(t.r.System.Driver+" "+name, e.Settings[name])
	}
	add("measured by", strings.TrimSpace("weir "+or(e.Weir, t.r.Run.Weir)))
	if len(rows) > 0 {
		t.folded("where it was measured", listed(rows, "", ""))
	}
}

func (t *single) scenario(e Entry) {
	text := strings.TrimSpace(string(e.Scenario))
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if n := len(lines); n > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("# and %s further lines", Count(uint64(n-mostLines))))
	}
	p := new(page)
	p.line(plain("as it was run; weir run scenario.yaml repeats it"))
	p.add(block{form: verbatim, lines: lines})
	t.folded("the scenario", p)
}
