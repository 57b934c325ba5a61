package layout

import (
	"slices"
	"unicode/utf8"
)

// A Table has its columns in groups. A group stands under one word and stays together.
type Table struct {
	Columns []Column
	Rows    [][]Span // as many cells as columns
	Even    bool     // where it is cut, each part has about as many columns
}

// A Column is one of a table.
type Column struct {
	Kind   Kind
	Group  string // adjacent columns of one group have one name above them
	Head   string
	Tone   Tone // of the head
	Key    bool // says what a row is: repeated where a table is cut in two
	Beside bool // belongs to the column before it
	Judges bool // Markdown: what is good or bad is strong
	Least  int  // characters that the column has at least
}

// A Kind says what the cells of a column are.
type Kind uint8

// The kinds of columns.
const (
	Number Kind = iota // aligned right
	Word               // aligned left
	Prose              // aligned left, and broken between words where it is too long
)

// Columns returns columns of one kind with these heads. The first is the key.
func Columns(k Kind, tone Tone, heads ...string) []Column {
	out := make([]Column, len(heads))
	for i, h := range heads {
		out[i] = Column{Kind: k, Head: h, Tone: tone, Key: i == 0}
	}
	return out
}

// Listing is a table of words under these heads, the last column of prose. Text has no row
// of heads where all are empty.
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

// prose reports whether a column is of prose. Such a table is broken, not cut.
func (t *Table) prose() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Kind == Prose })
}

// headed reports whether any column has a head or a group.
func (t *Table) headed() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Head != "" || c.Group != "" })
}

// widths are those of the columns' widest cells, in characters.
func (t *Table) widths() []int {
	out := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = max(c.Least, utf8.RuneCountInString(c.Head))
	}
	for _, r := range t.Rows {
		for i, c := range r {
			out[i] = max(out[i], utf8.RuneCountInString(c.Text))
		}
	}
	return out
}

// cut deals the columns, by number, to tables of at most width characters, each with the
// key columns first. Groups stay whole where they fit. A column always stays with what
// stands beside it. Width 0 is boundless.
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

// wide is how wide some columns are beside each other. An empty one takes no room.
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

// between is how many blanks stand between two columns.
const between = 2
