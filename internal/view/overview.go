package view

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// An Entry is a run to show.
type Entry struct {
	result.Entry
	Review  *judge.Review // judgement repeated on Result; nil: its verdict is the stored one
	Windows *Windows      // its samples in windows; nil: not requested
	Course  *Course       // its course, for HTML only; nil if unknown
}

// Entries returns runs to show, with only what their folders hold.
func Entries(runs []result.Entry) []Entry {
	all := make([]Entry, len(runs))
	for i, e := range runs {
		all[i].Entry = e
	}
	return all
}

// Loaded returns the same runs without what is only for display.
func Loaded(entries []Entry) []result.Entry {
	all := make([]result.Entry, len(entries))
	for i, e := range entries {
		all[i] = e.Entry
	}
	return all
}

// Overview writes several results for a terminal: how many are valid, how the runs differ, and a table with
// a row for each in the order given. It does not rank, and says where guarantees, hosts or loops differ so
// that figures must not be ranked. With Full each run follows as in Text. It returns the error of w.
func Overview(w io.Writer, entries []Entry, o Options) error {
	if o.Short {
		most := MostLines
		if len(o.Searches) == 1 {
			most = MostAnswer
		}
		return overviewScreen(entries, o).Write(w, most, o.Width, o.Colour)
	}
	p := new(layout.Page)
	overview(p, entries, false, o)
	if o.Full {
		for i, e := range entries {
			p.Gap()
			p.Heading(fmt.Sprintf("%d of %d: %s", i+1, len(entries), title(e.Result)))
			one(p, e, Options{Dir: e.Dir, Session: o.Session, Percentiles: o.Percentiles})
		}
	}
	p.Gap()
	tally(p, entries)
	summary(p, entries, o)
	p.Verbatim(o.Shown...)
	if o.Dir != "" {
		p.Verbatim("written to " + o.Dir + ", with a folder for each run")
	}
	_, err := io.WriteString(w, o.text().Page(p))
	return err
}

// OverviewMarkdown is Overview in GitHub Markdown.
func OverviewMarkdown(w io.Writer, entries []Entry, o Options) error {
	p := new(layout.Page)
	p.Heading(o.named(runs(len(entries))))
	overview(p, entries, true, o)
	if _, err := io.WriteString(w, markdown(1).Page(p)); err != nil || !o.Full {
		return err
	}
	for _, e := range entries {
		p := new(layout.Page)
		p.Heading(title(e.Result))
		one(p, e, Options{Dir: e.Dir, Session: o.Session, Percentiles: o.Percentiles})
		if _, err := io.WriteString(w, "\n"+markdown(2).Page(p)); err != nil {
			return err
		}
	}
	return nil
}

func runs(n int) string { return quantity.Counted(n, "run", "runs") }

// named is the title of a page of runs: the purpose of a search, or the name.
func (o Options) named(name string) string {
	if len(o.Searches) == 1 {
		return o.Searches[0].name()
	}
	return name
}

// overview writes several results to a page, with the short answer first or not.
func overview(p *layout.Page, entries []Entry, first bool, o Options) {
	searched := len(o.Searches) == 1
	if !searched || !first {
		tally(p, entries)
	}
	if first {
		summary(p, entries, o)
		p.Contents()
	}
	if searched {
		o.Searches[0].drawn(p, first, nil)
	}
	p.Gap()
	if searched && first { // how its runs went comes after what they say
		tally(p, entries)
	}
	compared(p, entries)
}

// compared writes why runs are not valid, what they differ in, and their figures.
func compared(p *layout.Page, entries []Entry) {
	doubts(p, entries)
	differences(p, entries, false)
	p.Gap()
	x := overviewTable(entries)
	p.Table(x)
	marksOf(p, x, entries)
	repeats(p, entries)
	reviews(p, entries)
}

// marksOf explains the marks on figures in a table of runs.
func marksOf(p *layout.Page, x *layout.Table, entries []Entry) {
	var rs []*result.Result
	for _, e := range entries {
		rs = append(rs, e.Result)
	}
	doubtful(p, x, rs...)
	tooFew(p, x)
	withheld(p, x, rs...)
	if marked(x, ">= ", fewSamples+">= ", "?>= ", "!>= ") {
		p.Note(">= at least: messages that never came count with their age")
	}
}

