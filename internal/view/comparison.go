package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// A comparison writes a comparison of runs to a page.
type comparison struct {
	*layout.Page
	*compare.Comparison
}

// Limits of a comparison's screen: the sides that are compared with the base, and the figures if there is
// only one such side.
const (
	mostSides   = 4
	mostFigures = 4
)

// ComparisonScreen returns a comparison in short: the answer, the figures behind it, and the commands to
// run next if it is undecided.
func ComparisonScreen(found *compare.Comparison, parting Parting) *Screen {
	s := new(Screen)
	add := func(rank int, show func(comparison)) {
		s.Add(rank, func(p *layout.Page) { show(comparison{p, found}) })
	}
	add(0, func(c comparison) { c.answer(mostSides) })
	add(2, comparison.counted)
	if len(found.Sides) == 2 {
		add(3, comparison.decisive)
	}
	for i, w := range slices.Backward(found.Warnings) { // lost messages come last there
		add(4+len(found.Warnings)-i, func(c comparison) { c.Bullet(w) })
	}
	add(0, func(c comparison) { c.next(parting) })
	add(0, func(c comparison) {
		c.Labelled("details", plain("--full: each with its interval, and what the runs differ in"))
	})
	return s
}

func (c comparison) counted() {
	var all []string
	for i, x := range c.Sides {
		name := x.Side
		if called := c.called(i); called != name {
			name += " is " + called
		}
		all = append(all, fmt.Sprintf("%s: %s (%s)", name, runs(x.Used), verdictsOf(x)))
	}
	c.Say(strings.Join(all, "; "))
}

// decisive writes the figures that differ, of resource use too, then the most informative others.
func (c comparison) decisive() {
	decided := func(f compare.Figure) bool {
		v := f.Sides[1].Change.Verdict
		return v == compare.Worse || v == compare.Better
	}
	open := c.deciding()
	figures := slices.DeleteFunc(slices.Clone(c.Figures), func(f compare.Figure) bool { return !decided(f) })
	slices.SortStableFunc(figures, func(a, b compare.Figure) int { return rank(&a) - rank(&b) })
	figures = append(figures, slices.DeleteFunc(open, decided)...)
	x := c.changed(1, "", figures[:min(len(figures), mostFigures)], shortName)
	c.Table(chosen(x, under("", c.Sides[0].Side, c.Sides[1].Side, "shift", percentText(1-c.Alpha)+" % interval"), under("", "p"), under("", "verdict")))
}

// Comparison writes a comparison to a page: its sides, what they differ in, how each figure changed, and
// what the words mean. With full it includes the values of each run.
func Comparison(p *layout.Page, found *compare.Comparison, full bool) {
	c := comparison{p, found}
	c.answer(len(found.Sides))
	c.Gap()
	c.figures(full)
}

// figures writes everything but the answer.
func (c comparison) figures(full bool) {
	c.sides()
	c.Gap()
	c.differences()
	for i := range c.Sides[1:] {
		c.Gap()
		c.changes(i + 1)
	}
	c.missing()
	if full {
		c.Gap()
		c.Chapter("Each run")
		c.runs()
	}
	for i := range c.Shifts {
		c.Gap()
		c.Chapter(shiftTitle(&c.Shifts[i]))
		c.shift(&c.Shifts[i], i == 0)
	}
	c.Gap()
	c.legend()
}

// columns returns a table's columns: the first of words, the others of numbers.
func columns(first string, numbers ...string) []layout.Column {
	out := layout.Columns(layout.Number, layout.Strong, append([]string{first}, numbers...)...)
	out[0].Kind = layout.Word
	return out
}

// longestSide is how many characters of a side's name are shown, as the user gave it.
const longestSide = 40

func (c comparison) sides() {
	t := &layout.Table{Columns: layout.Columns(layout.Word, layout.Strong, "side", "given as", "system", "confirmed =", "runs", "verdicts")}
	t.Columns[4].Kind = layout.Number
	for i, x := range c.Sides {
		name := x.Side
		if i == 0 {
			name += " (base)"
		}
		t.Row(name, layout.Shortened(x.Given, longestSide), x.System, x.Guarantee, strconv.Itoa(x.Used), verdictsOf(x))
	}
	c.Table(t)
}

