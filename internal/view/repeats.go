package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// shownRepeats is how many repeats are listed individually beside the spread.
const shownRepeats = 10

// A repeatedSeries is the repeated runs of one scenario, without those INVALID or interrupted.
type repeatedSeries struct {
	name        string
	runs        []Entry
	invalid     int
	interrupted int // and not INVALID
}

// has reports whether a run belongs to the series, INVALID or not.
func (s *repeatedSeries) has(e Entry) bool { return e.Result.Run.Scenario() == s.name }

// repeatedIn returns the scenarios with at least two usable runs.
func repeatedIn(entries []Entry) (out []repeatedSeries) {
	var names []string
	groups := map[string][]Entry{}
	repeated := map[string]bool{}
	for _, e := range entries {
		repeated[e.Result.Run.Series] = true
	}
	for _, e := range entries {
		name := e.Result.Run.Scenario() // the first may not have known of the repeats
		if e.Result.Run.Series == "" && !repeated[name] {
			continue
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		groups[name] = append(groups[name], e)
	}
	for _, name := range names {
		all := groups[name]
		used := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Result.Verdict.Status == result.Invalid })
		invalid := len(all) - len(used)
		used = slices.DeleteFunc(used, func(e Entry) bool { return e.Result.Run.Interrupted })
		if len(used) < 2 {
			continue
		}
		slices.SortStableFunc(used, func(a, b Entry) int { return a.Result.Run.Repeat - b.Result.Run.Repeat })
		out = append(out, repeatedSeries{name, used, invalid, len(all) - len(used) - invalid})
	}
	return out
}

// repeats shows, for every repeated scenario, each run's figures, their spread, and the figures of all
// samples together. The unit is the run: the spread between runs predicts the next one better than any
// interval within a run.
func repeats(p *layout.Page, entries []Entry) {
	for _, s := range repeatedIn(entries) {
		p.Gap()
		title := fmt.Sprintf("%s, %s", s.name, runs(len(s.runs)))
		if s.invalid > 0 {
			title += fmt.Sprintf(" (%d INVALID left out)", s.invalid)
		}
		if s.interrupted > 0 {
			title += fmt.Sprintf(" (%d interrupted left out)", s.interrupted)
		}
		p.Line(layout.Strong.Of(title))
		p.Table(repeatsTable(s.runs))
	}
}

// A repeated is one figure in each of several runs.
type repeated struct {
	name     string
	values   []result.Value
	write    func(float64) string
	together string // of all samples together; "" if unknown
}

func repeatsTable(runs []Entry) *layout.Table {
	x := &layout.Table{Columns: columns("", "median", "lowest", "highest", "merged")}
	own := min(len(runs), shownRepeats)
	for _, e := range runs[:own] {
		x.Columns = append(x.Columns, layout.Column{Group: "each run", Head: fmt.Sprintf("r%d", max(1, e.Result.Run.Repeat)), Tone: layout.Faint})
	}
	for _, f := range repeatedFigures(runs) {
		median, lowest, highest := result.Spread(f.values)
		row := []layout.Span{plain(f.name), plain(median.Text(f.write)), plain(lowest.Text(f.write)), plain(highest.Text(f.write)), plain(cmp.Or(f.together, "-"))}
		for _, v := range f.values[:own] {
			row = append(row, layout.Faint.Of(v.Text(f.write)))
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

// repeatedFigures returns the figures that every run has.
func repeatedFigures(runs []Entry) []repeated {
	var out []repeated
	var results []*result.Result
	for _, e := range runs {
		results = append(results, e.Result)
	}
	rate := func(name string, has func(*result.Result) bool, of func(result.Throughput) float64) {
		f := repeated{name: name, write: quantity.Rate}
		for _, e := range runs {
			if !has(e.Result) {
				return
			}
			f.values = append(f.values, result.Exactly(of(e.Result.Throughput)))
		}
		out = append(out, f)
	}
	rate("confirmed", sent, func(t result.Throughput) float64 { return t.ConfirmedPerS })
	rate(arrived(results...), rated, func(t result.Throughput) float64 { v, _ := t.Received(); return v })
	for _, c := range distributions(runs[0].Result) {
		if !c.interval {
			continue
		}
		merged := together(runs, c)
		for _, percentile := range []float64{50, 99, 99.9, 100} {
			f := repeated{name: c.group + " " + percent(percentile), write: timeText}
			for _, e := range runs {
				if row := percentileOf(e.Result, c, percentile); row != nil && row.Supported {
					f.values = append(f.values, row.Value())
				}
			}
			if len(f.values) < len(runs) {
				continue
			}
			if merged != nil {
				f.together = distribution{d: merged}.figure(runs[0].Result, percentile).Text
			}
			out = append(out, f)
		}
	}
	return out
}

// percentileOf finds in r a percentile of distribution c of another result; nil if it has none.
func percentileOf(r *result.Result, c distribution, p float64) *result.Percentile {
	for _, d := range distributions(r) {
		if d.group == c.group && d.name == c.name {
			return d.d.Percentile(p)
		}
	}
	return nil
}

// together merges a distribution over all runs. Every run's samples must be known.
func together(runs []Entry, c distribution) *result.Dist {
	tag := c.tag()
	var observed, censored measure.Counts
	for _, e := range runs {
		if e.Totals[tag] == nil {
			return nil
		}
		observed.Merge(e.Totals[tag])
		if late := e.Totals[tag+".censored"]; late != nil {
			censored.Merge(late)
		}
	}
	return judge.Distribution(&observed, &censored)
}
