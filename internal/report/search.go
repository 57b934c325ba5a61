package report

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/internal/layout"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A Search is a search for the capacity, with the folder that holds its runs.
type Search struct {
	Dir    string // as it is to be named
	Report *capacity.Report
	longer time.Duration // how long a probe may be in a search that decides more; 0: none may be longer
}

// NewSearch returns the search in a folder. A probe took measure where the plan does not say
// how long one may be.
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

// measuredText is what a probe measured, in short.
func measuredText(p *capacity.Probed) string {
	if p.P99() == nil {
		return ""
	}
	return fmt.Sprintf("%s p99 %s", p.Of, p.P99().Text(timeText))
}

// ProbeLine is a probe in one line.
func ProbeLine(p *capacity.Probed) string {
	line := fmt.Sprintf("%12s  %-18s%s", Rate(p.RatePerS), p.Judgement, measuredText(p))
	if p.Why != "" {
		line += "  " + p.Why
	}
	return strings.TrimRight(line, " ")
}

// Told says what the search came to when it ends: the curve, and the answer.
func (s *Search) Told(page *layout.Page) {
	if r := s.Report; len(r.Curve) > 0 {
		page.Labelled("curve", plain("latency at even parts of "+Rate(r.Answer.PassPerS)))
		t := layout.Listing("", "", "", "")
		t.Columns[0].Kind, t.Columns[0].Least, t.Columns[1].Least = layout.Number, 12, 16
		for i := range r.Curve {
			p := &r.Curve[i]
			t.Row(Rate(p.RatePerS), p.Judgement, measuredText(p), p.Why)
		}
		page.Table(t)
	}
	s.Answer(page)
}

// Answer says in some lines what the search came to, and what to do next.
func (s *Search) Answer(p *layout.Page) {
	r := s.Report
	row := func(label, format string, args ...any) { p.Labelled(label, plain(fmt.Sprintf(format, args...))) }
	for _, ended := range r.Over[:min(len(r.Over), mostProbes)] {
		row(fmt.Sprintf("with %d", ended.N), "%s", Came(&ended.Answered))
	}
	if len(r.Over) == 0 {
		row("capacity", "%s", Came(&r.Answer))
	}
	if l := r.Law; l != nil && r.Plan.Over != nil {
		row("law", "Universal Scalability Law over %s, 95 %% intervals:", r.Plan.Over.Of)
		row("", "one alone %s (%s to %s), contention %s, coherence %s",
			Rate(l.Lambda.At), Rate(l.Lambda.Lo), Rate(l.Lambda.Hi), spanned(l.Sigma), spanned(l.Kappa))
	}
	if t := r.Target; t != nil {
		row("target", "%s", neededText(t))
	}
	row("promise", "%s", strings.Join(r.Promise, ", "))
	if why := limit(r); why != "" {
		row("limit", "%s: %s", Rate(r.Answer.FailPerS), why)
	}
	row("probes", "%s, each with a result of its own in %s", probesOf(r), s.Dir)
	if command, why := s.next(); command != "" {
		next(p, command, why)
	}
}

// limit is why the higher end did not pass: what a probe said that the answer rests on.
func limit(r *capacity.Report) string {
	rests := map[capacity.Stop]capacity.Judgement{
		capacity.Found: capacity.Failed, capacity.Between: capacity.Failed, capacity.NonePassed: capacity.Failed,
		capacity.Generator: capacity.Limited, capacity.TooShort: capacity.Undecided,
	}[r.Answer.Stop]
	for _, exactly := range []bool{true, false} {
		for _, p := range r.Probes {
			if p.RatePerS == r.Answer.FailPerS && p.Why != "" && (!exactly || p.Judgement == rests.String()) {
				return p.Why
			}
		}
	}
	return ""
}

// probesOf counts the runs of a search: its probes, and those of the curve.
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

// spanned writes an estimate with its interval.
func spanned(s capacity.Span) string {
	return fmt.Sprintf("%.3g (%.2g to %.2g)", s.At, s.Lo, s.Hi)
}

// neededText is how many it takes to reach a rate.
func neededText(t *capacity.Needed) string {
	switch {
	case t.Why != "":
		return fmt.Sprintf("%s: not told: %s", Rate(t.PerS), t.Why)
	case t.Of == "systems":
		return fmt.Sprintf("%s takes %s such systems that share nothing", Rate(t.PerS), numbersOf(t.Least, t.Most))
	}
	return fmt.Sprintf("%s takes %d %s (95 %% interval %s)", Rate(t.PerS), t.Middle, t.Of, numbersOf(t.Least, t.Most))
}

