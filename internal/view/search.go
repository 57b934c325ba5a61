package view

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// A Search is a search for the capacity, with the folder that holds its runs.
type Search struct {
	Dir    string // as it is to be shown
	Report *capacity.Report
	Link   Linking       // of HTML and Drawn: to the pages of the probes
	longer time.Duration // length limit of probes in a search that decides more; 0: no longer ones
}

// NewSearch returns the search in a folder. measure is the length of a probe if the plan does not limit it.
func NewSearch(dir string, r *capacity.Report, measure time.Duration) *Search {
	s := &Search{Dir: dir, Report: r}
	if !(r.Plan.LongestS >= 0 && r.Plan.LongestS <= scenario.MaxDuration.Seconds()) {
		return s
	}
	longest := time.Duration(r.Plan.LongestS * float64(time.Second))
	if longest == 0 {
		longest = measure
	}
	if longest = min(4*longest, scenario.MaxDuration/2); longest.Seconds() > r.Plan.LongestS {
		s.longer = longest
	}
	return s
}

// measuredText summarizes what a probe measured for the search's objectives.
func measuredText(r *capacity.Report, p *capacity.Probed) string {
	percents := promisedPercentiles(r, p.Of)
	if f := p.Figure(percents[len(percents)-1]); f != nil {
		return p.Of + " " + headOf(f.P) + " " + figureOr(f, "")
	}
	return ""
}

// ProbeLine describes a probe in one line.
func ProbeLine(r *capacity.Report, p *capacity.Probed) string {
	line := fmt.Sprintf("%12s  %-18s%s", quantity.Rate(p.RatePerS), p.Judgement, measuredText(r, p))
	if p.Why != "" {
		line += "  " + p.Why
	}
	return strings.TrimRight(line, " ")
}

// Write writes the result of a search: the curve, and the answer.
func (s *Search) Write(page *layout.Page) {
	s.curve(page, len(s.Report.Curve))
	s.Answer(page)
}

// Screen is Told in short, with the answer first.
func (s *Search) Screen() *Screen {
	x := new(Screen)
	x.Add(0, func(p *layout.Page) {
		s.found(p, mostAnswers)
		if n := len(s.Report.Over) - mostAnswers; n > 0 {
			p.Labelled("", plain(fmt.Sprintf("and %s", quantity.Counted(n, "more value", "more values"))))
		}
	})
	x.Add(5, func(p *layout.Page) { s.curve(p, mostAnswers) })
	x.Add(0, s.rests)
	x.Add(0, func(p *layout.Page) { allFigures(p, s.Dir) })
	return x
}

// mostAnswers is how many rows of a search a screen shows.
const mostAnswers = 4

// curve shows the runs at fractions of the capacity, at most the first few.
func (s *Search) curve(page *layout.Page, most int) {
	r := s.Report
	if len(r.Curve) == 0 {
		return
	}
	page.Labelled("curve", plain("latency at even parts of "+quantity.Rate(r.Answer.PassPerS)))
	t := layout.Listing("", "", "", "")
	t.Columns[0].Kind, t.Columns[0].Least, t.Columns[1].Least = layout.Number, 12, 16
	for i := range r.Curve[:min(len(r.Curve), most)] {
		p := &r.Curve[i]
		t.Row(quantity.Rate(p.RatePerS), p.Judgement, measuredText(r, p), p.Why)
	}
	page.Table(t)
}

// Answer writes the result of the search and what to do next.
func (s *Search) Answer(p *layout.Page) {
	s.found(p, mostProbes)
	s.rests(p)
}

// found writes the result of the search, or the first results of a search over many values.
func (s *Search) found(p *layout.Page, most int) {
	r := s.Report
	row := func(label, format string, args ...any) { p.Labelled(label, plain(fmt.Sprintf(format, args...))) }
	for _, ended := range r.Over[:min(len(r.Over), most)] {
		row(fmt.Sprintf("with %d", ended.N), "%s", Came(r, ended))
	}
	if len(r.Over) == 0 {
		row("capacity", "%s", Came(r, answer(r)))
	}
	if l := r.Law; l != nil && r.Plan.Over != nil {
		row("law", "Universal Scalability Law over %s, 95 %% intervals:", r.Plan.Over.Of)
		row("", "one alone %s (%s to %s), contention %s, coherence %s",
			quantity.Rate(l.Lambda.At), quantity.Rate(l.Lambda.Lo), quantity.Rate(l.Lambda.Hi), spanned(l.Sigma), spanned(l.Kappa))
	}
	if t := r.Target; t != nil {
		row("target", "%s", neededText(t))
	}
}

