package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A distribution is one of a result's distributions, with its names.
type distribution struct {
	group, name string
	d           *result.Dist
	onTime      *result.Dist // a response without the generator's lateness; nil in results of older versions
	interval    bool         // shown with its confidence interval
	late        bool         // includes the generator's lateness
}

// distributions returns a result's distributions, in page order.
func distributions(r *result.Result) []distribution {
	l := r.Latency
	all := []distribution{
		{"send", "response", l.Send.Response, l.Send.OnTime, true, true},
		{"send", "service", l.Send.Service, nil, l.Send.Response == nil, false},
		{"rtt", "response", l.RTT.Response, l.RTT.OnTime, true, true},
		{"rtt", "service", l.RTT.Service, nil, l.RTT.Response == nil, false},
		{"e2e", "response", l.E2E.Response, l.E2E.OnTime, true, true},
		{"e2e", "service", l.E2E.Service, nil, l.E2E.Response == nil, false},
		{"", "settle", l.Settle, nil, false, false},
		{"", "failed", l.Send.Failed, nil, false, true},
		{"", "hop", l.Send.Hop, nil, false, false},
		{"", "blocked", l.Send.Blocked, nil, false, false},
		{"", "lateness", l.Send.Lateness, nil, false, false},
	}
	return slices.DeleteFunc(all, func(c distribution) bool { return c.d == nil })
}

// tag is the tag of its measured samples in intervals.hlog.
func (c distribution) tag() string {
	group := c.group
	if group == "" {
		group = "send"
	}
	return group + "." + c.name + "." + measure.Measure.String()
}

// figure formats percentile p of a distribution: ">=" marks a lower bound, "~" too few samples, "?" a
// figure below the clock uncertainty of two hosts or one that needs a lost agent, "!" one that something
// other than the system moved.
func (c distribution) figure(r *result.Result, p float64) layout.Span {
	row := c.d.Percentile(p)
	if row == nil {
		return plain("-")
	}
	x := plain(row.Value().Text(timeText))
	switch {
	case row.UnsupportedBy != "":
		x = layout.Faint.Of("?" + x.Text)
	case !row.Supported:
		x = layout.Faint.Of(fewSamples + x.Text)
	case p < 100 && c.cannotBeQuoted(r, p):
		x = layout.Doubtful.Of("!" + x.Text)
	}
	return x
}

// cannotBeQuoted reports whether something other than the system moved percentile p. Of a stage only the
// lateness is known.
func (c distribution) cannotBeQuoted(r *result.Result, p float64) bool {
	if !c.interval {
		return c.late && judge.Late(c.d, c.onTime, r.Latency.Send.Lateness, p)
	}
	f := judge.FigureOf(r, c.verdictName(p))
	return f != nil && !f.Quotable
}

// verdictName is the name of percentile p in the verdict.
func (c distribution) verdictName(p float64) string {
	name := c.group
	if c.name == "service" || c.name == "system" {
		name += "." + c.name
	}
	return name + "." + finding.Percentile(p)
}

// intervalHead is the heading of a column of intervals.
const intervalHead = "95 % interval"

// unknownInterval replaces an interval if the run is too short to know it.
const unknownInterval = "not known"

// between is the interval of percentile p; empty if meaningless.
func (c distribution) between(p float64) layout.Span {
	row := c.d.Percentile(p)
	if row == nil || !row.Supported || row.P == 100 {
		return layout.Span{}
	}
	return layout.Faint.Of(cmp.Or(quantity.TimeRange(row.LoNS, row.HiNS), unknownInterval))
}

// sessions is the share of sessions of n messages that meet a latency above a percentile; empty for the
// maximum, above which nothing was observed.
func sessions(p float64, n uint64) layout.Span {
	if p >= 100 {
		return layout.Span{}
	}
	share := 100 * stats.SessionShare(p, n)
	switch {
	case share > 99.95:
		return plain("over 99.9 %")
	case share < 0.1:
		return plain(strconv.FormatFloat(share, 'g', 2, 64) + " %")
	}
	return plain(strconv.FormatFloat(share, 'f', 1, 64) + " %")
}

const mostPercentiles = 200

func (t *single) latency() {
	all := distributions(t.r)
	t.Gap()
	if len(all) == 0 {
		if t.r.Consuming() {
			t.Say("no latencies: this run did not send these messages")
			return
		}
		t.Say("no message was confirmed or delivered in the measured window")
		return
	}
	ps := t.rows(all)
	x := t.percentiles(all, ps)
	mean, samples := []layout.Span{plain("mean")}, []layout.Span{plain("samples")}
	for _, c := range all {
		mean = append(mean, plain(meanOf(c.d)))
		samples = append(samples, plain(quantity.Count(c.d.Count)))
		if c.interval {
			mean, samples = append(mean, layout.Span{}), append(samples, censored(c.d))
		}
	}
	if t.o.Session > 0 {
		mean, samples = append(mean, layout.Span{}), append(samples, layout.Span{})
	}
	x.Rows = append(x.Rows, mean, samples)
	t.Table(x)
	t.table = x
	doubtful(t.Page, x, t.r)
	withheld(t.Page, x, t.r)
	t.unbounded(all)
	if t.o.Session > 0 {
		t.Note(fmt.Sprintf("share of sessions of %s messages that meet at least one worse, if slow messages do not come together;", quantity.Count(t.o.Session)),
			fmt.Sprintf("half of such sessions meet worse than %s %%", strconv.FormatFloat(stats.SessionPercentile(0.5, t.o.Session), 'f', 4, 64)))
	}
	t.unsupported(x, all, ps)
}

