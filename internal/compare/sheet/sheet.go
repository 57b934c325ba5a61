// Package sheet lays a comparison out for people, and writes it as text for a terminal
// or as Markdown.
package sheet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/result"
)

// A Sheet is a comparison as it is shown, before it is text or Markdown.
type Sheet struct{ blocks []block }

// A block is a heading, a paragraph, a list or a table.
type block struct {
	heading string
	words   string
	items   []string
	head    []string
	left    []bool // the columns that are aligned to the left
	rows    [][]string
	colours []string // of the rows' last cells
}

const (
	red   = "\x1b[1;31m"
	green = "\x1b[1;32m"
	dim   = "\x1b[2m"
)

// add appends a block. It makes its texts, which may come from a stranger's folder, fit
// for a terminal.
func (s *Sheet) add(b block) {
	b.heading, b.words = shownText(b.heading), shownText(b.words)
	for _, texts := range append([][]string{b.items, b.head}, b.rows...) {
		for i := range texts {
			texts[i] = shownText(texts[i])
		}
	}
	s.blocks = append(s.blocks, b)
}

// New lays out a comparison.
func New(c *compare.Comparison, full bool) *Sheet {
	s := new(Sheet)
	s.sides(c)
	s.differences(c)
	for i := range c.Sides[1:] {
		s.changes(c, i+1)
	}
	s.missing(c)
	if full {
		s.runs(c)
	}
	for i := range c.Shifts {
		s.shift(&c.Shifts[i], c, i == 0)
	}
	s.legend(c)
	return s
}

// shownText makes what comes from a folder fit for a terminal.
func shownText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// longestSide is how much is shown of what a side was given as.
const longestSide = 40

func shortened(s string) string {
	if r := []rune(s); len(r) > longestSide {
		return string(r[:longestSide-1]) + "…"
	}
	return s
}

// sides says what is held against what, and which runs are left out.
func (s *Sheet) sides(c *compare.Comparison) {
	b := block{head: []string{"side", "folder", "system", "confirmed =", "runs", ""}, left: []bool{true, true, true, true, false, true}}
	for i, x := range c.Sides {
		name := x.Side
		if i == 0 {
			name += " (base)"
		}
		suspect := 0
		out := map[string]int{}
		for _, r := range x.Runs {
			switch {
			case r.Why != "":
				out[r.Why]++
			case r.Verdict == result.Suspect:
				suspect++
			}
		}
		var says []string
		if suspect > 0 {
			says = append(says, fmt.Sprintf("%d SUSPECT", suspect))
		}
		for _, why := range []string{"INVALID", "interrupted"} {
			if out[why] > 0 {
				says = append(says, fmt.Sprintf("left out: %d %s", out[why], why))
			}
		}
		b.rows = append(b.rows, []string{name, shortened(shownText(x.Given)), x.System, x.Guarantee, strconv.Itoa(x.Used), strings.Join(says, ", ")})
	}
	s.add(b)
}

// differences says what the runs differ in, and what that does to the figures.
func (s *Sheet) differences(c *compare.Comparison) {
	if len(c.Differences) == 0 {
		s.add(block{words: "The recorded settings of these runs are identical."})
	} else {
		b := block{head: []string{"differs"}, left: []bool{true}}
		for i := range c.Sides {
			b.head, b.left = append(b.head, c.Sides[i].Side), append(b.left, true)
		}
		for _, d := range c.Differences {
			row := []string{d.Name}
			for _, values := range d.Sides {
				text := strings.Join(values, "; ")
				if text == "" {
					text = "-"
				}
				row = append(row, text)
			}
			b.rows = append(b.rows, row)
		}
		s.add(b)
	}
	if len(c.Warnings) > 0 {
		s.add(block{items: slices.Clone(c.Warnings)})
	}
}