// verdictsOf counts the runs of a side by their verdicts.
func verdictsOf(x compare.SideSummary) string {
	valid, suspect, out := 0, 0, map[string]int{}
	for _, r := range x.Runs {
		switch {
		case r.Why != "":
			out[r.Why]++
		case r.Verdict == result.Suspect:
			suspect++
		default:
			valid++
		}
	}
	var says []string
	switch {
	case suspect > 0 && valid > 0:
		says = append(says, fmt.Sprintf("%d VALID, %d SUSPECT", valid, suspect))
	case suspect > 0:
		says = append(says, fmt.Sprintf("%d SUSPECT", suspect))
	case valid > 0:
		says = append(says, fmt.Sprintf("%d VALID", valid))
	}
	for _, why := range []string{"INVALID", "interrupted"} {
		if out[why] > 0 {
			says = append(says, fmt.Sprintf("left out: %d %s", out[why], why))
		}
	}
	return strings.Join(says, "; ")
}

func (c comparison) letters() []string {
	var out []string
	for _, x := range c.Sides {
		out = append(out, x.Side)
	}
	return out
}

// differences writes what the runs differ in, and the consequences for the figures.
func (c comparison) differences() {
	if len(c.Differences) == 0 {
		c.Say("The recorded settings of these runs are identical.")
	} else {
		t := &layout.Table{Columns: layout.Columns(layout.Word, layout.Strong, append([]string{"differs"}, c.letters()...)...)}
		for _, d := range c.Differences {
			row := []string{d.Name}
			for _, values := range d.Sides {
				row = append(row, cmp.Or(strings.Join(values, "; "), "-"))
			}
			t.Row(row...)
		}
		c.Table(t)
	}
	c.Gap()
	for _, w := range c.Warnings {
		c.Bullet(w)
	}
}

// families calls table for the figures of each family: times and rates first, message counts last.
func (c comparison) families(table func(family string, figures []compare.Figure)) {
	for _, last := range []bool{false, true} {
		for i, first := range c.Figures {
			if (i == 0 || c.Figures[i-1].Family != first.Family) && last == (first.Family == "outcomes") {
				end := i
				for end < len(c.Figures) && c.Figures[end].Family == first.Family {
					end++
				}
				table(first.Family, c.Figures[i:end])
			}
		}
	}
}

// changes compares a side with the base, in a table for each family of figures.
func (c comparison) changes(side int) {
	x := c.Sides[side]
	c.Chapter(fmt.Sprintf("%s against %s", x.Side, c.Sides[0].Side))
	c.Gap()
	c.Say(came(x.Tally, c.Band))
	c.changeTables(side)
}

func (c comparison) changeTables(side int) {
	c.families(func(family string, figures []compare.Figure) {
		c.Gap()
		c.Table(c.changed(side, familyTitle(family), figures, func(f *compare.Figure) string { return f.Name }))
	})
}

// changed adds a table of how figures of a side changed.
func (c comparison) changed(side int, title string, figures []compare.Figure, name func(*compare.Figure) string) *layout.Table {
	t := &layout.Table{Columns: append(
		columns(title, c.Sides[0].Side, c.Sides[side].Side, "shift", percentText(1-c.Alpha)+" % interval", "p"),
		layout.Column{Kind: layout.Word, Head: "verdict", Tone: layout.Strong, Judges: true})}
	for i := range figures {
		f := &figures[i]
		change := f.Sides[side].Change
		shift := shiftOf(f, side)
		between := shift.between()
		p := "-"
		if change.Tests > 0 {
			p = pText(change.PHolm)
		} else {
			between = "-"
		}
		t.Row(name(f), medianText(f.Sides[0], f.Unit), medianText(f.Sides[side], f.Unit), shift.text(), between, p, "")
		t.Rows[len(t.Rows)-1][6] = verdictOf(change, c.Band)
	}
	return t
}

func familyTitle(family string) string {
	if family == "outcomes" {
		return "outcomes, whole run"
	}
	return strings.Replace(family, ".", " ", 1)
}

