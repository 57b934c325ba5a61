package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/internal/layout"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/scenario"
)

// measuredText is what a probe measured, in short.
func measuredText(p *capacity.Probed) string {
	if p.P99NS == nil {
		return ""
	}
	return fmt.Sprintf("%s p99 %s", p.Of, report.Time(*p.P99NS))
}

// probeLine is a probe in one line.
func probeLine(p *capacity.Probed) string {
	line := fmt.Sprintf("%12s  %-18s%s", report.Rate(p.RatePerS), p.Judgement, measuredText(p))
	if p.Why != "" {
		line += "  " + p.Why
	}
	return strings.TrimRight(line, " ")
}

// told is the answer in a few lines.
func (h *hunt) told() string {
	r, page := &h.report, new(layout.Page)
	if len(r.Curve) > 0 {
		page.Labelled("curve", layout.Plain.Of("latency at even parts of "+report.Rate(r.Answer.PassPerS)))
		t := layout.Listing("", "", "", "")
		t.Columns[0].Kind, t.Columns[0].Least, t.Columns[1].Least = layout.Number, 12, 16
		for i := range r.Curve {
			p := &r.Curve[i]
			t.Row(report.Rate(p.RatePerS), p.Judgement, measuredText(p), p.Why)
		}
		page.Table(t)
	}
	measure := time.Duration(0)
	if s, err := h.scenario(); err == nil {
		measure = s.Measure
	}
	(&report.Search{Dir: h.dir, Report: r, Longer: longer(r.Plan, measure)}).Answer(page)
	text := layout.Text{Width: layout.Usual}
	if cols := h.width(h.json); cols > 0 {
		text = layout.Terminal(cols, false)
	}
	return text.Page(page)
}

// longer is how long a probe may be in a search that decides more, 0 where none may be longer.
// A probe takes measure where the plan does not say how long one may be.
func longer(plan capacity.Planned, measure time.Duration) time.Duration {
	if !(plan.LongestS >= 0 && plan.LongestS <= scenario.MaxDuration.Seconds()) {
		return 0
	}
	longest := time.Duration(plan.LongestS * float64(time.Second))
	if longest == 0 {
		longest = measure
	}
	if longest = min(4*longest, scenario.MaxDuration/2); longest.Seconds() <= plan.LongestS {
		return 0
	}
	return longest
}