// changes holds a side against the base, a table for each family of figures.
func (s *Sheet) changes(c *compare.Comparison, side int) {
	x := c.Sides[side]
	s.add(block{heading: fmt.Sprintf("%s against %s", x.Side, c.Sides[0].Side)})
	s.add(block{words: tally(x.Tally, c.Band)})
	var b *block
	family := ""
	for _, f := range c.Figures {
		if f.Family != family {
			if b != nil {
				s.add(*b)
			}
			family = f.Family
			b = &block{
				head: []string{familyTitle(family), c.Sides[0].Side, x.Side, "shift", percentText(1-c.Alpha) + " %", "p", "verdict"},
				left: []bool{true, false, false, false, false, false, true},
			}
		}
		change := f.Sides[side].Change
		verdict, colour := verdictText(change, c.Band)
		p := "-"
		if change.Tests > 0 {
			p = pText(change.PHolm)
		}
		shift, between := changeText(change, f.Unit)
		if change.Tests == 0 {
			between = "-"
		}
		b.rows = append(b.rows, []string{f.Name, medianText(f.Sides[0], f.Unit), medianText(f.Sides[side], f.Unit), shift, between, p, verdict})
		b.colours = append(b.colours, colour)
	}
	if b != nil {
		s.add(*b)
	}
}

// familyTitle is what stands over a family's figures.
func familyTitle(family string) string {
	if family == "outcomes" {
		return "outcomes, whole run"
	}
	return strings.Replace(family, ".", " ", 1)
}

