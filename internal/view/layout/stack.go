package layout

import (
	"slices"
	"strings"
)

// narrow is the width below which a terminal counts as small. There insets are small, and tables of prose
// are stacked if their columns, or a single word, do not fit.
const narrow = 60

// narrowInset is the largest indentation of a page on a small terminal.
const narrowInset = 2

// leastBeside is the least width of each of several columns of prose.
const leastBeside = 10

// stacks reports whether a table of prose is stacked since its columns do not fit side by side: a line
// would be too long, or a word wider than its column. Words too long for a line of their own do not count.
func (t Text) stacks(x *Table, columns []int) bool {
	if !t.Fold || t.Width <= 0 || !x.prose() {
		return false
	}
	widths, prose := t.shared(x, columns), 0
	for _, i := range columns {
		if x.Columns[i].Kind == Prose {
			prose++
		}
	}
	if t.Width < narrow && wide(widths, columns) > t.Width {
		return true
	}
	heads := make([]Span, len(x.Columns))
	for i, c := range x.Columns {
		heads[i] = Plain.Of(c.Head)
	}
	for _, cells := range append([][]Span{heads}, x.Rows...) {
		at := 0
		for n, i := range columns {
			if n > 0 && widths[i] > 0 {
				at += between
			}
			last, of := n == len(columns)-1, x.Columns[i].Kind == Prose
			if of && prose > 1 && widths[i] < leastBeside {
				return true
			}
			for _, line := range t.lines(cells[i], of, widths[i]) {
				long := Length(line)
				if len(words(line)) == 1 && (t.Width >= narrow || long > t.Width-narrowInset) {
					continue
				}
				if long > 0 && at+long > t.Width || of && !last && long > widths[i] {
					return true
				}
			}
			at += widths[i]
		}
	}
	return false
}

// crowded reports whether a part of a table is wider than a small terminal, however it is cut.
func (t Text) crowded(x *Table, parts [][]int) bool {
	return t.Fold && t.Width > 0 && t.Width < narrow && !x.prose() &&
		slices.ContainsFunc(parts, func(columns []int) bool { return wide(x.widths(), columns) > t.Width })
}

// lines returns the lines of a cell, without colour.
func (t Text) lines(cell Span, prose bool, width int) []string {
	if !prose {
		return []string{cell.Text}
	}
	return Text{Fold: t.Fold}.folded([]Span{Plain.Of(strings.Join(strings.Fields(cell.Text), " "))}, width)
}

// stack writes the rows of a table one below the other: first the key and cells without a heading, below
// them cells with their headings, and all prose.
func (t Text) stack(x *Table, columns []int) string {
	var b strings.Builder
	put := func(indent int, spans []Span) {
		if len(spans) == 0 {
			return
		}
		b.WriteString(blanks(indent) + strings.Join(t.folded(spans, t.Width-indent), "\n"+blanks(indent)) + "\n")
	}
	for _, r := range x.Rows {
		var title, facts []Span
		var under [][]Span
		for _, i := range columns {
			c, cell := x.Columns[i], r[i].Tone.Of(strings.Join(strings.Fields(r[i].Whole()), " "))
			head := strings.TrimSpace(c.Group + " " + c.Head)
			switch {
			case cell.Text == "":
			case c.Kind == Prose && head == "":
				under = append(under, []Span{cell})
			case c.Kind == Prose:
				under = append(under, []Span{Faint.Of(head + ": "), cell})
			case c.Key || head == "":
				if len(title) > 0 {
					title = append(title, Plain.Of("  "))
				}
				title = append(title, cell)
			default:
				before := ""
				if last := len(facts) - 1; last >= 0 {
					facts[last].Text += "," // never wrapped before the comma
					before = " "
				}
				facts = append(facts, Faint.Of(before+head+" "), cell)
			}
		}
		put(0, title)
		put(narrowInset, facts)
		for _, spans := range under {
			put(narrowInset, spans)
		}
	}
	return b.String()
}
