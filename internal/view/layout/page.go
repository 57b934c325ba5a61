// Package layout lays out what people read. A page is blocks: headings, sentences, tables,
// charts. What stands on a page is decided once. Text, Markdown and HTML differ in how
// they write it.
package layout

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/weirmq/weir/internal/view/plot"
)

// A Page is blocks in order. The zero value is empty. One goroutine uses it. It takes over
// the tables and charts that it is given, and filters control characters out of all texts.
type Page struct {
	blocks   []Block
	embedded map[string]any // see Embed
}

// A Block is one part of a page. Its form says which fields it uses.
type Block struct {
	Form   Form
	Spans  []Span
	Mark   Span   // Item: the word before it; Labelled: the label, empty where the one above goes on
	Wide   int    // Item: characters of the widest mark of its list
	Under  string // Item: a sentence below it
	Whole  bool   // Labelled: text never breaks it, since it is to be copied
	Lines  []string
	Table  *Table
	Chart  *Chart
	Inside *Page // Folded, Inset
	Indent int   // Inset: characters
}

// A Form says what a block is.
type Form uint8

// The forms of blocks.
const (
	Heading  Form = iota // of a page, or of a run among several
	Chapter              // a heading below a Heading
	Line                 // a sentence
	Status               // a sentence that says how far the figures can be trusted
	Item                 // one of a list, after its mark if it has one
	Bullet               // one of a list, after a dash
	Labelled             // a sentence beside a label
	Gap                  // what follows is about something else
	Tabular              // a table
	Note                 // a footnote of one or more lines, the first with its sign
	Drawing              // a chart; text and Markdown say it in words
	Folded               // a page below a title, which HTML opens on request
	Inset                // a page that text indents
	Verbatim             // lines that are never broken
	Contents             // a list of the chapters, in HTML alone: text and Markdown are scrolled
)

// A Span is a text in one tone. It is also a cell of a table.
type Span struct {
	Text string
	Tone Tone
}

// A Tone is how a text looks.
type Tone uint8

// The tones.
const (
	Plain Tone = iota
	Strong
	Faint
	Good
	Doubtful
	Bad
)

// Of returns a text in this tone.
func (t Tone) Of(s string) Span { return Span{s, t} }

// Class names a tone in the style of HTML pages; "" for plain.
func (t Tone) Class() string { return [...]string{"", "strong", "dim", "good", "warn", "bad"}[t] }

// escape is the sequence of ECMA-48 that a terminal switches to a tone with.
func (t Tone) escape() string {
	return [...]string{"", "\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[1;33m", "\x1b[1;31m"}[t]
}

// Class is that of the span's tone.
func (s Span) Class() string { return s.Tone.Class() }

// A Chart is a picture with its caption, and with what its colours mean.
type Chart struct {
	plot.Chart
	Caption string
	Legend  []Key
	Timed   *Timed // over time; nil for other charts
}

// A Key is a line of a chart by its classes, and its name. The lines of the chart that have
// its number as their Series belong to it, the first being 1.
type Key struct{ Class, Text string }

// MostSeries is how many lines of a chart can be told apart: by colour, and those of one
// colour by their strokes.
const MostSeries = 18

// Series is the class of the n-th line of a chart, the first being 1.
func Series(n int) string {
	const colours = 6
	strokes := [...]string{"", " dots", " long"}
	return "s" + strconv.Itoa((n-1)%colours+1) + strokes[(n-1)/colours%len(strokes)]
}

// Heading adds a heading.
func (p *Page) Heading(s string) { p.Add(Block{Form: Heading, Spans: []Span{Strong.Of(s)}}) }

// Chapter adds a heading below a Heading.
func (p *Page) Chapter(s string) { p.Add(Block{Form: Chapter, Spans: []Span{Plain.Of(s)}}) }

// Contents adds a list of the page's chapters, which only HTML has.
func (p *Page) Contents() { p.Add(Block{Form: Contents}) }

// Line adds a sentence.
func (p *Page) Line(spans ...Span) { p.Add(Block{Form: Line, Spans: spans}) }

// Say adds a plain sentence.
func (p *Page) Say(s string) { p.Line(Plain.Of(s)) }

// Item adds one of a list.
func (p *Page) Item(spans ...Span) { p.Add(Block{Form: Item, Spans: spans}) }

