package view

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// History writes a history to a page: each series with its changes, what differs between the runs on both
// sides of each change, and last the answer.
func History(p *layout.Page, h *history.History) {
	changesOf(p, h)
	p.Gap()
	answerOf(p, h)
}

// changesOf is History without the answer.
func changesOf(p *layout.Page, h *history.History) {
	for i := range h.Series {
		s := &h.Series[i]
		p.Chapter(s.Name + " (" + s.Driver + ")")
		p.Gap()
		seriesOf(p, h, s)
		p.Gap()
	}
	p.Bullet("p: by permutation, for all figures of a series together. A series without a change shows one with a chance of " + percentText(h.Alpha) + " % at most.")
	p.Bullet("before and after: medians of the runs up to the next change. shift: Hodges-Lehmann, with its 95 % interval.")
}

// seriesOf writes the findings of one series.
func seriesOf(p *layout.Page, h *history.History, s *history.Series) {
	says := quantity.Counted(len(s.Runs), "run counts", "runs count")
	if len(s.Runs) > 0 {
		says += ", from " + day(s.Runs[0]) + " to " + day(s.Runs[len(s.Runs)-1])
	}
	if n := len(s.LeftOut); n > 0 {
		says += fmt.Sprintf("; %d left out (INVALID or interrupted)", n)
	}
	if s.Older > 0 {
		says += fmt.Sprintf("; %s older ones are not looked at", quantity.Count(uint64(s.Older)))
	}
	p.Say(says + ".")
	if len(s.Runs) < history.LeastRuns {
		p.Say(fmt.Sprintf("A history needs %d runs.", history.LeastRuns))
		return
	}
	t := &layout.Table{Columns: layout.Columns(layout.Number, layout.Strong, "run", "began", "figure", "before", "after", "shift", intervalHead, "p", "verdict")}
	t.Columns[1].Kind, t.Columns[2].Kind, t.Columns[8].Kind, t.Columns[8].Judges = layout.Word, layout.Word, layout.Word, true
	at := map[int][]compare.Difference{}
	var order []int
	for i := range s.Runs {
		for _, f := range s.Figures {
			for _, c := range f.Changes {
				if c.At != i {
					continue
				}
				if at[i] == nil {
					order = append(order, i)
				}
				at[i] = append([]compare.Difference{}, c.Differs...)
				shift, between := shiftText(c)
				t.Row(strconv.Itoa(i+1), day(s.Runs[i]), figureName(f.Family, f.Name), result.Bound(c.Before, c.BeforeAtLeast).Text(unitText(f.Unit)), result.Bound(c.After, c.AfterAtLeast).Text(unitText(f.Unit)), shift, between, pText(c.P), "")
				t.Rows[len(t.Rows)-1][8] = wordOf(c)
			}
		}
	}
	if s.Needs > 0 {
		p.Say(fmt.Sprintf("%d runs cannot show a change, however large: add %d.", len(s.Runs), s.Needs-len(s.Runs)))
		return
	}
	if len(t.Rows) == 0 {
		p.Say("No figure changed from one run to the next.")
		return
	}
	p.Gap()
	p.Table(t)
	p.Gap()
	for _, i := range order {
		p.Bullet(fmt.Sprintf("run %d is %s. %s", i+1, s.Runs[i].Dir, differsText(at[i])))
	}
}

// differsText lists what else changed.
func differsText(all []compare.Difference) string {
	if len(all) == 0 {
		return "The recorded settings of this run and the one before it are identical."
	}
	var parts []string
	for _, d := range all {
		value := func(i int) string { return cmp.Or(strings.Join(d.Sides[i], ", "), "not told") }
		parts = append(parts, fmt.Sprintf("%s was %s and is %s", d.Name, value(0), value(1)))
	}
	const most = 6
	if n := len(parts) - most; n > 0 {
		parts = append(parts[:most], fmt.Sprintf("%d more", n))
	}
	return "Before it, " + strings.Join(parts, "; ") + "."
}

