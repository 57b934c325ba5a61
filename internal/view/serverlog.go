package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// Limits on what is shown of server logs.
const (
	mostLogLines  = 6   // shown with the figures
	mostFaultLogs = 5   // likewise
	longLogLine   = 160 // in characters, likewise
	mostLogRows   = 300 // in HTML
)

// serverLog writes server log lines from near the slow messages, for as many of those as have some.
func (t *single) serverLog(s *result.Slowest) {
	if t.o.drawn != "" {
		return // a page has them once, in a table
	}
	all := slices.DeleteFunc(slices.Clone(s.Clusters), func(c result.SlowCluster) bool { return c.Log == nil })
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b result.SlowCluster) int { return cmp.Compare(b.Messages, a.Messages) })
	i := slices.IndexFunc(all, func(c result.SlowCluster) bool { return len(c.Log.Lines) > 0 })
	if i < 0 {
		t.Labelled("", plain("the servers' own logs said nothing then"))
		return
	}
	when := "then"
	if len(s.Clusters) > 1 {
		when = "from 1 s before " + originOf(t.r).says(all[i].FromNS)
	}
	t.Labelled("", plain(fmt.Sprintf("the servers' own logs %s:", when)))
	t.logLines(all[i].Log)
}

func (t *single) faultLogs() {
	label, from := "logs", originOf(t.r)
	if t.o.drawn != "" {
		return
	}
	for i := range t.r.Faults {
		f := &t.r.Faults[i]
		if f.Log == nil {
			continue
		}
		if label != "" {
			t.Gap()
		}
		what := fmt.Sprintf("of the servers after %s, %s", faulted(f).Text, from.says(f.BeganNS))
		if len(f.Log.Lines) == 0 {
			t.Labelled(label, plain(what+": nothing"))
		} else {
			t.Labelled(label, plain(what+":"))
			t.logLines(f.Log)
		}
		if label = ""; i+1 == mostFaultLogs {
			return
		}
	}
}

func (t *single) logLines(log *result.ServerLog) {
	lines, from := firstOfEach(log.Lines, mostLogLines), originOf(t.r)
	for _, l := range lines {
		t.Labelled("", plain(fmt.Sprintf("%s, %s: %s", named(l), from.says(l.TNS), ended(layout.Printable(l.Text), longLogLine))))
	}
	if text := further(log, len(log.Lines)-len(lines)); text != "" {
		t.Labelled("", plain(text))
	}
}

// firstOfEach returns at most that many lines in order: the first of each server, then the second of each.
func firstOfEach(lines []result.LogLine, most int) []result.LogLine {
	type place struct{ rank, line int }
	seen, places := map[string]int{}, make([]place, len(lines))
	for i, l := range lines {
		places[i] = place{seen[l.Process], i}
		seen[l.Process]++
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.rank, b.rank) })
	places = places[:min(len(places), most)]
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.line, b.line) })
	var all []result.LogLine
	for _, p := range places {
		all = append(all, lines[p.line])
	}
	return all
}

// further counts the lines not shown.
func further(log *result.ServerLog, hidden int) string {
	n := log.More + uint64(hidden)
	switch {
	case log.MoreAtLeast:
		return fmt.Sprintf("and at least %s", quantity.Counted(n, "further line", "further lines"))
	case n > 0:
		return fmt.Sprintf("and %s", quantity.Counted(n, "further line", "further lines"))
	}
	return ""
}

// named is the name of the server that wrote a line.
func named(l result.LogLine) string { return layout.Shortened(layout.Printable(l.Process), 30) }

// ended truncates a text to n characters.
func ended(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return s
}

// serverLogTable lists server log lines near the slowest messages and after faults, folded, in HTML.
func (t *single) serverLogTable() {
	from := originOf(t.r)
	var rows [][]layout.Span
	add := func(what string, log *result.ServerLog) {
		if log == nil || len(rows) >= mostLogRows {
			return
		}
		for _, l := range log.Lines {
			rows = append(rows, []layout.Span{plain(what), plain(from.says(l.TNS)), plain(named(l)), plain(ended(layout.Printable(l.Text), 300))})
		}
		if text := further(log, 0); text != "" {
			rows = append(rows, []layout.Span{plain(what), plain(""), plain(""), layout.Faint.Of(text)})
		}
	}
	if s := t.furthest(); s != nil {
		for _, c := range s.Clusters {
			add("slow messages from "+from.says(c.FromNS), c.Log)
		}
	}
	for i := range t.r.Faults {
		f := &t.r.Faults[i]
		add(fmt.Sprintf("%s at %s", faulted(f).Text, from.says(f.BeganNS)), f.Log)
	}
	if len(rows) > 0 {
		t.Fold(listed(rows, "beside", "seen at", "server", "line of its log"), plain("the servers' own logs"))
	}
}
