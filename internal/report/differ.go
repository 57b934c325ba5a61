package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/layout"
)

// mostValues is how many values of one fact are written out.
const mostValues = 8

// differences says what the runs differ in, and what that forbids.
func differences(p *layout.Page, entries []Entry) {
	if len(entries) < 2 {
		return
	}
	facts := make([]map[string]string, len(entries))
	var names []string
	for i, e := range entries {
		facts[i] = map[string]string{}
		for _, f := range factsOf(e) {
			facts[i][f.name] = f.value
			if !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	values := func(name string, absent bool) (values []string, unknown int) {
		for i, e := range entries {
			v, ok := facts[i][name]
			switch {
			case ok:
			case !known(e, name):
				unknown++
				continue
			case !absent:
				continue
			default:
				v = "none"
			}
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		return values, unknown
	}
	// A setting that a run has not is worth a word, unless it has it not because
	// it is a run of another kind: the options of one driver are none of
	// another's, and a closed loop has no arrival.
	alike := !slices.ContainsFunc([]string{"driver", "loop", "mode"}, func(name string) bool {
		v, _ := values(name, true)
		return len(v) > 1
	})
	differ := map[string]bool{}
	var lines []layout.Block
	for _, name := range names {
		values, unknown := values(name, alike)
		if len(values) < 2 {
			continue
		}
		differ[name] = true
		text := strings.Join(values[:min(len(values), mostValues)], "; ")
		if len(values) > mostValues {
			text += fmt.Sprintf("; ... (%d in all)", len(values))
		}
		if unknown > 0 {
			text += fmt.Sprintf(" (not known of %d)", unknown)
		}
		lines = append(lines, layout.Block{Form: layout.Item, Mark: layout.Faint.Of(name), Spans: []layout.Span{plain(text)}})
	}
	if len(lines) == 0 {
		p.Say("the recorded settings of these runs are identical")
	} else {
		p.Say("the runs differ in")
		wide := 0
		for _, l := range lines {
			wide = max(wide, len(l.Mark.Text))
		}
		for _, l := range lines {
			l.Wide = wide
			p.Add(l)
		}
	}
	var servers []string
	for _, name := range names {
		if setting, is := strings.CutPrefix(name, settingOf); is && differ[name] {
			servers = append(servers, setting)
		}
	}
	if len(servers) > 0 {
		p.Line(layout.Doubtful.Of(fmt.Sprintf("settings of the servers differ (%s): they do different work to keep and deliver a message, whatever a confirmation means", strings.Join(servers, ", "))))
	}
	for _, w := range []struct{ fact, says string }{
		{"guarantee", "guarantees differ: a weaker confirmation comes sooner, so do not rank send times of different guarantees"},
		{"loop", "loops differ: a closed loop has service times at saturation only, which leave out the wait that a response includes"},
		{"mode", "modes differ: the runs measured different things"},
		{"agents", "agents differ: one process and several add different times to the figures"},
		{"precedence", "precedence differs (--fifo): lanes with precedence add less to the figures"},
		{"host", "hosts differ: the runs compare hosts as much as systems"},
		{"cpu", "processors differ: the runs compare hosts as much as systems"},
	} {
		if differ[w.fact] && (w.fact != "cpu" || !differ["host"]) {
			p.Line(layout.Doubtful.Of(w.says))
		}
	}
}

// A fact is something of a run that another may have otherwise.
type fact struct{ name, value string }

// settingOf begins the names of settings that were read from a running system, as
// weir compare has them.
const settingOf = "setting "

// clientPath names what published. An earlier weir does not tell it.
const clientPath = "client path"

// known reports whether an entry tells such facts at all.
func known(e Entry, name string) bool {
	if strings.HasPrefix(name, settingOf) {
		return e.Settings != nil || len(e.Hosts) > 0
	}
	switch name {
	case "host", "cpu", "kernel", "memory", "clock source":
		return len(e.Hosts) > 0
	case clientPath:
		return e.Result.System.ClientPath != ""
	case "precedence":
		return e.Result.Precedence() != ""
	case "driver", "client", "server", "guarantee", "loop", "agents", "weir":
		return true
	}
	return len(e.Scenario) > 0
}

// factsOf returns what a run was: what the system was found to be, then the
// scenario, then where it ran.
func factsOf(e Entry) []fact {
	s := e.Result.System
	out := []fact{{"driver", s.Driver}, {"guarantee", or(guarantee(s), "none")}, {"server", or(server(s), "none")}, {"client", or(s.Client, "none")}, {"loop", e.Result.Run.Loop}}
	if s.ClientPath != "" {
		out = append(out, fact{clientPath, s.ClientPath})
	}
	out = append(out, fact{"agents", agentsOf(e.Result)})
	for _, name := range slices.Sorted(maps.Keys(e.Settings)) {
		out = append(out, fact{settingOf + name, inline(e.Settings[name])})
	}
	if p := e.Result.Precedence(); p != "" {
		out = append(out, fact{"precedence", p})
	}
	out = append(out, settings(e.Scenario)...)
	if len(e.Hosts) > 0 {
		h := e.Hosts[0]
		out = append(out, fact{"host", or(strings.Join(hostNames(e.Hosts), " + "), "nameless")}, fact{"cpu", cpu(h)}, fact{"kernel", or(h.Kernel, "not told")},
			fact{"clock source", or(h.ClockSource, "not told")})
	}
	return append(out, fact{"weir", or(or(e.Weir, e.Result.Run.Weir), "not told")})
}

func cpu(h host.Facts) string {
	return fmt.Sprintf("%d x %s", h.Cores, or(h.CPUModel, h.Arch))
}

// settings flattens a resolved scenario: "load.rate" and its value. Without what
// names the run, and what the result tells better.
func settings(scenario []byte) []fact {
	var tree yaml.MapSlice
	if yaml.UnmarshalWithOptions(scenario, &tree, yaml.UseOrderedMap()) != nil {
		return nil // its run is shown all the same
	}
	var out []fact
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(yaml.MapSlice); ok && len(m) > 0 {
			for _, x := range m {
				walk(strings.TrimPrefix(path+"."+fmt.Sprint(x.Key), "."), x.Value)
			}
			return
		}
		if path != "" && !slices.Contains([]string{"weir", "name", "system.driver", "repeat"}, path) {
			out = append(out, fact{path, inline(v)})
		}
	}
	walk("", tree)
	return out
}

// inline writes a value of a scenario in one line.
func inline(v any) string {
	switch v := v.(type) {
	case yaml.MapSlice:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = fmt.Sprint(x.Key) + ": " + inline(x.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = inline(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return layout.Shortened(strings.Join(strings.Fields(fmt.Sprint(v)), " "), longestLabel)
}