// came counts the figures by outcome.
func came(t *compare.Tally, band float64) string {
	unchanged := "unchanged"
	if band > 0 {
		unchanged += " within " + bandText(band)
	}
	all := t.Worse + t.Better + t.NoChange + t.NothingShown + t.NeedsRuns
	found := "No difference shown."
	if t.Worse+t.Better > 0 {
		found = fmt.Sprintf("%s, %d better.", quantity.Counted(t.Worse, "figure worse", "figures worse"), t.Better)
	}
	var rest []string
	for _, x := range []struct {
		n         int
		one, many string
	}{{t.NoChange, "is " + unchanged, "are " + unchanged}, {t.NothingShown, "is undecided", "are undecided"}, {t.NeedsRuns, "needs more runs", "need more runs"}} {
		switch {
		case x.n == 1:
			rest = append(rest, "1 "+x.one)
		case x.n > 1:
			rest = append(rest, fmt.Sprintf("%d %s", x.n, x.many))
		}
	}
	if len(rest) == 0 {
		return found
	}
	return fmt.Sprintf("%s Of %s, %s.", found, quantity.Counted(all, "figure", "figures"), strings.Join(rest, ", "))
}

func bandText(band float64) string { return "±" + percentText(band) + " %" }

// percentText writes a fraction as a percentage without its sign.
func percentText(part float64) string {
	return strconv.FormatFloat(math.Round(part*1e6)/1e4, 'f', -1, 64)
}

func verdictOf(c *compare.Change, band float64) layout.Span {
	switch c.Verdict {
	case compare.Worse:
		return layout.Bad.Of("worse")
	case compare.Better:
		return layout.Good.Of("better")
	case compare.NeedsRuns:
		return layout.Faint.Of("needs " + quantity.Counted(c.MoreRuns, "more run a side", "more runs a side"))
	case compare.NoChange:
		if c.Tests == 0 {
			return layout.Faint.Of("the same in every run")
		}
		return plain("no change within " + bandText(band))
	}
	return layout.Faint.Of("undecided")
}

func pText(p float64) string {
	switch {
	case p < 0.001:
		return "<0.001"
	case p >= 0.9995:
		return "1"
	}
	return strconv.FormatFloat(p, 'f', 3, 64)
}

// unitText returns a formatter for values of a unit.
func unitText(unit string) func(float64) string {
	switch unit {
	case compare.UnitTime:
		return func(v float64) string { return quantity.Time(int64(math.Round(v))) }
	case compare.UnitRate:
		return quantity.Rate
	case compare.UnitMessages:
		return func(v float64) string {
			if v != math.Trunc(v) { // a median
				return strconv.FormatFloat(v, 'f', 1, 64)
			}
			return quantity.Count(uint64(v))
		}
	case compare.UnitBytes:
		return quantity.Bytes
	case compare.UnitCores:
		return func(v float64) string { return coresText(v) + " cores" }
	}
	return func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
}

func medianText(v compare.Values, unit string) string {
	text := result.Bound(v.Median, v.MedianAtLeast).Text(unitText(unit))
	if v.Marked > 0 {
		text = "!" + text
	}
	return text
}

// A shift is the difference of a side's figure from the base's, with its interval: as a percentage where
// possible.
type shift struct {
	value    float64
	lo, hi   *float64
	write    func(float64) string // with its sign
	unit     string               // after the value and after the interval
	from, to bool                 // lower bounds only
}

func shiftOf(f *compare.Figure, side int) shift {
	c := f.Sides[side].Change
	s := shift{c.Shift, c.Lo, c.Hi, func(v float64) string { return signed(v, f.Unit) }, "", f.Sides[0].AtLeast != nil, f.Sides[side].AtLeast != nil}
	if c.Percent != nil {
		s.value, s.lo, s.hi, s.write, s.unit = *c.Percent, c.PercentLo, c.PercentHi, signedPercent, " %"
	}
	return s
}

// text marks a shift between figures if some are only lower bounds.
func (s shift) text() string {
	text := s.write(s.value) + s.unit
	switch {
	case s.from && s.to:
		return "-"
	case s.to:
		return ">= " + text
	case s.from:
		return "<= " + text
	}
	return text
}

func (s shift) between() string {
	end := func(v *float64) string {
		if v == nil {
			return ""
		}
		return s.write(*v) + s.unit
	}
	return cmp.Or(quantity.Range(end(s.lo), end(s.hi)), "-")
}

// signedPercent writes a percentage with its sign: "+3.4", "-12.0", "+1,234".
func signedPercent(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95 && v < 0:
		return "-" + quantity.Count(uint64(math.Round(a)))
	case a >= 99.95:
		return "+" + quantity.Count(uint64(math.Round(a)))
	case a < 0.05:
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", v)
}

