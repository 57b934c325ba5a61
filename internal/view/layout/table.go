package layout

import (
	"slices"
	"unicode/utf8"
)

// A Table has its columns in groups. A group has a common heading and stays together.
type Table struct {
	Columns []Column
	Rows    [][]Span // as many cells as columns
	Even    bool     // if cut, parts have about as many columns each
	Cards   bool     // in HTML, a phone has a card for each row
}

// A Column is a column of a table.
type Column struct {
	Kind   Kind
	Group  string // adjacent columns of one group share a heading
	Head   string
	Tone   Tone // of the heading
	Key    bool // identifies the row: repeated where a table is cut
	Beside bool // stays with the column before it
	Judges bool // Markdown: good and bad cells are bold
	Least  int  // minimum width in characters
}

// A Kind is the kind of a column's cells.
type Kind uint8

// The kinds of columns.
const (
	Number Kind = iota // aligned right
	Word               // aligned left
	Prose              // aligned left, wrapped if too long
)

// Columns returns columns of one kind with these headings. The first is the key.
func Columns(k Kind, tone Tone, heads ...string) []Column {
	out := make([]Column, len(heads))
	for i, h := range heads {
		out[i] = Column{Kind: k, Head: h, Tone: tone, Key: i == 0}
	}
	return out
}

// Listing returns a table of words with these headings; the last column is prose. Text omits the row of
// headings if all are empty.
func Listing(heads ...string) *Table {
	t := &Table{Columns: Columns(Word, Plain, heads...)}
	t.Columns[len(heads)-1].Kind = Prose
	return t
}

// Row adds a row of plain cells.
func (t *Table) Row(cells ...string) {
	row := make([]Span, len(cells))
	for i, c := range cells {
		row[i] = Plain.Of(c)
	}
	t.Rows = append(t.Rows, row)
}

// prose reports whether a column is prose. Such a table is wrapped, not cut.
func (t *Table) prose() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Kind == Prose })
}

// headed reports whether any column has a heading or a group.
func (t *Table) headed() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Head != "" || c.Group != "" })
}

// widths are the widths of the columns' widest cells, in characters.
func (t *Table) widths() []int {
	out := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = max(c.Least, utf8.RuneCountInString(c.Head))
	}
	for _, r := range t.Rows {
		for i, c := range r {
			out[i] = max(out[i], utf8.RuneCountInString(c.Whole()))
		}
	}
	return out
}

// cut splits the columns, by number, into tables of at most width characters, each with the key columns
// first. Groups stay whole if they fit, and a column marked Beside stays with its neighbour. Width 0 is
// unlimited.
func (t *Table) cut(width int) [][]int {
	widths := t.widths()
	if t.prose() {
		width = 0
	}
	var keys []int
	var groups [][][]int // of units of columns
	for i, c := range t.Columns {
		last := len(groups) - 1
		switch {
		case c.Key:
			keys = append(keys, i)
		case c.Beside && last >= 0:
			unit := len(groups[last]) - 1
			groups[last][unit] = append(groups[last][unit], i)
		case c.Group != "" && last >= 0 && t.Columns[groups[last][0][0]].Group == c.Group:
			groups[last] = append(groups[last], []int{i})
		default:
			groups = append(groups, [][]int{{i}})
		}
	}
	fits := func(columns []int) bool { return width <= 0 || wide(widths, columns) <= width }
	for parts := 1; t.Even && len(groups) > 0; parts++ {
		each := (len(groups) + parts - 1) / parts
		var tables [][]int
		for some := range slices.Chunk(groups, each) {
			tables = append(tables, slices.Concat(keys, slices.Concat(slices.Concat(some...)...)))
		}
		if each == 1 || !slices.ContainsFunc(tables, func(c []int) bool { return !fits(c) }) {
			return tables
		}
	}
	tables := [][]int{slices.Clone(keys)}
	put := func(unit []int) {
		last := &tables[len(tables)-1]
		if all := slices.Concat(*last, unit); fits(all) || len(*last) == len(keys) {
			*last = all
			return
		}
		tables = append(tables, slices.Concat(keys, unit))
	}
	for _, g := range groups {
		if whole := slices.Concat(g...); fits(slices.Concat(keys, whole)) {
			put(whole)
			continue
		}
		for _, unit := range g {
			put(unit)
		}
	}
	return tables
}

// wide is the total width of some columns. An empty column takes no room.
func wide(widths, columns []int) int {
	w := 0
	for n, i := range columns {
		if n > 0 && widths[i] > 0 {
			w += between
		}
		w += widths[i]
	}
	return w
}

// between is the number of blanks between two columns.
const between = 2