// day formats the start of a run, to the minute.
func day(r history.Run) string {
	t, err := time.Parse(time.RFC3339Nano, r.StartedAt)
	if err != nil {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func shiftText(c history.Change) (value, between string) {
	if c.Percent == nil {
		return "-", "-"
	}
	s := shift{*c.Percent, c.PercentLo, c.PercentHi, signedPercent, " %", c.BeforeAtLeast, c.AfterAtLeast}
	return s.text(), s.between()
}

func wordOf(c history.Change) layout.Span {
	word := string(c.Verdict)
	if c.New {
		word += ", new"
	}
	switch c.Verdict {
	case history.Worse:
		return layout.Bad.Of(word)
	case history.Better:
		return layout.Good.Of(word)
	}
	return plain(word)
}

// answerOf says in one line whether and where something changed in the latest runs.
func answerOf(p *layout.Page, h *history.History) {
	all, worse := h.New()
	latest := fmt.Sprintf("the latest %s", quantity.Counted(h.Latest, "run", "runs"))
	old := -all
	var clearest string
	for _, s := range h.Series {
		for _, f := range s.Figures {
			old += len(f.Changes)
			for _, c := range f.Changes {
				if c.New && (clearest == "" || worse > 0 && c.Verdict == history.Worse && !strings.HasSuffix(clearest, "worse")) {
					shift, _ := shiftText(c)
					clearest = fmt.Sprintf("%s changed by %s from run %d of %d (%s), %s", figureName(f.Family, f.Name), shift, c.At+1, len(s.Runs), s.Runs[c.At].Dir, c.Verdict)
				}
			}
		}
	}
	earlier := ""
	if old > 0 {
		earlier = fmt.Sprintf("; %s before", quantity.Counted(old, "change", "changes"))
	}
	switch all {
	case 0:
		p.Line(layout.Strong.Of("no"), plain(fmt.Sprintf(": %s show no change%s%s", latest, earlier, shownBy(h))))
	case 1:
		p.Line(layout.Strong.Of("yes"), plain(": "+clearest+earlier))
	default:
		p.Line(layout.Strong.Of("yes"), plain(fmt.Sprintf(": %s; in all %d changes in %s, %d worse%s", clearest, all, latest, worse, earlier)))
	}
}

// shownBy is the smallest change that would have been detected, in the series where that is largest; "" if
// unknown.
func shownBy(h *history.History) string {
	var worst *history.Shows
	for i := range h.Series {
		s := h.Series[i].Shows
		if s != nil && (worst == nil || worst.Percent != nil && (s.Percent == nil || *s.Percent > *worst.Percent)) {
			worst = s
		}
	}
	switch {
	case worst == nil:
		return ""
	case worst.After > 0:
		return fmt.Sprintf("; one could not show yet, however large: a change shows once %d runs follow it", worst.After)
	case worst.Percent == nil:
		return fmt.Sprintf("; they vary so much that a tenfold change of %s would not have shown", figureName(worst.Family, worst.Name))
	}
	return fmt.Sprintf("; a change of %s by %.0f %% would have shown", figureName(worst.Family, worst.Name), *worst.Percent)
}

// HistoryHTML writes a history as an HTML page: the answer, a chart of each figure that changed, and the
// rest of History. It returns the error of w.
func HistoryHTML(w io.Writer, h *history.History) error {
	p := new(layout.Page)
	title := "History of " + quantity.Counted(len(h.Series), "series", "series")
	p.Heading(title)
	answerOf(p, h)
	n := 0
	for i := range h.Series {
		for _, f := range h.Series[i].Figures {
			if len(f.Changes) > 0 && n < mostHistories {
				n++
				followed(p, &h.Series[i], f, fmt.Sprintf("h%d", n))
			}
		}
	}
	if n == mostHistories {
		p.Say(fmt.Sprintf("Charts stand here for the first %d figures that changed.", mostHistories))
	}
	changesOf(p, h)
	page := browser(title)
	page.Footer = "weir history --json has the figures. " +
		aboutScript
	return page.Write(w, p)
}

const mostHistories = 60

// followed plots a figure over the runs: a dot for each run, and the median between changes.
func followed(p *layout.Page, s *history.Series, f history.Figure, id string) {
	dots := plot.Line{Class: "s1", Dots: true}
	least, most := math.Inf(1), math.Inf(-1)
	for i, v := range f.Values {
		form := plot.Full
		value := f.Value(i)
		if _, exact := value.Exact(); !exact {
			form = plot.Upward
		}
		text := fmt.Sprintf("run %d, %s, %s: %s", i+1, day(s.Runs[i]), s.Runs[i].Dir, value.Text(unitText(f.Unit)))
		dots.Points = append(dots.Points, plot.Point{X: float64(i + 1), Y: v, Text: text, Form: form})
		least, most = min(least, v), max(most, v)
	}
	medians := plot.Line{Class: "s2"}
	from := 0
	for i, c := range f.Changes {
		if i == 0 {
			medians.Points = append(medians.Points, level(0, c.At, c.Before)...)
		}
		to := len(f.Values)
		if i+1 < len(f.Changes) {
			to = f.Changes[i+1].At
		}
		from = c.At
		medians.Points = append(medians.Points, level(from, to, c.After)...)
	}
	chart := &layout.Chart{
		Caption: s.Name + ": each dot is a run. The line is the median of the runs between two changes. An arrow: at least so much.",
		Legend:  []layout.Key{{Class: "s1", Text: figureName(f.Family, f.Name)}, {Class: "s2", Text: "median"}},
		Chart:   plot.Chart{ID: id, Title: s.Name + ": " + figureName(f.Family, f.Name), Desc: "The table below has the changes.", Height: high},
	}
	for _, c := range f.Changes {
		shift, _ := shiftText(c)
		chart.Marks = append(chart.Marks, plot.Mark{X: float64(c.At) + 0.5, Text: fmt.Sprintf("run %d: %s, %s", c.At+1, shift, c.Verdict), Class: "event", Tall: true})
	}
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	chart.X = plot.Linear(1, float64(max(2, len(f.Values))), 10, "run", whole)
	chart.Y = plot.Linear(min(0, least), most, 6, figureName(f.Family, f.Name), unitText(f.Unit))
	chart.Lines = []plot.Line{medians, dots}
	p.Chart(chart)
}

// level is a horizontal line over the runs from and before to, followed by a gap.
func level(from, to int, y float64) []plot.Point {
	return []plot.Point{{X: float64(from) + 0.5, Y: y}, {X: float64(to) + 0.5, Y: y}, {X: float64(to) + 0.5, Y: math.NaN()}}
}