// rests writes what the answer rests on, and what to do next.
func (s *Search) rests(p *layout.Page) {
	r := s.Report
	row := func(label, format string, args ...any) { p.Labelled(label, plain(fmt.Sprintf(format, args...))) }
	row("objectives", "%s", strings.Join(r.Promise, ", "))
	if p := limit(r); p != nil {
		row("limit", "%s: %s", quantity.Rate(p.RatePerS), p.Why)
	}
	row("probes", "%s, each with a result of its own in %s", probesOf(r), s.Dir)
	if command, why := s.next(); command != "" {
		next(p, command, why)
	}
}

// limit is the probe whose reason decides the answer: why the higher end failed, or the lower one was not
// confirmed. It is nil if there is none.
func limit(r *capacity.Report) *capacity.Probed {
	if last := len(r.Probes) - 1; r.Answer.Stop == capacity.Doubtful && last >= 0 {
		return &r.Probes[last]
	}
	rests := r.Answer.Fail().By
	for _, exactly := range []bool{true, false} {
		for i := range r.Probes {
			p := &r.Probes[i]
			if p.RatePerS == r.Answer.FailPerS && p.Why != "" && (!exactly || p.Judgement == rests.String()) {
				return p
			}
		}
	}
	return nil
}

func probesOf(r *capacity.Report) string {
	text := fmt.Sprint(len(r.Probes))
	switch n := len(r.Curve); n {
	case 0:
	case 1:
		text += ", and 1 run of the curve"
	default:
		text += fmt.Sprintf(", and %d runs of the curve", n)
	}
	return text
}

func spanned(s capacity.Span) string {
	return fmt.Sprintf("%.3g (%.2g to %.2g)", s.At, s.Lo, s.Hi)
}

func neededText(t *capacity.Needed) string {
	switch {
	case t.Why != "":
		return fmt.Sprintf("%s: not told: %s", quantity.Rate(t.PerS), t.Why)
	case t.Of == "systems" && t.Least == 0:
		return fmt.Sprintf("%s takes at most %d such systems that share nothing; the search found no upper end of one", quantity.Rate(t.PerS), t.Most)
	case t.Of == "systems":
		return fmt.Sprintf("%s takes %s such systems that share nothing", quantity.Rate(t.PerS), numbersOf(t.Least, t.Most))
	}
	return fmt.Sprintf("%s takes %d %s (95 %% interval %s)", quantity.Rate(t.PerS), t.Middle, t.Of, numbersOf(t.Least, t.Most))
}