// tally counts the valid runs and the objectives met.
func tally(p *layout.Page, entries []Entry) {
	verdicts, outcomes := map[string]int{}, map[string]int{}
	interrupted := 0
	for _, e := range entries {
		verdicts[string(e.Result.Verdict.Status)]++
		for i := range e.Result.Verdict.SLO {
			outcomes[string(e.Result.Verdict.SLO[i].Outcome())]++
		}
		if e.Result.Run.Interrupted {
			interrupted++
		}
	}
	spans := []layout.Span{plain(runs(len(entries)) + ": ")}
	for _, s := range []result.Status{result.Valid, result.Suspect, result.Invalid} {
		if n := verdicts[string(s)]; n > 0 {
			if len(spans) > 1 {
				spans = append(spans, plain(", "))
			}
			spans = append(spans, plain(quantity.Count(uint64(n))+" "), colour(s).Of(strings.ToUpper(string(s))))
		}
	}
	if interrupted > 0 {
		spans = append(spans, plain(fmt.Sprintf(" (%d interrupted)", interrupted)))
	}
	p.Line(spans...)
	if n := verdicts[string(result.Invalid)]; n > 0 {
		p.Item(layout.Bad.Of("do not use the figures of an INVALID run"))
	}
	if len(outcomes) > 0 {
		spans = []layout.Span{plain("objectives: ")}
		for _, o := range []result.Outcome{result.Pass, result.Fail, result.Undecided} {
			if n := outcomes[string(o)]; n > 0 {
				if len(spans) > 1 {
					spans = append(spans, plain(", "))
				}
				spans = append(spans, plain(quantity.Count(uint64(n))+" "), colour(o).Of(said(o)))
			}
		}
		p.Line(spans...)
	}
}

// said names the outcome of an objective in a count.
func said(o result.Outcome) string {
	return map[result.Outcome]string{result.Pass: "passed", result.Fail: "failed", result.Undecided: "undecided"}[o]
}

// longestLabel bounds the first column, to leave room for the others.
const longestLabel = 40

// labels returns the rows' names: the runs' names, with their folders where two are the same.
func labels(entries []Entry) []string {
	of := func(name func(Entry) string) ([]string, bool) {
		var out []string
		seen := map[string]bool{}
		unique := true
		for _, e := range entries {
			s := layout.Shortened(name(e), longestLabel)
			unique = unique && !seen[s] && s != ""
			seen[s] = true
			out = append(out, s)
		}
		return out, unique
	}
	names, unique := of(func(e Entry) string { return title(e.Result) })
	if unique {
		return names
	}
	if folders, unique := of(func(e Entry) string { return filepath.Base(e.Dir) }); unique {
		return folders
	}
	paths, unique := of(func(e Entry) string { return e.Dir })
	if unique {
		return paths
	}
	for i := range names {
		names[i] = fmt.Sprintf("%d %s", i+1, names[i])
	}
	return names
}

// A reading is a column of the overview: its heading and the cell of each run.
type reading struct {
	layout.Column
	of func(*result.Result) layout.Span
}

