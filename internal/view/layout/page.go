// Package layout renders pages as text, Markdown or HTML. A page is a list of blocks: headings, sentences,
// tables, charts. Its contents are the same in each format.
package layout

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/weirmq/weir/internal/view/plot"
)

// A Page is blocks in order. The zero value is empty. It is not safe for concurrent use. It takes ownership
// of the tables and charts added to it, and removes control characters from all texts.
type Page struct {
	blocks   []Block
	embedded map[string]any // see Embed
}

// A Block is one part of a page. Its Form determines which fields it uses.
type Block struct {
	Form   Form
	Spans  []Span
	Mark   Span   // Item: its mark; Labelled: the label, empty to continue the one above
	Wide   int    // Item: width of the widest mark of its list, in characters
	Under  string // Item: a sentence below it
	Whole  bool   // Labelled: never wrapped in text, since it is to be copied
	Entire bool   // Labelled: wrapped, but never cut for a screen
	Lines  []string
	Table  *Table
	Chart  *Chart
	Inside *Page // Folded, Inset
	Indent int   // Inset: characters
}

// A Form is the kind of a block.
type Form uint8

// The forms of blocks.
const (
	Heading  Form = iota // of a page, or of a run among several
	Chapter              // a heading below a Heading
	Line                 // a sentence
	Status               // a sentence on how far to trust the figures
	Item                 // a list item, after its mark if any
	Bullet               // a list item after a dash
	Labelled             // a sentence beside a label
	Gap                  // a change of subject
	Tabular              // a table
	Note                 // a footnote of one or more lines, the first with its sign
	Drawing              // a chart; described in words in text and Markdown
	Folded               // a page below a title, collapsed in HTML
	Inset                // a page that text indents
	Verbatim             // lines that are never wrapped
	Contents             // a list of the chapters, in HTML only
)

// A Span is a text in one tone. It is also a cell of a table.
type Span struct {
	Text   string
	Tone   Tone
	Link   string // in HTML and Markdown, a path relative to the page that the text leads to
	Beside string // in a table, what the text is said with: a range, say; HTML writes it below
}

// A Tone is the style of a text.
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
func (t Tone) Of(s string) Span { return Span{Text: s, Tone: t} }

// Whole is the text with what stands beside it.
func (s Span) Whole() string {
	if s.Beside == "" {
		return s.Text
	}
	return s.Text + " " + s.Beside
}

// Class is the CSS class of a tone; "" for plain.
func (t Tone) Class() string { return [...]string{"", "strong", "dim", "good", "warn", "bad"}[t] }

// escape is the ECMA-48 sequence that switches a terminal to a tone.
func (t Tone) escape() string {
	return [...]string{"", "\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[1;33m", "\x1b[1;31m"}[t]
}

// Class is the CSS class of the span's tone.
func (s Span) Class() string { return s.Tone.Class() }

// A Chart is a picture with its caption and legend.
type Chart struct {
	plot.Chart
	Caption string
	Legend  []Key
	Timed   *Timed // for charts over time, else nil
}

// A Key is a legend entry: the classes of its lines, and their name. Its lines are those with its number,
// from 1, as their Series.
type Key struct{ Class, Text string }

// Colours is how many lines of a chart can be distinguished by colour, and MostSeries by colour and width.
const (
	Colours    = 6
	MostSeries = 18
)

// Series is the class of the n-th line of a chart, from 1.
func Series(n int) string {
	strokes := [...]string{"", " thin", " broad"}
	return "s" + strconv.Itoa((n-1)%Colours+1) + strokes[(n-1)/Colours%len(strokes)]
}

// Heading adds a heading.
func (p *Page) Heading(s string) { p.Add(Block{Form: Heading, Spans: []Span{Strong.Of(s)}}) }

// Chapter adds a heading below a Heading.
func (p *Page) Chapter(s string) { p.Add(Block{Form: Chapter, Spans: []Span{Plain.Of(s)}}) }

// Contents adds a list of the page's chapters, in HTML only.
func (p *Page) Contents() { p.Add(Block{Form: Contents}) }

// Line adds a sentence.
func (p *Page) Line(spans ...Span) { p.Add(Block{Form: Line, Spans: spans}) }

// Say adds a plain sentence.
func (p *Page) Say(s string) { p.Line(Plain.Of(s)) }

// Item adds a list item.
func (p *Page) Item(spans ...Span) { p.Add(Block{Form: Item, Spans: spans}) }

// Bullet adds a list item after a dash.
func (p *Page) Bullet(s string) { p.Add(Block{Form: Bullet, Spans: []Span{Plain.Of(s)}}) }

// Labelled adds a sentence beside a label. An empty label continues the one above.
func (p *Page) Labelled(label string, spans ...Span) {
	p.Add(Block{Form: Labelled, Mark: Plain.Of(label), Spans: spans})
}

// Note adds a footnote.
func (p *Page) Note(lines ...string) { p.Add(Block{Form: Note, Lines: lines}) }

// Verbatim adds lines that are never wrapped.
func (p *Page) Verbatim(lines ...string) { p.Add(Block{Form: Verbatim, Lines: lines}) }

// Table adds a table.
func (p *Page) Table(t *Table) { p.Add(Block{Form: Tabular, Table: t}) }

// Chart adds a chart.
func (p *Page) Chart(c *Chart) { p.Add(Block{Form: Drawing, Chart: c}) }

// Fold adds a page below a title.
func (p *Page) Fold(inside *Page, title ...Span) {
	p.Add(Block{Form: Folded, Spans: title, Inside: inside})
}

// Inset adds an empty page, which text indents by indent characters, and returns it.
func (p *Page) Inset(indent int) *Page {
	inside := new(Page)
	p.Add(Block{Form: Inset, Indent: indent, Inside: inside})
	return inside
}

// Empty reports whether nothing was added.
func (p *Page) Empty() bool { return len(p.blocks) == 0 }

// Gap separates what follows from what precedes. Consecutive gaps are one.
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

// Add adds a block. Its texts may come from an untrusted file: unprintable characters are replaced.
func (p *Page) Add(b Block) {
	texts := []*string{&b.Mark.Text, &b.Under}
	take := func(spans []Span) {
		for i := range spans {
			texts = append(texts, &spans[i].Text, &spans[i].Beside)
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

// texts returns the texts of a chart that may come from an untrusted file.
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

// Words describes a chart.
func (c *Chart) Words() string { return strings.TrimSpace(c.Title + ": " + c.Desc) }

// Printable makes a text fit for one line of a page: it replaces control sequences and line ends.
func Printable(s string) string {
	return Readable(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))
}

// Readable replaces control sequences, but not tabs and line ends.
func Readable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, s)
}

// Sentence capitalizes s, which is not empty, and ends it with a full stop.
func Sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// Shortened shortens s to at most n characters, n at least 3. It cuts the middle, since the ends of names
// are the most informative.
func Shortened(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 3 {
		return s
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}
