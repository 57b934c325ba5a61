package report

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A page is what is shown of one or many results, in order. What is on it is
// decided once; a terminal, Markdown and HTML differ in how they write it. Some
// forms of block are for HTML only, and on no other page.
type page struct{ blocks []block }

// A block is a part of a page: the fields that its form names are filled.
type block struct {
	form  form
	mark  span   // item: the word at its head; labelled: the label
	wide  int    // item: how wide the widest mark of its list is
	spans []span // line, status, item, labelled, heading, chapter, fold
	under string // item: a sentence below it
	table *table
	lines []string // note, verbatim
	draw  *figure  // drawing
	fold  *page    // folded
}

type form uint8

const (
	heading  form = iota // of a run among several
	line                 // a line of its own
	status               // the line that says how far the figures can be trusted
	item                 // of a list; its mark first, when it has one
	labelled             // a line under a label, which is empty where the label above goes on
	gap                  // what follows is about something else
	tabular
	note // a footnote of one or more lines, the first with its sign

	chapter  // HTML: a heading within a run
	drawing  // HTML: a chart
	folded   // HTML: a page that is opened by its title
	verbatim // HTML: lines as they are
)

// A span is a text and how it is painted.
type span struct{ text, paint string }

func plain(s string) span { return span{text: s} }

func (p *page) line(spans ...span)   { p.add(block{form: line, spans: spans}) }
func (p *page) item(spans ...span)   { p.add(block{form: item, spans: spans}) }
func (p *page) note(lines ...string) { p.add(block{form: note, lines: lines}) }
func (p *page) tabular(t *table)     { p.add(block{form: tabular, table: t}) }
func (p *page) heading(s string)     { p.add(block{form: heading, spans: []span{{s, bold}}}) }
func (p *page) figure(f *figure)     { p.add(block{form: drawing, draw: f}) }

func (p *page) folded(title string, inside *page) {
	p.add(block{form: folded, spans: []span{plain(title)}, fold: inside})
}

// gap stands once between two things, also where the first of them says nothing.
func (p *page) gap() {
	if n := len(p.blocks); n == 0 || p.blocks[n-1].form != gap {
		p.add(block{form: gap})
	}
}

func (p *page) labelled(label string, spans ...span) {
	p.add(block{form: labelled, mark: plain(label), spans: spans})
}

// add puts a block at the end. What it says may come from a stranger's file: a
// terminal gets nothing of it but what can be read.
func (p *page) add(b block) {
	b.mark.text, b.under = printable(b.mark.text), printable(b.under)
	for i := range b.spans {
		b.spans[i].text = printable(b.spans[i].text)
	}
	for i := range b.lines {
		b.lines[i] = printable(b.lines[i])
	}
	if b.table != nil {
		for _, r := range b.table.rows {
			for i := range r {
				r[i].text = printable(r[i].text)
			}
		}
		b.table.measure()
	}
	if b.draw != nil {
		b.draw.printable()
	}
	p.blocks = append(p.blocks, b)
}

// printable replaces what moves a terminal's cursor or paints, a line's end by a
// space.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return ' '
		case !unicode.IsPrint(c):
			return unicode.ReplacementChar
		}
		return c
	}, s)
}

// A table has its columns in groups that stand under one word and stay
// together.
type table struct {
	columns []tableColumn
	rows    [][]cell // as many cells as columns
	widths  []int    // of the columns; filled when the table is on its page
	words   bool     // HTML: of sentences, which are folded; never cut
}

type tableColumn struct {
	group, head string
	paint       string // of the head
	left        bool   // aligned to the left; to the right otherwise
	key         bool   // says what a row is: repeated where a table is cut in two
	beside      bool   // belongs to the column before it
}

// A cell is a text in a table and how it is painted.
type cell struct{ text, paint string }

// measure fills the widths.
func (t *table) measure() {
	t.widths = make([]int, len(t.columns))
	for i, c := range t.columns {
		t.widths[i] = utf8.RuneCountInString(c.head)
	}
	for _, r := range t.rows {
		for i, c := range r {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c.text))
		}
	}
}

// cut distributes the columns, by number, over tables of at most width
// characters, each with the key columns first. Groups are kept whole where they
// fit, and a column with what stands beside it always. Width 0 is boundless.
func (t *table) cut(width int) [][]int {
	var keys []int
	var groups [][][]int // of units of columns
	for i, c := range t.columns {
		last := len(groups) - 1
		switch {
		case c.key:
			keys = append(keys, i)
		case c.beside && last >= 0:
			unit := len(groups[last]) - 1
			groups[last][unit] = append(groups[last][unit], i)
		case c.group != "" && last >= 0 && t.columns[groups[last][0][0]].group == c.group:
			groups[last] = append(groups[last], []int{i})
		default:
			groups = append(groups, [][]int{{i}})
		}
	}
	fits := func(columns []int) bool { return width <= 0 || t.wide(columns) <= width }
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

// wide is how wide a table of some columns is.
func (t *table) wide(columns []int) int {
	w := 0
	for n, i := range columns {
		if n > 0 && t.widths[i] > 0 {
			w += 2
		}
		w += t.widths[i]
	}
	return w
}

// middle shortens s to n characters by what is in its middle.
func middle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 3 {
		return s
	}
	head := (n - 1) / 2
	return strings.Join([]string{string(r[:head]), string(r[len(r)-(n-1-head):])}, "…")
}