func (c comparison) missing() {
	if len(c.Missing) == 0 {
		return
	}
	c.Gap()
	c.Say("Not compared:")
	for _, m := range c.Missing {
		text := fmt.Sprintf("%s %s: %s without it", familyTitle(m.Family), m.Name, quantity.Counted(m.Runs, "run", "runs"))
		if m.Needs > 0 {
			text = fmt.Sprintf("%s %s: needs %s samples in each run, %s fewer, the fewest %s", familyTitle(m.Family), m.Name,
				quantity.Count(m.Needs), quantity.Counted(m.Runs, "has", "have"), quantity.Count(m.Has))
		}
		c.Bullet(text)
	}
}

func (c comparison) runs() {
	c.families(func(family string, figures []compare.Figure) {
		c.Gap()
		t := &layout.Table{Columns: layout.Columns(layout.Word, layout.Strong, familyTitle(family), "run")}
		for _, x := range c.Sides {
			for _, r := range x.Runs {
				if r.Why == "" {
					t.Row(x.Side, r.Dir)
				}
			}
		}
		for _, f := range figures {
			t.Columns = append(t.Columns, layout.Column{Head: f.Name, Tone: layout.Strong})
			row := 0
			for _, v := range f.Sides {
				for _, x := range v.Values() {
					t.Rows[row] = append(t.Rows[row], plain(x.Text(unitText(f.Unit))))
					row++
				}
			}
		}
		c.Table(t)
	})
}

// pointTexts returns a percentile of merged runs, and the extremes of the single runs.
func pointTexts(x *compare.PointSide) (median, low, high string) {
	write := func(ns int64, atLeast bool) string { return result.Bound(float64(ns), atLeast).Text(timeText) }
	return write(x.MedianNS, x.MedianAtLeast), write(x.RunsLoNS, x.RunsLoAtLeast), write(x.RunsHiNS, x.RunsHiAtLeast)
}

func shiftTitle(f *compare.ShiftFunction) string {
	return "Where the sides differ: percentiles of " + familyTitle(f.Family)
}

// shift writes a shift function; the first one is explained.
func (c comparison) shift(f *compare.ShiftFunction, first bool) {
	if first {
		c.Say("At each percentile the median over the runs of a side, and in brackets the least and the largest of them. " +
			"It shows where in the distribution a difference lies. The tests above say whether it is more than chance.")
		c.Gap()
	}
	heads := []string{"percentile"}
	for i, x := range c.Sides {
		heads = append(heads, x.Side, "runs of "+x.Side)
		if i > 0 {
			heads = append(heads, c.Sides[0].Side+" to "+x.Side)
		}
	}
	t := &layout.Table{Columns: layout.Columns(layout.Number, layout.Strong, heads...)}
	for _, p := range f.Points {
		row := []string{strconv.FormatFloat(p.P, 'f', -1, 64) + " %"}
		for i, x := range p.Sides {
			text, low, high := pointTexts(&x)
			if !x.MedianSupported {
				text = fewSamples + text
			}
			row = append(row, text, "("+quantity.Range(low, high)+")")
			switch {
			case i == 0:
			case x.MedianPercent == nil:
				row = append(row, "-")
			default:
				row = append(row, signedPercent(*x.MedianPercent)+" %")
			}
		}
		t.Row(row...)
	}
	c.Table(t)
}

func (c comparison) legend() {
	some := func(has func(compare.Values) bool) bool {
		return slices.ContainsFunc(c.Figures, func(f compare.Figure) bool { return slices.ContainsFunc(f.Sides, has) })
	}
	c.Bullet("A and the other letters: the median of the runs; one run is one observation. shift: by how much a run of the other side lies above one of the base " +
		"(Hodges-Lehmann), with its interval for this figure alone.")
	c.Bullet("p: Mann-Whitney, exact or corrected for ties, adjusted by Holm for all figures of its group, so that a wrong claim in any of them has a chance of " +
		percentText(c.Alpha) + " % at most.")
	c.Bullet("undecided: the runs show neither a difference nor that there is none. More runs, or quieter ones, may decide it.")
	if some(func(v compare.Values) bool { return v.MedianAtLeast }) {
		c.Bullet(">=: at least: messages that never came count with their age.")
	}
	if some(func(v compare.Values) bool { return v.Marked > 0 }) {
		c.Bullet("!: in some run something other than the system moved it by over a tenth.")
	}
}