// numbersOf writes a range of numbers.
func numbersOf(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// next is what the reader can do: first what decides a search that is not decided.
func (s *Search) next() (command, why string) {
	r := s.Report
	a := r.Answer
	stopped := func(of ...capacity.Stop) bool {
		return slices.Contains(of, a.Stop) || slices.ContainsFunc(r.Over, func(e capacity.Ended) bool { return slices.Contains(of, e.Stop) })
	}
	dir := Quoted(s.Dir)
	switch {
	case stopped(capacity.Unfinished, capacity.Unstarted):
		return "weir capacity --resume " + dir, "goes on with the search"
	case stopped(capacity.OutOfTries) && r.Plan.Probes < capacity.MostProbes:
		return fmt.Sprintf("weir capacity --resume %s --probes %d", dir, min(capacity.MostProbes, 2*r.Plan.Probes)), "goes on with the search"
	case stopped(capacity.TooShort, capacity.Between) && (len(r.Probes) > 0 && r.Probes[len(r.Probes)-1].Verdict == result.Invalid ||
		slices.ContainsFunc(r.Probes, func(p capacity.Probed) bool { return p.Judgement == capacity.Limited.String() })):
		return "weir doctor", "what on this host disturbs the probes"
	case stopped(capacity.TooShort, capacity.Between) && s.longer > 0:
		return fmt.Sprintf("weir capacity %s --longest %s", Quoted(filepath.Join(s.Dir, result.FileScenario)), s.longest()), "decides more rates"
	case stopped(capacity.Generator):
		return "weir doctor", "what on this host disturbs the generator"
	case a.PassPerS > 0:
		i := 0
		for j, p := range r.Probes {
			if p.RatePerS == a.PassPerS && p.Judgement == capacity.Passed.String() {
				i = j
			}
		}
		return "weir report " + Quoted(filepath.Join(s.Dir, r.Probes[i].Dir)), "the last run at " + Rate(a.PassPerS)
	case len(r.Probes) > 0:
		return "weir report " + Quoted(filepath.Join(s.Dir, r.Probes[len(r.Probes)-1].Dir)), "the lowest rate that was probed"
	}
	return "", ""
}

// name says in a title what was searched.
func (s *Search) name() string {
	return "Capacity under " + or(layout.Shortened(strings.Join(s.Report.Promise, ", "), 120), "no promise")
}

// drawn puts the latency against the load and all probes on a page. reasons says of each
// that did not pass why, which takes room.
func (s *Search) drawn(p *layout.Page, reasons bool) {
	r := s.Report
	all := slices.Concat(r.Probes, r.Curve)
	if len(all) > mostProbes {
		p.Say(fmt.Sprintf("The first %d of %d probes are shown.", mostProbes, len(all)))
		all = all[:mostProbes]
	}
	if chart := loaded(r, all); chart != nil && reasons {
		p.Chart(chart)
	}
	p.Gap()
	p.Chapter("each probe")
	heads := []string{"rate", "why", "judgement", "of", "p50", "p99", "run"}
	if reasons {
		heads = append(heads, "reason")
	}
	t := &layout.Table{Columns: layout.Columns(layout.Word, layout.Plain, heads...)}
	for _, i := range []int{0, 4, 5} {
		t.Columns[i].Kind = layout.Number
	}
	t.Columns[2].Judges = true
	for i, x := range all {
		why := string(x.Purpose)
		if i >= len(r.Probes) {
			why = "curve"
		}
		cells := []string{Rate(x.RatePerS), why, x.Judgement, or(x.Of, "-"), timeOr(x.P50()), timeOr(x.P99()), x.Dir, or(x.Why, "-")}
		t.Row(cells[:len(heads)]...)
		t.Rows[len(t.Rows)-1][2] = judged(x.Judgement).Of(x.Judgement)
	}
	p.Table(t)
}

// namedWindow finds the window that a probe's reason names.
var namedWindow = regexp.MustCompile(`a window of (\d{1,5}) s would`)

// longest is how long a probe may be in a search that decides more: no shorter than the
// window that a probe names.
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
