package view

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

const mostDoubts = 12

// doubts says why each run is not valid, and how to show its report.
func doubts(p *layout.Page, entries []Entry) {
	names := labels(entries)
	n, wide := 0, 0
	for _, e := range entries {
		wide = max(wide, len(e.Result.Verdict.Status))
	}
	for i, e := range entries {
		status := e.Result.Verdict.Status
		if status != result.Suspect && status != result.Invalid {
			continue
		}
		if n++; n > mostDoubts {
			continue
		}
		why := ": its report says why"
		if checks := judge.Reasons(&e.Result.Verdict); checks != "" {
			why = " for " + checks
		}
		b := layout.Block{
			Form: layout.Item, Mark: colour(status).Of(strings.ToUpper(string(status))), Wide: wide,
			Spans: []layout.Span{plain(names[i] + why)},
		}
		if e.Dir != "" {
			b.Under = "weir report " + Quoted(e.Dir)
		}
		p.Add(b)
	}
	if n > mostDoubts {
		p.Item(plain(fmt.Sprintf("and %d more", n-mostDoubts)))
	}
	if n > 0 {
		p.Gap()
	}
}

// summary writes the results of several runs in a few lines: their main figure if they repeat one scenario,
// the losses in all of them, and a next command. For runs of a search it writes the search's result.
func summary(p *layout.Page, entries []Entry, o Options) {
	if len(o.Searches) == 1 {
		o.Searches[0].Answer(p)
		return
	}
	for _, s := range o.Searches {
		p.Labelled("capacity", plain(s.Dir+": "+Came(s.Report, answer(s.Report))))
	}
	if label, text := repeatedHeadline(entries); text != "" && !o.spoken {
		p.Labelled(label, plain(text))
	}
	sum := new(result.Result)
	for _, e := range entries {
		addMessages(&sum.Messages, &e.Result.Messages)
		addMessages(&sum.MessagesAll, &e.Result.MessagesAll)
	}
	if sum.MessagesAll.Sent > 0 {
		p.Labelled("loss", losses(sum))
	}
	if dir := above(entries); dir != "" && o.Rest > 0 {
		next(p, "weir run --resume "+Quoted(dir), "does what is left: "+runs(o.Rest))
		return
	}
	if dir, n := unfinished(entries, o.Left); n > 0 {
		next(p, fmt.Sprintf("weir run --append %s --repeat %d", Quoted(dir), n), "finishes the series")
		return
	}
	if dir, key := above(entries), apartBy(entries); dir != "" && key != "" {
		next(p, "weir compare "+Quoted(dir)+" --by "+key, "says how they differ")
		return
	}
	for _, want := range []result.Status{result.Invalid, result.Suspect} {
		for _, e := range entries {
			if e.Result.Verdict.Status == want && e.Dir != "" {
				next(p, "weir report "+Quoted(e.Dir), "says why")
				return
			}
		}
	}
	if dir := above(entries); dir != "" {
		next(p, "weir report "+Quoted(dir)+" -o "+Quoted(dir+".html"), "with charts")
	}
}

// unfinished returns the folder of an interrupted series of one scenario, and how many runs it lacks: the
// interrupted ones, and the left ones that did not begin. n is 0 if it was not interrupted, or if later
// runs completed it.
func unfinished(entries []Entry, left int) (dir string, n int) {
	whole := 0 // index of the last complete run
	for _, e := range entries {
		if !e.Result.Run.Interrupted {
			whole = max(whole, e.Result.Run.Repeat)
		}
	}
	for _, e := range entries {
		if e.Result.Run.Scenario() != entries[0].Result.Run.Scenario() || e.Result.Run.Series == "" {
			return "", 0
		}
		if e.Result.Run.Interrupted && e.Result.Run.Repeat > whole {
			n++
		}
	}
	if dir = above(entries); n == 0 || dir == "" {
		return "", 0
	}
	return dir, n + left
}

// apartBy is the key that distinguishes the runs of several scenarios in a comparison; "" if none.
func apartBy(entries []Entry) string {
	var runs []compare.Run
	for _, e := range entries {
		runs = append(runs, compare.Run{Dir: e.Dir, Result: e.Result, Scenario: e.Scenario})
	}
	return compare.Apart(runs)
}

// above is the parent folder of all entries; "" if there is none.
func above(entries []Entry) string {
	dir := ""
	for i, e := range entries {
		parent := filepath.Dir(e.Dir)
		if e.Dir == "" || parent == "." || i > 0 && parent != dir {
			return ""
		}
		dir = parent
	}
	return dir
}

func addMessages(sum, m *result.Messages) {
	to, of := reflect.ValueOf(sum).Elem(), reflect.ValueOf(m).Elem()
	for i := range to.NumField() {
		to.Field(i).SetUint(to.Field(i).Uint() + of.Field(i).Uint())
	}
}

// repeatedHeadline is the main figure of one scenario's runs: the median of their 99th percentiles, or of
// their rates in a closed loop, with the least and the largest.
func repeatedHeadline(entries []Entry) (label, text string) {
	used := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Result.Verdict.Status == result.Invalid || e.Result.Run.Interrupted })
	if len(used) < 2 || slices.ContainsFunc(used, func(e Entry) bool {
		return e.Result.Run.Series == "" || e.Result.Run.Series != used[0].Result.Run.Series
	}) {
		return "", ""
	}
	wanted := []string{"rtt 99 %", "e2e 99 %", "send 99 %"}
	if used[0].Result.Run.Loop == result.LoopClosed {
		wanted = []string{"confirmed"}
	}
	figures := repeatedFigures(used)
	for _, name := range wanted {
		i := slices.IndexFunc(figures, func(f repeated) bool { return f.name == name })
		if i < 0 {
			continue
		}
		f := figures[i]
		label, what, _ := strings.Cut(f.name, " ")
		if what == "" {
			label, what = "rate", f.name
		} else {
			what = "p" + strings.TrimSuffix(what, " %")
		}
		median, lowest, highest := result.Spread(f.values)
		return label, fmt.Sprintf("%s %s, the median of %d runs (%s to %s)", what, median.Text(f.write), len(used), lowest.Text(f.write), highest.Text(f.write))
	}
	return "", ""
}