// Bullet adds one of a list, after a dash.
func (p *Page) Bullet(s string) { p.Add(Block{Form: Bullet, Spans: []Span{Plain.Of(s)}}) }

// Labelled adds a sentence beside a label. An empty label goes on with the one above.
func (p *Page) Labelled(label string, spans ...Span) {
	p.Add(Block{Form: Labelled, Mark: Plain.Of(label), Spans: spans})
}

// Note adds a footnote.
func (p *Page) Note(lines ...string) { p.Add(Block{Form: Note, Lines: lines}) }

// Verbatim adds lines that are never broken.
func (p *Page) Verbatim(lines ...string) { p.Add(Block{Form: Verbatim, Lines: lines}) }

// Table adds a table.
func (p *Page) Table(t *Table) { p.Add(Block{Form: Tabular, Table: t}) }

// Chart adds a chart.
func (p *Page) Chart(c *Chart) { p.Add(Block{Form: Drawing, Chart: c}) }

// Fold adds a page below a title.
func (p *Page) Fold(inside *Page, title ...Span) {
	p.Add(Block{Form: Folded, Spans: title, Inside: inside})
}

// Inset adds an empty page, which text indents by so many characters, and returns it.
func (p *Page) Inset(indent int) *Page {
	inside := new(Page)
	p.Add(Block{Form: Inset, Indent: indent, Inside: inside})
	return inside
}

// Gap separates what follows from what is there. Several in a row are one.
func (p *Page) Gap() {
	if n := len(p.blocks); n == 0 || p.blocks[n-1].Form != Gap {
		p.Add(Block{Form: Gap})
	}
}

// Append adds the blocks of another page.
func (p *Page) Append(of *Page) {
	for _, b := range of.blocks {
		if b.Form == Gap {
			p.Gap()
			continue
		}
		p.blocks = append(p.blocks, b)
	}
}

// Add adds a block. Its texts may come from a stranger's file: only what can be read of
// them stays.
func (p *Page) Add(b Block) {
	texts := []*string{&b.Mark.Text, &b.Under}
	take := func(spans []Span) {
		for i := range spans {
			texts = append(texts, &spans[i].Text)
		}
	}
	take(b.Spans)
	for i := range b.Lines {
		texts = append(texts, &b.Lines[i])
	}
	if t := b.Table; t != nil {
		for i := range t.Columns {
			texts = append(texts, &t.Columns[i].Group, &t.Columns[i].Head)
		}
		for _, r := range t.Rows {
			take(r)
		}
	}
	if b.Chart != nil {
		texts = append(texts, b.Chart.texts()...)
	}
	for _, s := range texts {
		*s = Printable(*s)
	}
	p.blocks = append(p.blocks, b)
}

// texts are those of a chart that may come from a stranger's file.
func (c *Chart) texts() []*string {
	out := []*string{&c.Caption, &c.Title, &c.Desc}
	for _, a := range []*plot.Axis{&c.X, &c.Y} {
		out = append(out, &a.Label)
		for i := range a.Ticks {
			out = append(out, &a.Ticks[i].Text)
		}
	}
	for i := range c.Legend {
		out = append(out, &c.Legend[i].Text)
	}
	for _, l := range c.Lines {
		for i := range l.Points {
			out = append(out, &l.Points[i].Text)
		}
	}
	for i := range c.Marks {
		out = append(out, &c.Marks[i].Text)
	}
	for i := range c.Under {
		out = append(out, &c.Under[i].Text)
	}
	for i := range c.Rules {
		out = append(out, &c.Rules[i].Text)
	}
	for i := range c.Columns {
		out = append(out, &c.Columns[i].Text)
	}
	for i := range c.Spans {
		out = append(out, &c.Spans[i].Text)
	}
	return out
}

// words say what a chart shows.
func (c *Chart) words() string { return strings.TrimSpace(c.Title + ": " + c.Desc) }

// Printable makes a text fit for one line of a page: what moves a cursor or paints is
// replaced, and so is what ends a line.
func Printable(s string) string {
	return Readable(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))
}

// Readable replaces what moves a cursor or paints, but for tabs and the ends of lines.
func Readable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, s)
}

// Sentence begins s, which is not empty, with a capital and ends it with a full stop.
func Sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// Shortened returns s with at most n characters, n at least 3. A longer one loses its
// middle, since the ends of names tell most.
func Shortened(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 3 {
		return s
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}