// overviewTable has a row for each run.
func overviewTable(entries []Entry) *layout.Table {
	results := make([]*result.Result, len(entries))
	for i, e := range entries {
		results[i] = e.Result
	}
	x := &layout.Table{Columns: []layout.Column{{Head: "run", Tone: layout.Strong, Kind: layout.Word, Key: true}}}
	readings := slices.Concat(identity(results), rates(results), tails(results), counts(results))
	for _, c := range readings {
		c.Tone = layout.Strong
		x.Columns = append(x.Columns, c.Column)
	}
	for i, label := range labels(entries) {
		row := []layout.Span{plain(label)}
		for _, c := range readings {
			row = append(row, c.of(results[i]))
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

// identity returns the columns that say what was measured and whether it is valid.
func identity(results []*result.Result) []reading {
	words := func(head string, of func(*result.Result) layout.Span) reading {
		return reading{layout.Column{Head: head, Kind: layout.Word}, of}
	}
	out := []reading{
		words("system", func(r *result.Result) layout.Span { return plain(r.System.Driver) }),
		words("guarantee", func(r *result.Result) layout.Span {
			if r.Consuming() {
				return plain("-")
			}
			return plain(cmp.Or(r.System.Guarantee, "-"))
		}),
		words("verdict", func(r *result.Result) layout.Span {
			s := string(r.Verdict.Status)
			return colour(s).Of(strings.ToUpper(s))
		}),
	}
	if slices.ContainsFunc(results, func(r *result.Result) bool { return len(r.Verdict.SLO) > 0 }) {
		out = append(out, words("objectives", objectivesOf))
	}
	return out
}

// objectivesOf summarizes the outcome of a run's objectives.
func objectivesOf(r *result.Result) layout.Span {
	n := map[result.Outcome]int{}
	for i := range r.Verdict.SLO {
		n[r.Verdict.SLO[i].Outcome()]++
	}
	var parts []string
	worst := result.Outcome("")
	for _, o := range []result.Outcome{result.Fail, result.Undecided, result.Pass} {
		if n[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[o], said(o)))
			if worst == "" {
				worst = o
			}
		}
	}
	return colour(worst).Of(cmp.Or(strings.Join(parts, ", "), "-"))
}

// rates returns the rates in the measured window, for the directions that any run has.
func rates(results []*result.Result) []reading {
	rate := func(head string, has func(*result.Result) bool, of func(result.Throughput) float64) []reading {
		if !slices.ContainsFunc(results, has) {
			return nil
		}
		return []reading{{layout.Column{Group: "rate", Head: head}, func(r *result.Result) layout.Span {
			if !has(r) {
				return plain("-")
			}
			return plain(quantity.Rate(of(r.Throughput)))
		}}}
	}
	return slices.Concat(
		rate("offered", func(r *result.Result) bool { return sent(r) && r.Run.Loop != result.LoopClosed },
			func(t result.Throughput) float64 { return t.OfferedPerS }),
		rate("confirmed", sent, func(t result.Throughput) float64 { return t.ConfirmedPerS }),
		rate(arrived(results...), rated, func(t result.Throughput) float64 { v, _ := t.Received(); return v }),
	)
}

// tails returns percentiles of each response, or of the service if there is no response.
func tails(results []*result.Result) []reading {
	var out []reading
	for _, group := range []string{"send", "rtt", "e2e"} {
		for _, name := range []string{"response", "service"} {
			find := func(r *result.Result) (distribution, bool) {
				for _, c := range distributions(r) {
					if c.group == group && c.name == name && c.interval { // the headline distribution
						return c, true
					}
				}
				return distribution{}, false
			}
			if !slices.ContainsFunc(results, func(r *result.Result) bool { _, ok := find(r); return ok }) {
				continue
			}
			for _, p := range []float64{50, 99, 99.9, 100} {
				out = append(out, reading{layout.Column{Group: group + " " + name, Head: headOf(p)}, func(r *result.Result) layout.Span {
					if c, ok := find(r); ok {
						return c.figure(r, p)
					}
					return plain("-")
				}})
			}
		}
	}
	return out
}

// counts covers the whole run with its warm-up: errors there count too.
func counts(results []*result.Result) []reading {
	count := func(head string, always bool, has func(*result.Result) bool, of func(result.Messages) uint64) []reading {
		shows := func(r *result.Result) bool { return has(r) && (always || of(r.MessagesAll) > 0) }
		if !slices.ContainsFunc(results, shows) {
			return nil
		}
		return []reading{{layout.Column{Group: "whole run", Head: head}, func(r *result.Result) layout.Span {
			if !has(r) {
				return plain("-")
			}
			n := of(r.MessagesAll)
			if n > 0 {
				return layout.Bad.Of(quantity.Count(n))
			}
			return plain("0")
		}}}
	}
	checked := func(r *result.Result) bool { return sent(r) && watched(r) }
	return slices.Concat(
		count("lost", true, checked, func(m result.Messages) uint64 { return m.Lost }),
		count("duplicated", true, checked, func(m result.Messages) uint64 { return m.Duplicated }),
		count("reordered", true, checked, func(m result.Messages) uint64 { return m.Reordered }),
		count("corrupted", false, checked, func(m result.Messages) uint64 { return m.Corrupted }),
		count("misrouted", false, checked, func(m result.Messages) uint64 { return m.Misrouted }),
		count("unknown", false, checked, func(m result.Messages) uint64 { return m.Unknown }),
		count("dead-lettered", false, checked, func(m result.Messages) uint64 { return m.DeadLettered }),
		count("late", false, checked, func(m result.Messages) uint64 { return m.Late }),
		count("pending", false, checked, func(m result.Messages) uint64 { return m.Pending }),
		count("failed", true, sent, func(m result.Messages) uint64 { return m.Failed }),
		count("unconfirmed", false, sent, func(m result.Messages) uint64 { return m.Unconfirmed }),
		count("dropped", false, sent, func(m result.Messages) uint64 { return m.Dropped }),
		count("unsent", false, sent, func(m result.Messages) uint64 { return m.Unsent }),
	)
}