// percentiles returns a table of percentiles of distributions.
func (t *single) percentiles(all []distribution, ps []float64) *layout.Table {
	x := &layout.Table{Columns: []layout.Column{{Key: true}}}
	for _, c := range all {
		x.Columns = append(x.Columns, layout.Column{Group: c.headed(), Head: c.name, Tone: layout.Strong})
		if c.interval {
			x.Columns = append(x.Columns, layout.Column{Group: c.headed(), Head: intervalHead, Tone: layout.Faint, Kind: layout.Word, Beside: true})
		}
	}
	if t.o.Session > 0 {
		x.Columns = append(x.Columns, layout.Column{Group: "sessions of " + quantity.Count(t.o.Session), Head: "meet worse", Tone: layout.Strong})
	}
	for _, p := range ps {
		row := []layout.Span{plain(percent(p))}
		for _, c := range all {
			if c.d.Percentile(p) == nil {
				row = append(row, layout.Span{})
			} else {
				row = append(row, c.figure(t.r, p))
			}
			if c.interval {
				row = append(row, c.between(p))
			}
		}
		if t.o.Session > 0 {
			row = append(row, sessions(p, t.o.Session))
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

// rows returns the percentiles of the table: those requested, those of objectives, those that some
// distribution has enough samples for, and always the largest.
func (t *single) rows(all []distribution) []float64 {
	wanted := slices.Clone(t.o.Percentiles)
	for i := range t.r.Verdict.SLO {
		if o, err := judge.ParseObjective(t.r.Verdict.SLO[i].Expr); err == nil && len(t.o.Percentiles) == 0 {
			if p, ok := o.Percentile(); ok {
				wanted = append(wanted, p)
			}
		}
	}
	var ps []float64
	for _, c := range all {
		for _, p := range c.d.Percentiles {
			enough := len(t.o.Percentiles) == 0 && (p.Supported || p.UnsupportedBy != "")
			if (enough || p.P >= 100 || slices.Contains(wanted, p.P)) && !slices.Contains(ps, p.P) && len(ps) < mostPercentiles {
				ps = append(ps, p.P)
			}
		}
	}
	slices.Sort(ps)
	return ps
}

func percent(p float64) string {
	if p == 100 {
		return "max"
	}
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}

func meanOf(d *result.Dist) string {
	if d.MeanNS == nil {
		return "-"
	}
	return quantity.Time(int64(math.Round(*d.MeanNS)))
}

func censored(d *result.Dist) layout.Span {
	if d.Censored == 0 {
		return layout.Span{}
	}
	return plain("+" + quantity.Count(d.Censored) + " censored")
}

// doubtful explains the figures marked "!", if any: each cause with the figure that it moved most, if they
// are of one run.
func doubtful(p *layout.Page, x *layout.Table, rs ...*result.Result) {
	switch {
	case !marked(x, "!"):
	case len(rs) != 1:
		p.Note("! something other than the system moved it by over a tenth")
	default:
		for _, says := range whyNot(rs[0], nil) {
			p.Note("! " + says)
		}
	}
}

// whyNot returns why figures cannot be quoted: for each cause the figure that it moved most, those first
// that were moved most. shown are the names of the figures in the table above; nil: all.
func whyNot(r *result.Result, shown []string) (lines []string) {
	figures := markedFigures(r, shown)
	slices.SortStableFunc(figures, func(a, b result.Figure) int {
		if x, y := judge.OfSystem(a.Name), judge.OfSystem(b.Name); x != y { // a screen shows whole latencies
			return map[bool]int{false: -1, true: 1}[x]
		}
		return cmp.Compare(b.Part, a.Part)
	})
	var causes []string
	for _, f := range figures {
		if !slices.Contains(causes, f.By) {
			causes = append(causes, f.By)
			lines = append(lines, strings.ReplaceAll(f.Name, ".p", " p")+": "+f.Why)
		}
	}
	return lines
}

// markedFigures returns the figures that cannot be quoted, of those shown; nil: of all.
func markedFigures(r *result.Result, shown []string) []result.Figure {
	figures := slices.Clone(r.Verdict.Figures)
	if figures == nil {
		figures = judge.Figures(r)
	}
	return slices.DeleteFunc(figures, func(f result.Figure) bool {
		return f.Quotable || shown != nil && !slices.Contains(shown, f.Name)
	})
}

// shortInterval says in a line why intervals of the table have no end, or are not known.
func (t *single) shortInterval(all []distribution) {
	for _, c := range all {
		for _, p := range c.d.Percentiles {
			between := c.between(p.P).Text
			if t.table == nil || p.P >= 100 || !p.Supported || !slices.ContainsFunc(t.table.Rows, func(row []layout.Span) bool { return row[0].Text == percent(p.P) }) {
				continue
			}
			switch by := missingBy(&p); {
			case p.AtLeast: // its own sign says why
			case between == unknownInterval:
				t.Note(unknownInterval + ": " + missingEnd[by])
				return
			case p.HiNS == nil:
				t.Note(between + ", no upper end: " + missingEnd[by])
				return
			case p.LoNS == nil:
				t.Note(between + ", no lower end: " + missingEnd[by])
				return
			}
		}
	}
}

// missingBy is why an end of a percentile's interval is unknown.
func missingBy(p *result.Percentile) string {
	return cmp.Or(p.UnboundedBy, byFewSamples)
}

// fewSamples marks a percentile with too few samples, everywhere in weir, and nothing else.
const fewSamples = "~"

// tooFew explains the figures marked by fewSamples, if any.
func tooFew(p *layout.Page, x *layout.Table) {
	if marked(x, fewSamples) {
		p.Note(fewSamples + " too few samples for this percentile: do not quote it")
	}
}

// marked reports whether a figure of a table begins with one of the marks.
func marked(x *layout.Table, marks ...string) bool {
	return x != nil && slices.ContainsFunc(x.Rows, func(r []layout.Span) bool {
		return slices.ContainsFunc(r, func(c layout.Span) bool {
			return slices.ContainsFunc(marks, func(m string) bool { return strings.HasPrefix(c.Text, m) })
		})
	})
}

// unbounded explains the intervals: the rarest stall a run of this length would have seen, and the missing
// ends.
func (t *single) unbounded(all []distribution) {
	if t.r.Run.HorizonS <= 0 {
		return
	}
	horizon := quantity.Time(int64(t.r.Run.HorizonS * 1e9))
	lines := []string{
		intervalHead + ": the true percentile lies in it with 95 % probability",
		"long enough to see, with 97.5 % certainty, a stall that comes every " + horizon + " on average; rarer ones may be missing",
	}
	said, reasons := map[string]bool{}, []string(nil)
	for _, c := range all {
		if !c.interval {
			continue
		}
		for _, p := range c.d.Percentiles {
			by := p.UnboundedBy
			if p.P < 100 && by == "" && (p.LoNS == nil || p.HiNS == nil) {
				by = byFewSamples
			}
			if p.Supported && !said[by] {
				said[by] = true
				if why := missingEnd[by]; why != "" {
					reasons = append(reasons, why)
				}
			}
		}
	}
	if slices.ContainsFunc(all, func(c distribution) bool { return c.d.Censored > 0 }) {
		lines = append(lines, ">= at least: of messages that failed or never came (censored) only their age at the end is known, and it counts")
	}
	if len(reasons) > 0 {
		lines = append(lines, "an end is missing, or the interval is not known: "+strings.Join(reasons, "; or "))
	}
	t.Note(lines...)
}

// byFewSamples is the reason for a missing end if the result gives none.
const byFewSamples = "samples"

// missingEnd says why one or both ends of an interval are unknown.
var missingEnd = map[string]string{
	result.ByDependence: "neighbouring messages took similar times, so they count as few samples (measure for longer)",
	byFewSamples:        "too few samples lie beyond the percentile",
	result.ByEpisodes:   "the slow messages came in fewer than six separate bursts",
}

// unsupported explains the mark ~ if present, and says how long a run must be to support one more
// percentile. It uses the first response or service.
func (t *single) unsupported(x *layout.Table, all []distribution, shown []float64) {
	tooFew(t.Page, x)
	for _, p := range t.o.Percentiles {
		if !slices.Contains(shown, p) {
			t.Note(percent(p) + " is not stored in this result: weir run --percentiles stores it")
		}
	}
	for _, c := range all {
		if c.name != "response" && c.name != "service" {
			continue
		}
		higher := "percentiles"
		for _, p := range c.d.Percentiles {
			if p.Supported || p.UnsupportedBy != "" || p.P >= 100 {
				higher = "higher percentiles"
				continue
			}
			need := stats.Needed(p.P)
			if rate := t.rate(); rate > 0 {
				t.Note(fmt.Sprintf("%s need longer runs: %s from %s", higher, percent(p.P), quantity.Span(time.Duration(math.Ceil(min(float64(need)/rate, 1e9)))*time.Second)))
			} else {
				t.Note(fmt.Sprintf("%s need more samples: %s from %s", higher, percent(p.P), quantity.Count(need)))
			}
			return
		}
	}
}

// rate is the rate at which samples arrive.
func (t *single) rate() float64 {
	if t.r.Run.Loop == result.LoopClosed {
		received, _ := t.r.Throughput.Received()
		return max(t.r.Throughput.ConfirmedPerS, received)
	}
	return max(t.r.Throughput.OfferedPerS, 0)
}
