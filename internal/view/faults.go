package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

const mostFaults = 20

// sentence returns the text of a finding.
func sentence(code string, values ...any) string { return finding.New(code, values...).String() }

// faults writes what was done to the servers, and what followed.
func (t *single) faults() {
	all := t.r.Faults
	if len(all) == 0 {
		return
	}
	from := originOf(t.r)
	x := &layout.Table{Columns: layout.Columns(layout.Number, layout.Strong, "at", "fault", "lasted", "unconfirmed", "undelivered", "failed", "slowest", "p99 back")}
	x.Columns[1].Kind, x.Cards = layout.Word, true
	var band, bound *int64
	var step int64
	var agents []string
	for i := range all[:min(len(all), mostFaults)] {
		f := &all[i]
		if f.BoundNS != nil && (bound == nil || *f.BoundNS > *bound) {
			bound = f.BoundNS
		}
		for _, a := range f.Agents {
			if !slices.Contains(agents, a) {
				agents = append(agents, a)
			}
		}
		row := []layout.Span{plain(from.says(f.BeganNS)), faulted(f), undoneAfter(f)}
		e := f.Effect
		if e == nil {
			e = &result.FaultEffect{}
		} else {
			band, step = e.BandNS, max(step, e.StepNS)
		}
		row = append(row, lasted(e, e.Unconfirmed), lasted(e, e.Undelivered), plain(quantity.Count(e.Failed)), instant(e.WorstNS), instant(e.BackNS))
		switch last := &row[len(row)-1]; {
		case e.BandNS == nil:
		case e.BackNS == nil:
			*last = layout.Doubtful.Of("no")
		case *e.BackNS == 0:
			*last = plain("kept")
		}
		x.Rows = append(x.Rows, row)
	}
	t.Gap()
	t.Table(x)
	if slices.ContainsFunc(all, func(f result.Fault) bool {
		return f.Effect != nil && (unended(f.Effect, f.Effect.Unconfirmed) || unended(f.Effect, f.Effect.Undelivered))
	}) {
		t.Note(sentence("faults.at_least"))
	}
	if n := len(all) - mostFaults; n > 0 {
		t.Note(sentence("faults.more", "n", n))
	}
	for _, x := range []struct{ do, code string }{{"slow", "faults.slow"}, {"clock", "faults.clock"}} {
		if slices.ContainsFunc(all, func(f result.Fault) bool { return f.Do == x.do }) {
			t.Note(sentence(x.code))
		}
	}
	if len(agents) > 0 {
		slices.Sort(agents)
		t.Note(sentence("faults.agents", "agents", agents, "bound", bound))
	}
	if band != nil {
		within := cmp.Or(step, 100_000_000) // of results that do not record it
		t.Note(sentence("faults.columns"), sentence("faults.range", "within", within), sentence("faults.slowest"), sentence("faults.back", "band", *band, "within", within))
	}
	t.faultLogs()
}

// faulted says what was done, and to which processes.
func faulted(f *result.Fault) layout.Span {
	text := f.Do + " "
	switch {
	case len(f.Processes) == 0:
		return layout.Bad.Of(text + f.To + " failed")
	case f.Do == "partition":
		text += f.To
	case f.Do == "disconnect":
		text += fmt.Sprintf("%s (%s)", f.To, quantity.Count(uint64(f.Connections)))
	case f.To == "agents":
		text += "of agent " + strings.Join(f.Processes, ", ")
	case f.To == strings.Join(f.Processes, " "):
		text += f.To
	case len(f.Processes) > 3:
		text += fmt.Sprintf("%s (%d processes)", f.To, len(f.Processes))
	default:
		text += strings.Join(f.Processes, ", ")
		if f.To == "leader" || f.To == "follower" {
			text += " (" + f.To + ")"
		}
	}
	if f.From != "" && len(f.Processes) > 0 {
		text += " from " + f.From
	}
	if f.ByNS != 0 && len(f.Processes) > 0 {
		text += " by " + quantity.Time(f.ByNS)
	}
	if len(f.Agents) == 1 && f.Do != "disconnect" && f.To != "agents" {
		text += ", host of " + f.Agents[0]
	}
	return plain(text)
}

// undoneAfter is how long a fault lasted.
func undoneAfter(f *result.Fault) layout.Span {
	switch {
	case f.Error != "":
		return layout.Bad.Of("failed")
	case f.UndoneNS == nil:
		return plain("-")
	}
	return plain(quantity.Time(*f.UndoneNS - f.BeganNS))
}

// lasted is the length of an outage: from the number of steps without messages, up to those plus the steps
// before and after. An outage that had not ended within what was recorded is a lower bound.
func lasted(e *result.FaultEffect, s *result.Span) layout.Span {
	switch {
	case s == nil:
		return plain("-")
	case unended(e, s):
		return layout.Doubtful.Of(">= " + quantity.Time(s.ToNS-s.FromNS))
	case e.StepNS == 0: // an older result
		return plain(">= " + quantity.Time(s.ToNS-s.FromNS))
	}
	least, most := s.ToNS-s.FromNS, s.ToNS-s.FromNS+2*e.StepNS
	return plain(quantity.TimeRange(&least, &most))
}

// unended reports whether messages had not resumed when the next fault began or the measured window ended.
func unended(e *result.FaultEffect, s *result.Span) bool {
	return s != nil && s.ToNS > e.UntilNS-max(1, e.StepNS)
}

const mostOutages = 3

// outages says in a line for each of the first faults how it affected the run, and advises replicas for
// messages that are on one node only.
func (t *single) outages() {
	single := false
	from := originOf(t.r)
	for i := range t.r.Faults[:min(len(t.r.Faults), mostOutages)] {
		f := &t.r.Faults[i]
		e := f.Effect
		if f.Error != "" {
			t.Labelled("fault", layout.Bad.Of(f.Do+" "+f.To+" failed: "+f.Error))
		}
		if e == nil || len(f.Processes) == 0 {
			continue
		}
		at := " at " + from.says(f.BeganNS) + ": "
		var parts []string
		add := func(what string, s *result.Span) {
			if s != nil {
				parts = append(parts, what+" for "+lasted(e, s).Text)
			}
		}
		add("nothing confirmed", e.Unconfirmed)
		if e.Unconfirmed == nil {
			add("nothing delivered", e.Undelivered)
		}
		if e.Failed > 0 {
			parts = append(parts, quantity.Count(e.Failed)+" failed")
		}
		switch {
		case e.BandNS == nil:
		case e.BackNS == nil:
			parts = append(parts, "p99 was not back")
		case *e.BackNS > 0:
			parts = append(parts, "p99 back after "+quantity.Time(*e.BackNS))
		}
		if len(parts) == 0 {
			parts = append(parts, "no outage was seen")
		}
		t.Labelled("fault", plain(faulted(f).Text+at+strings.Join(parts, ", ")))
		single = single || e.Failed > 0 && (f.Do == "kill" || f.Do == "stop" || f.Do == "restart")
	}
	if n := t.r.System.Server.Nodes; single && n > 1 && t.r.System.Copies == "1" {
		t.Labelled("", plain(fmt.Sprintf("a confirmed message was on 1 of %d nodes: --replication %d keeps copies, where the system has them", n, min(n, 3))))
	}
}

func instant(ns *int64) layout.Span {
	if ns == nil {
		return plain("-")
	}
	return plain(quantity.Time(*ns))
}
