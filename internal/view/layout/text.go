package layout

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Text controls how pages become text.
type Text struct {
	Width  int  // in characters: wider tables are cut; 0: unlimited
	Fold   bool // wrap longer sentences and prose
	Colour bool // use ECMA-48 escape sequences
	Brief  int  // with Fold, limit texts to this many lines, cut at the end of a sentence or with …, and drop table columns that do not fit; 0: no limit
	Advice int  // with Brief, the limit below an Item
}

// Height is how many terminal lines a page takes, with long lines wrapped.
func (t Text) Height(p *Page) int {
	t.Colour = false
	n := 0
	for line := range strings.Lines(t.Page(p)) {
		n++
		if t.Width > 0 {
			n += max(0, Length(strings.TrimSuffix(line, "\n"))-1) / t.Width
		}
	}
	return n
}

// Usual is the width of text if none is known: files and pipes are read in editors, logs and messages.
const Usual = 80

// narrowest and widest bound the width at which sentences are wrapped on a terminal.
const narrowest, widest = 39, 120

// leastProse is the least room for all columns of prose together, however narrow the page.
const leastProse = 22

// Terminal returns a Text for a terminal with that many columns; 0 if unknown. The last column stays free.
func Terminal(columns int, colour bool) Text {
	t := Text{Width: Usual, Fold: true, Colour: colour}
	if columns > 0 {
		t.Width = min(max(columns-1, narrowest), widest)
	}
	return t
}

// labelWidth is the width of a label, in characters.
const labelWidth = 12

// Page returns a page as text.
func (t Text) Page(p *Page) string {
	var b strings.Builder
	write := func(before string, column, most int, spans []Span) {
		b.WriteString(before + strings.Join(t.briefly(spans, t.Width-column, most), "\n"+blanks(column)) + "\n")
	}
	say := func(before string, column int, spans []Span) { write(before, column, t.Brief, spans) }
	for _, x := range p.blocks {
		switch x.Form {
		case Gap:
			b.WriteString("\n")
		case Chapter:
			say("", 0, []Span{Strong.Of(x.Spans[0].Text)})
		case Heading, Line, Status:
			say("", 0, x.Spans)
		case Bullet:
			say("- ", 2, x.Spans)
		case Item:
			mark, column := "", 2
			if n := Length(x.Mark.Text); n > 0 {
				wide := max(x.Wide, n)
				mark = "  " + t.paint(x.Mark.Tone, x.Mark.Text) + blanks(wide-n)
				column += wide + 2
			}
			say(mark+"  ", column, x.Spans)
			if x.Under != "" {
				write(blanks(column), column, max(t.Brief, t.Advice), []Span{Plain.Of(x.Under)})
			}
		case Labelled:
			label := t.paint(x.Mark.Tone, x.Mark.Text) + blanks(labelWidth-Length(x.Mark.Text))
			if x.Whole {
				b.WriteString(label + Text{Colour: t.Colour}.folded(x.Spans, 0)[0] + "\n")
				break
			}
			most := t.Brief
			if x.Entire {
				most = 0
			}
			write(label, labelWidth, most, x.Spans)
		case Tabular:
			parts := x.Table.cut(t.Width)
			if t.crowded(x.Table, parts) {
				parts = x.Table.cut(0)
			}
			for i, columns := range parts {
				if i > 0 && t.Brief > 0 {
					break
				}
				if i > 0 {
					b.WriteString("\n")
				}
				if t.crowded(x.Table, parts) || t.stacks(x.Table, columns) {
					b.WriteString(t.stack(x.Table, columns))
					continue
				}
				b.WriteString(t.table(x.Table, columns))
			}
		case Note:
			column := 2
			if len(x.Lines) > 1 {
				column = noteIndent(x.Lines[0])
			}
			for i, l := range x.Lines {
				before := ""
				if i > 0 {
					before = blanks(column)
				}
				say(before, column, []Span{Faint.Of(l)})
			}
		case Drawing:
			say("", 0, []Span{Plain.Of(x.Chart.Words())})
		case Folded:
			say("", 0, x.Spans)
			b.WriteString(t.Page(x.Inside))
		case Inset:
			inner, indent := t, x.Indent
			if t.Fold && t.Width < narrow {
				indent = min(indent, narrowInset)
			}
			inner.Width = max(0, t.Width-indent)
			for line := range strings.Lines(inner.Page(x.Inside)) {
				if line != "\n" {
					line = blanks(indent) + line
				}
				b.WriteString(line)
			}
		case Verbatim:
			for _, l := range x.Lines {
				b.WriteString(strings.TrimRight(l, " ") + "\n")
			}
		}
	}
	return b.String()
}

// Length is the number of characters in a text.
func Length(s string) int { return utf8.RuneCountInString(s) }

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

func (t Text) paint(tone Tone, s string) string {
	if !t.Colour || s == "" || tone == Plain {
		return s
	}
	return tone.escape() + s + "\x1b[0m"
}