func numbersOf(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// next is the next step: first what decides an undecided search.
func (s *Search) next() (command, why string) {
	r := s.Report
	a := r.Answer
	stopped := func(of ...capacity.Stop) bool {
		return slices.Contains(of, a.Stop) || slices.ContainsFunc(r.Over, func(e capacity.Ended) bool { return slices.Contains(of, e.Stop) })
	}
	dir := Quoted(s.Dir)
	switch {
	case stopped(capacity.Unfinished, capacity.Unstarted):
		return "weir capacity --resume " + dir, "continues the search"
	case stopped(capacity.OutOfTries) && r.Plan.Probes < capacity.MostProbes:
		return fmt.Sprintf("weir capacity --resume %s --probes %d", dir, min(capacity.MostProbes, 2*r.Plan.Probes)), "continues the search"
	case stopped(capacity.TooShort, capacity.Between, capacity.Doubtful) && (len(r.Probes) > 0 && r.Probes[len(r.Probes)-1].Verdict == result.Invalid ||
		slices.ContainsFunc(r.Probes, func(p capacity.Probed) bool { return p.Judgement == capacity.Limited.String() })):
		return "weir doctor", "what on this host disturbs the probes"
	case stopped(capacity.TooShort, capacity.Between) && s.longer > 0:
		return fmt.Sprintf("weir capacity %s --longest %s", Quoted(filepath.Join(s.Dir, result.FileScenario)), quantity.Typed(s.longest())), "decides more rates"
	case stopped(capacity.Generator):
		return "weir doctor", "what on this host disturbs the generator"
	case a.PassPerS > 0:
		i := 0
		for j, p := range r.Probes {
			if p.RatePerS == a.PassPerS && p.Judgement == capacity.Passed.String() {
				i = j
			}
		}
		return "weir report " + Quoted(filepath.Join(s.Dir, r.Probes[i].Dir)), "the last run at " + quantity.Rate(a.PassPerS)
	case len(r.Probes) > 0:
		return "weir report " + Quoted(filepath.Join(s.Dir, r.Probes[len(r.Probes)-1].Dir)), "the lowest rate that was probed"
	}
	return "", ""
}

func (s *Search) name() string {
	return "Capacity under " + cmp.Or(layout.Shortened(strings.Join(s.Report.Promise, ", "), 120), "no objective")
}

// drawn draws the latency against the load, and lists all probes. reasons adds why probes failed, which
// takes room.
func (s *Search) drawn(p *layout.Page, reasons bool, link Linking) {
	r := s.Report
	all := slices.Concat(r.Probes, r.Curve)
	if len(all) > mostProbes {
		p.Say(fmt.Sprintf("The first %d of %d probes are shown.", mostProbes, len(all)))
		all = all[:mostProbes]
	}
	if chart := loaded(r, all); chart != nil && reasons {
		p.Gap()
		p.Chapter("the operating range")
		p.Chart(chart)
	}
	p.Gap()
	p.Chapter("each probe")
	percents := []float64{50, 99}
	for i := range all {
		for j := range all[i].Figures {
			percents = append(percents, all[i].Figures[j].P)
		}
	}
	slices.Sort(percents)
	percents = slices.Compact(percents)
	t := &layout.Table{Columns: layout.Columns(layout.Word, layout.Plain, "rate", "why", "judgement"), Cards: true}
	t.Columns[0].Kind, t.Columns[2].Judges = layout.Number, true
	of := map[string]bool{}
	for i := range all {
		of[all[i].Of] = true
	}
	group := ""
	if delete(of, ""); len(of) == 1 {
		group = strings.Join(slices.Collect(maps.Keys(of)), "")
	} else {
		t.Columns = append(t.Columns, layout.Column{Head: "of", Kind: layout.Word})
	}
	for _, p := range percents {
		t.Columns = append(t.Columns, layout.Column{Group: group, Head: headOf(p)})
	}
	t.Columns = append(t.Columns, layout.Column{Head: "run", Kind: layout.Word})
	if reasons {
		t.Columns = append(t.Columns, layout.Column{Head: "reason", Kind: layout.Prose})
	}
	for i := range all {
		x := &all[i]
		why := string(x.Purpose)
		if i >= len(r.Probes) {
			why = "curve"
		}
		row := []layout.Span{plain(quantity.Rate(x.RatePerS)), plain(why), judged(x.Judgement).Of(x.Judgement)}
		if group == "" {
			row = append(row, plain(cmp.Or(x.Of, "-")))
		}
		for _, p := range percents {
			row = append(row, plain(figureOr(x.Figure(p), "-")))
		}
		row = append(row, link.span(x.Dir, filepath.Join(s.Dir, x.Dir)), plain(cmp.Or(x.Why, "-")))
		t.Rows = append(t.Rows, row[:len(t.Columns)])
	}
	p.Table(t)
}

// namedWindow finds the window that a probe's reason suggests.
var namedWindow = regexp.MustCompile(`a window of (\d{1,5}) s would`)

// longest is how long a probe may be in a search that decides more: no shorter than the window that a
// probe's reason suggests.
func (s *Search) longest() time.Duration {
	longest := s.longer
	for _, p := range s.Report.Probes {
		if m := namedWindow.FindStringSubmatch(p.Why); m != nil {
			if d, err := time.ParseDuration(m[1] + "s"); err == nil && p.Judgement == capacity.Undecided.String() {
				longest = max(longest, d)
			}
		}
	}
	return longest
}