// tally says how many figures came out how.
func tally(t *compare.Tally, band float64) string {
	unchanged := "unchanged"
	if band > 0 {
		unchanged += " within " + bandText(band)
	}
	all := t.Worse + t.Better + t.NoChange + t.NothingShown + t.NeedsRuns
	found := "No difference shown."
	if t.Worse+t.Better > 0 {
		found = fmt.Sprintf("%s, %d better.", report.Counted(t.Worse, "figure worse", "figures worse"), t.Better)
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
	return fmt.Sprintf("%s Of %s, %s.", found, report.Counted(all, "figure", "figures"), strings.Join(rest, ", "))
}

func bandText(band float64) string { return "±" + percentText(band) + " %" }

// percentText writes a part as a percentage without its sign.
func percentText(part float64) string {
	return strconv.FormatFloat(math.Round(part*1e6)/1e4, 'f', -1, 64)
}

func verdictText(c *compare.Change, band float64) (text, colour string) {
	switch c.Verdict {
	case compare.Worse:
		return "worse", red
	case compare.Better:
		return "better", green
	case compare.NeedsRuns:
		return "needs " + report.Counted(c.MoreRuns, "more run a side", "more runs a side"), dim
	case compare.NoChange:
		if c.Tests == 0 {
			return "the same in every run", dim
		}
		return "no change within " + bandText(band), ""
	}
	return "~", dim
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

// valueText writes a value in its unit.
func valueText(v float64, unit string) string {
	switch unit {
	case compare.UnitTime:
		return report.Time(int64(math.Round(v)))
	case compare.UnitRate:
		return report.Rate(v)
	case compare.UnitMessages:
		if v != math.Trunc(v) { // a median
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
		return report.Count(uint64(v))
	case compare.UnitBytes:
		return report.Size(v)
	case compare.UnitCores:
		return strconv.FormatFloat(v, 'f', 2, 64) + " cores"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func medianText(v compare.Values, unit string) string {
	text := valueText(v.Median, unit)
	if v.MedianAtLeast {
		text = ">= " + text
	}
	if v.HostLimited > 0 {
		text = "!" + text
	}
	return text
}

// changeText writes the shift and its interval, as a percentage where there is
// one.
func changeText(c *compare.Change, unit string) (shift, between string) {
	write := func(v *float64) string {
		if v == nil {
			return ""
		}
		if c.Percent != nil {
			return signedPercent(*v)
		}
		sign := "+"
		if *v < 0 {
			sign = "-"
		}
		if *v == 0 {
			sign = ""
		}
		return sign + valueText(math.Abs(*v), unit)
	}
	value, lo, hi, end := &c.Shift, c.Lo, c.Hi, ""
	if c.Percent != nil {
		value, lo, hi, end = c.Percent, c.PercentLo, c.PercentHi, " %"
	}
	between = "-"
	if lo != nil || hi != nil {
		between = write(lo) + ".." + write(hi) + end
	}
	return write(value) + end, between
}

// signedPercent writes a percentage with its sign: "+3.4", "-12.0", "+1,234".
func signedPercent(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95 && v < 0:
		return "-" + report.Count(uint64(math.Round(a)))
	case a >= 99.95:
		return "+" + report.Count(uint64(math.Round(a)))
	case a < 0.05:
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", v)
}

// missing says which figures could not be compared.
func (s *Sheet) missing(c *compare.Comparison) {
	if len(c.Missing) == 0 {
		return
	}
	b := block{words: "Not compared:"}
	for _, m := range c.Missing {
		text := fmt.Sprintf("%s %s: %s without it", familyTitle(m.Family), m.Name, report.Counted(m.Runs, "run", "runs"))
		if m.Needs > 0 {
			text = fmt.Sprintf("%s %s: needs %s samples in each run, %s fewer, the fewest %s", familyTitle(m.Family), m.Name,
				report.Count(m.Needs), report.Counted(m.Runs, "has", "have"), report.Count(m.Has))
		}
		b.items = append(b.items, text)
	}
	s.add(b)
}

// runs lists each run's own values, a table for each family.
func (s *Sheet) runs(c *compare.Comparison) {
	var family string
	var b *block
	done := func() {
		if b != nil {
			s.add(*b)
		}
	}
	s.add(block{heading: "Each run"})
	for _, f := range c.Figures {
		if f.Family != family {
			done()
			family = f.Family
			b = &block{head: []string{familyTitle(family), "run"}, left: []bool{true, true}}
			for _, x := range c.Sides {
				for _, r := range x.Runs {
					if r.Why == "" {
						b.rows = append(b.rows, []string{x.Side, r.Dir})
					}
				}
			}
		}
		b.head, b.left = append(b.head, f.Name), append(b.left, false)
		row := 0
		for _, v := range f.Sides {
			for i, x := range v.Runs {
				text := valueText(x, f.Unit)
				if v.AtLeast != nil && v.AtLeast[i] {
					text = ">= " + text
				}
				b.rows[row] = append(b.rows[row], text)
				row++
			}
		}
	}
	done()
}

// shift writes a shift function, the first with what it is.
func (s *Sheet) shift(f *compare.ShiftFunction, c *compare.Comparison, first bool) {
	head := block{heading: "Shift function of " + strings.Replace(f.Family, ".", " ", 1)}
	if first {
		head.words = "Percentiles of all runs of a side merged, and in brackets the least and the largest of its single runs. " +
			"It shows where in the distribution a difference lies. The tests above say whether it is more than chance."
	}
	s.add(head)
	b := block{left: []bool{false}, head: []string{"percentile"}}
	for i, x := range c.Sides {
		b.head, b.left = append(b.head, x.Side, "runs of "+x.Side), append(b.left, false, false)
		if i > 0 {
			b.head, b.left = append(b.head, "shift"), append(b.left, false)
		}
	}
	for _, p := range f.Points {
		row := []string{strconv.FormatFloat(p.P, 'f', -1, 64) + " %"}
		for i, x := range p.Sides {
			text := report.Time(x.NS)
			if x.AtLeast {
				text = ">= " + text
			}
			if !x.Supported {
				text = "~" + text
			}
			row = append(row, text, "("+report.Time(x.RunsLoNS)+".."+report.Time(x.RunsHiNS)+")")
			if i == 0 {
				continue
			}
			shift := "-"
			if x.Percent != nil {
				shift = signedPercent(*x.Percent) + " %"
			}
			row = append(row, shift)
		}
		b.rows = append(b.rows, row)
	}
	s.add(b)
}

// legend explains what the tables hold.
func (s *Sheet) legend(c *compare.Comparison) {
	b := block{items: []string{
		"A and the other letters: the median of the runs; one run is one observation. shift: by how much a run of the other side lies above one of the base " +
			"(Hodges-Lehmann), with its interval for this figure alone.",
		"p: Mann-Whitney, exact or corrected for ties, adjusted by Holm for all figures of its group, so that a wrong claim in any of them has a chance of " +
			percentText(c.Alpha) + " % at most.",
		"~: not decided: the runs show neither a difference nor that there is none. More runs, or quieter ones, may decide it.",
	}}
	if slices.ContainsFunc(c.Figures, func(f compare.Figure) bool {
		return slices.ContainsFunc(f.Sides, func(v compare.Values) bool { return v.MedianAtLeast })
	}) {
		b.items = append(b.items, ">=: at least: messages that never came count with their age.")
	}
	if slices.ContainsFunc(c.Figures, func(f compare.Figure) bool {
		return slices.ContainsFunc(f.Sides, func(v compare.Values) bool { return v.HostLimited > 0 })
	}) {
		b.items = append(b.items, "!: host-limited in some run: over half of it is the generator's own lateness.")
	}
	s.add(b)
}
