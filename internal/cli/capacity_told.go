package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// probeLine is a probe in one line.
func probeLine(p *capacity.Probed) string {
	line := fmt.Sprintf("%12s  %-18s", report.Rate(p.RatePerS), p.Judgement)
	if p.P99NS != nil {
		line += fmt.Sprintf("%s p99 %s", p.Of, report.Time(*p.P99NS))
	}
	if p.Why != "" {
		line += "  " + p.Why
	}
	return strings.TrimRight(line, " ")
}

// told is the answer in a few lines.
func (h *hunt) told() string {
	var b strings.Builder
	r := &h.report
	row := func(label, format string, args ...any) {
		_, _ = fmt.Fprintf(&b, "%-12s%s\n", label, fmt.Sprintf(format, args...)) // a Builder takes all
	}
	for i := range r.Curve {
		if i == 0 {
			row("curve", "latency at even parts of %s", report.Rate(r.Answer.PassPerS))
		}
		_, _ = fmt.Fprintln(&b, probeLine(&r.Curve[i]))
	}
	for _, ended := range r.Over {
		label := fmt.Sprintf("with %d", ended.N)
		row(label, "%s", report.Came(&ended.Answered))
	}
	if len(r.Over) == 0 {
		row("capacity", "%s", report.Came(&r.Answer))
	}
	if l := r.Law; l != nil {
		row("law", "Universal Scalability Law over %s, 95 %% intervals:", r.Plan.Over.Of)
		row("", "one alone %s (%s to %s), contention %s, coherence %s",
			report.Rate(l.Lambda.At), report.Rate(l.Lambda.Lo), report.Rate(l.Lambda.Hi), spanned(l.Sigma), spanned(l.Kappa))
	}
	if t := r.Target; t != nil {
		row("target", "%s", neededText(t))
	}
	row("promise", "%s", strings.Join(r.Promise, ", "))
	h.limit(row)
	row("probes", "%d, each with a result of its own in %s", len(r.Probes)+len(r.Curve), h.dir)
	h.next(row)
	return b.String()
}

// spanned writes an estimate with its interval.
func spanned(s capacity.Span) string {
	return fmt.Sprintf("%.3g (%.2g to %.2g)", s.At, s.Lo, s.Hi)
}

// neededText is how many it takes to reach a rate.
func neededText(t *capacity.Needed) string {
	switch {
	case t.Why != "":
		return fmt.Sprintf("%s: not told: %s", report.Rate(t.PerS), t.Why)
	case t.Of == "systems":
		return fmt.Sprintf("%s takes %s such systems that share nothing", report.Rate(t.PerS), between(t.Least, t.Most))
	}
	return fmt.Sprintf("%s takes %d %s (95 %% interval %s)", report.Rate(t.PerS), t.Middle, t.Of, between(t.Least, t.Most))
}

// between writes a range of numbers.
func between(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// limit says why the higher end did not pass.
func (h *hunt) limit(row func(label, format string, args ...any)) {
	fail := h.report.Answer.FailPerS
	if i := slices.IndexFunc(h.report.Probes, func(p capacity.Probed) bool { return p.RatePerS == fail && p.Why != "" }); i >= 0 {
		row("limit", "%s: %s", report.Rate(fail), h.report.Probes[i].Why)
	}
}

// next says what the reader can do: first what decides a search that is not decided.
func (h *hunt) next(row func(label, format string, args ...any)) {
	r := &h.report
	a := r.Answer
	stopped := func(of ...capacity.Stop) bool {
		return slices.Contains(of, a.Stop) || slices.ContainsFunc(r.Over, func(e capacity.Ended) bool { return slices.Contains(of, e.Stop) })
	}
	dir := report.Quoted(h.dir)
	switch {
	case stopped(capacity.Unfinished, capacity.Unstarted):
		row("next", "weir capacity --resume %s  # goes on with the search", dir)
	case stopped(capacity.OutOfTries) && r.Plan.Probes < mostProbes:
		row("next", "weir capacity --resume %s --probes %d  # goes on with the search", dir, min(mostProbes, 2*r.Plan.Probes))
	case stopped(capacity.TooShort, capacity.Between) && h.longer() > 0:
		row("next", "weir capacity %s --longest %s  # decides more rates", report.Quoted(filepath.Join(h.dir, result.FileScenario)), h.longer())
	case stopped(capacity.Generator):
		row("next", "weir doctor  # what on this host disturbs the generator")
	case a.PassPerS > 0:
		i := 0
		for j, p := range r.Probes {
			if p.RatePerS == a.PassPerS && p.Judgement == capacity.Passed.String() {
				i = j
			}
		}
		row("next", "weir report %s  # the last run at %s", report.Quoted(filepath.Join(h.dir, r.Probes[i].Dir)), report.Rate(a.PassPerS))
	case len(r.Probes) > 0:
		row("next", "weir report %s  # the lowest rate that was probed", report.Quoted(filepath.Join(h.dir, r.Probes[len(r.Probes)-1].Dir)))
	}
}

// longer is how long a probe may be in a search that decides more, 0 where none may be longer.
func (h *hunt) longer() time.Duration {
	longest := time.Duration(h.report.Plan.LongestS * float64(time.Second))
	if longest == 0 {
		s, err := h.scenario()
		if err != nil || s.Measure == 0 {
			return 0
		}
		longest = s.Measure
	}
	if longest = min(4*longest, scenario.MaxDuration/2); longest.Seconds() <= h.report.Plan.LongestS {
		return 0
	}
	return longest
}
