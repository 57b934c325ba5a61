package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/view/layout"
)

const mostValues = 8

const guaranteesDiffer = "guarantees differ: a weaker confirmation comes sooner, so do not rank send times of different guarantees"

// differences writes what the runs differ in and what that rules out; in brief only the latter.
func differences(p *layout.Page, entries []Entry, brief bool) {
	if len(entries) < 2 {
		return
	}
	sides := make([][]compare.RunFacts, 1)
	for _, e := range entries {
		sides[0] = append(sides[0], compare.RunFacts{Facts: factsOf(e), Reports: func(name string) bool { return tells(e, name) }})
	}
	differ := map[string]bool{}
	var lines []layout.Block
	wide := 0
	var servers []string
	for _, x := range compare.Differ(sides) {
		values := x.Sides[0]
		differ[x.Name] = true
		text := strings.Join(values[:min(len(values), mostValues)], "; ")
		if len(values) > mostValues {
			text += fmt.Sprintf("; ... (%d in all)", len(values))
		}
		if x.Unknown > 0 {
			text += fmt.Sprintf(" (not known of %d)", x.Unknown)
		}
		wide = max(wide, len(x.Name))
		lines = append(lines, layout.Block{Form: layout.Item, Mark: layout.Faint.Of(x.Name), Spans: []layout.Span{plain(text)}})
		if setting, is := strings.CutPrefix(x.Name, settingOf); is {
			servers = append(servers, setting)
		}
	}
	switch {
	case brief:
	case len(lines) == 0:
		p.Say("the recorded settings of these runs are identical")
	default:
		p.Say("the runs differ in")
		for _, l := range lines {
			l.Wide = wide
			p.Add(l)
		}
	}
	if len(servers) > 0 {
		p.Line(layout.Doubtful.Of(fmt.Sprintf("settings of the servers differ (%s): they do different work to keep and deliver a message, whatever a confirmation means", strings.Join(servers, ", "))))
	}
	for _, w := range []struct{ fact, says string }{
		{"guarantee", guaranteesDiffer},
		{"loop", "loops differ: a closed loop has service times at saturation only, which leave out the wait that a response includes"},
		{"mode", "modes differ: the runs measured different things"},
		{"agents", "agents differ: one process and several add different times to the figures"},
		{"precedence", "precedence differs (--fifo): pacers with precedence add less to the figures"},
		{"host", "hosts differ: the runs compare hosts as much as systems"},
		{"cpu", "processors differ: the runs compare hosts as much as systems"},
	} {
		if differ[w.fact] && (w.fact != "cpu" || !differ["host"]) {
			p.Line(layout.Doubtful.Of(w.says))
		}
	}
}

// settingOf is the prefix of settings read from a running system, as weir compare names them.
const settingOf = "setting "

// clientPath names what published. Older versions did not record it.
const clientPath = "client path"

// tells reports whether an entry records such facts.
func tells(e Entry, name string) bool {
	if strings.HasPrefix(name, settingOf) {
		return e.Environment.System.Settings != nil || len(e.Environment.Hosts) > 0
	}
	switch name {
	case "host", "cpu", "kernel", "memory", "clock source":
		return len(e.Environment.Hosts) > 0
	case clientPath:
		return e.Result.System.ClientPath != ""
	case "precedence":
		return e.Result.Precedence() != ""
	case "driver", "client", "server", "guarantee", "loop", "batch", "batch consumed", "agents", "weir":
		return true
	}
	return len(e.Scenario) > 0
}

// factsOf returns the facts of a run: the system as found, then the scenario, then the environment.
func factsOf(e Entry) (out []compare.Fact) {
	add := func(name, value, otherwise string) {
		out = append(out, compare.Fact{Name: name, Value: cmp.Or(value, otherwise)})
	}
	s := e.Result.System
	add("driver", s.Driver, "")
	add("guarantee", guarantee(s), "none")
	add("server", server(s), "none")
	add("client", s.Client, "none")
	add("loop", e.Result.Run.Loop, "")
	if s.ClientPath != "" {
		add(clientPath, s.ClientPath, "")
	}
	if s.Batch != "" {
		add("batch", s.Batch, "")
	}
	if s.ConsumeBatch != "" {
		add("batch consumed", s.ConsumeBatch, "")
	}
	add("agents", compare.Agents(e.Result), "none")
	for _, name := range slices.Sorted(maps.Keys(e.Environment.System.Settings)) {
		add(settingOf+name, shortLine(e.Environment.System.Settings[name]), "")
	}
	if p := e.Result.Precedence(); p != "" {
		add("precedence", p, "")
	}
	for _, x := range compare.Settings(e.Scenario, shortLine) {
		if !slices.Contains([]string{"weir", "name", "system.driver", "repeat"}, x.Name) { // names of the run, and what the result states better
			add(x.Name, x.Value, "none")
		}
	}
	if len(e.Environment.Hosts) > 0 {
		h := e.Environment.Hosts[0]
		add("host", strings.Join(hostNames(e.Environment.Hosts), " + "), "nameless")
		add("cpu", cpu(h), "")
		add("kernel", h.Kernel, "not told")
		add("clock source", h.ClockSource, "not told")
	}
	add("weir", cmp.Or(e.Environment.Weir.Version, e.Result.Run.Weir), "not told")
	return out
}

// shortLine writes a value in one short line.
func shortLine(s string) string {
	return layout.Shortened(strings.Join(strings.Fields(s), " "), longestLabel)
}

func cpu(h host.Facts) string {
	return fmt.Sprintf("%d x %s", h.Cores, cmp.Or(h.CPUModel, h.Arch))
}