// folded returns coloured texts as lines of at most width characters, wrapped between words; at least one
// line. A longer word has a line of its own. Without Fold text is one line, so that it can be searched for.
func (t Text) folded(spans []Span, width int) []string {
	lines, at, ended := []string{""}, 0, ""
	for _, s := range spans {
		if !t.Fold {
			lines[0] += t.paint(s.Tone, s.Text)
			continue
		}
		text := ""
		for i, word := range words(s.Text) {
			n := Length(word)
			switch {
			case i == 0 && n > 0 && at+n > width && strings.HasSuffix(ended, " "):
				last := &lines[len(lines)-1]
				*last = strings.TrimRight(*last, " ")
				lines, at = append(lines, ""), 0
			case i == 0: // continues where the text before it ended
			case at+1+n > width && at > 0:
				lines[len(lines)-1] += t.paint(s.Tone, text)
				lines, text, at = append(lines, ""), "", 0
			default:
				text += " "
				at++
			}
			text += word
			at += n
		}
		lines[len(lines)-1] += t.paint(s.Tone, text)
		ended = s.Text
	}
	return lines
}

// briefly is folded, limited to most lines: it drops the last sentences, and cuts a too long first one with
// ….
func (t Text) briefly(spans []Span, width, most int) []string {
	lines := t.folded(spans, width)
	if !t.Fold || t.Brief == 0 || most == 0 || len(lines) <= most {
		return lines
	}
	shorter, last := slices.Clone(spans), len(spans)-1
	for i := strings.LastIndex(spans[last].Text, ". "); i >= 0; i = strings.LastIndex(spans[last].Text[:i], ". ") {
		shorter[last].Text = spans[last].Text[:i+1]
		if lines := t.folded(shorter, width); len(lines) <= most {
			return lines
		}
	}
	lines = t.folded(spans, width-1)[:most]
	lines[most-1] += "…"
	return lines
}

// units matches words that stay with the number before them.
var units = regexp.MustCompile(`^(ns|µs|ms|s|min|h|d|%|B|[KMG]i?B|[KMG]?B/s|cores?)[.,;:)]*$`)

// words splits a text where it may be wrapped. A number stays with its unit.
func words(s string) []string {
	var out []string
	for i, w := range strings.Split(s, " ") {
		if last := len(out) - 1; i > 0 && units.MatchString(w) && out[last] != "" && strings.ContainsAny(out[last][len(out[last])-1:], "0123456789") {
			out[last] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// noteIndent is the indent of a footnote's further lines: after its first colon.
func noteIndent(first string) int {
	head, _, ok := strings.Cut(first, ": ")
	if !ok {
		return 2
	}
	return Length(head) + 2
}

// table writes some columns of a table, each as wide as its widest cell, below the names of the groups if
// there are any.
func (t Text) table(x *Table, columns []int) string {
	widths := t.shared(x, columns)
	groups, heads := make([]Span, len(x.Columns)), make([]Span, len(x.Columns))
	grouped, above := false, ""
	for n, i := range columns {
		c := x.Columns[i]
		if n == 0 || c.Group != above {
			groups[i] = Strong.Of(c.Group)
		}
		above = c.Group
		grouped = grouped || c.Group != ""
		heads[i] = c.Tone.Of(c.Head)
	}
	var b strings.Builder
	if grouped {
		b.WriteString(t.row(x, widths, columns, groups))
	}
	if x.headed() {
		b.WriteString(t.row(x, widths, columns, heads))
	}
	for _, r := range x.Rows {
		b.WriteString(t.row(x, widths, columns, r))
	}
	return b.String()
}

// shared returns the widths of columns, where prose shares what the others leave.
func (t Text) shared(x *Table, columns []int) []int {
	widths := x.widths()
	of := slices.DeleteFunc(slices.Clone(columns), func(i int) bool { return x.Columns[i].Kind != Prose })
	if !t.Fold || t.Width <= 0 {
		return widths
	}
	left := t.Width
	for n, i := range columns {
		if n > 0 {
			left -= between
		}
		if x.Columns[i].Kind != Prose {
			left -= widths[i]
		}
	}
	for _, i := range of {
		widths[i] = max(left, leastProse) / len(of)
	}
	return widths
}

// row writes cells in as many lines as the longest needs.
func (t Text) row(x *Table, widths, columns []int, cells []Span) string {
	lines := make([][]string, len(cells)) // coloured
	plain := make([][]string, len(cells))
	high := 1
	for _, i := range columns {
		lines[i], plain[i] = []string{t.paint(cells[i].Tone, cells[i].Whole())}, []string{cells[i].Whole()}
		if x.Columns[i].Kind == Prose {
			words := []Span{cells[i].Tone.Of(strings.Join(strings.Fields(cells[i].Text), " "))}
			lines[i] = t.folded(words, widths[i])
			plain[i] = Text{Fold: t.Fold}.folded(words, widths[i])
		}
		high = max(high, len(lines[i]))
	}
	var b strings.Builder
	for n := range high {
		line := ""
		for at, i := range columns {
			if at > 0 && widths[i] > 0 {
				line += blanks(between)
			}
			text, pad := "", blanks(widths[i])
			if n < len(lines[i]) {
				text, pad = lines[i][n], blanks(widths[i]-Length(plain[i][n]))
			}
			if x.Columns[i].Kind == Number {
				text, pad = pad, text
			}
			line += text + pad
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
