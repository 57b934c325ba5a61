package report

import (
	"strings"
	"unicode/utf8"
)

// Escape sequences of ECMA-48.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[1;31m"
	green  = "\x1b[1;32m"
	yellow = "\x1b[1;33m"
)

// A terminal writes pages as text.
type terminal struct {
	colour bool
	width  int  // tables wider than this are cut; 0: none is
	folds  bool // sentences longer than that are written in several lines
}

func (t terminal) paint(code, s string) string {
	if !t.colour || s == "" || code == "" {
		return s
	}
	return code + s + reset
}

// spans writes texts that begin at a column, over more lines where they are
// longer than a terminal is wide: each begins at that column too. In a file a
// line stays one, for who looks for it.
func (t terminal) spans(spans []span, column int) string {
	var b strings.Builder
	if !t.folds {
		for _, s := range spans {
			b.WriteString(t.paint(s.paint, s.text))
		}
		return b.String()
	}
	at := column
	for _, s := range spans {
		text := ""
		for i, word := range strings.Split(s.text, " ") {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0: // goes on where the text before it ended
			case at+1+n > t.width && at > column:
				b.WriteString(t.paint(s.paint, text) + "\n" + strings.Repeat(" ", column))
				text, at = "", column
			default:
				text += " "
				at++
			}
			text += word
			at += n
		}
		b.WriteString(t.paint(s.paint, text))
	}
	return b.String()
}

// page returns a page as text.
func (t terminal) page(p *page) string {
	var b strings.Builder
	for _, x := range p.blocks {
		switch x.form {
		case gap:
			b.WriteString("\n")
		case line, status, heading:
			b.WriteString(t.spans(x.spans, 0) + "\n")
		case item:
			indent := 2
			if x.mark.text != "" {
				x.wide = max(x.wide, utf8.RuneCountInString(x.mark.text))
				pad := strings.Repeat(" ", x.wide-utf8.RuneCountInString(x.mark.text))
				b.WriteString("  " + t.paint(x.mark.paint, x.mark.text) + pad)
				indent += x.wide + 2
			}
			b.WriteString("  " + t.spans(x.spans, indent) + "\n")
			if x.under != "" {
				b.WriteString(strings.Repeat(" ", indent) + t.spans([]span{plain(x.under)}, indent) + "\n")
			}
		case labelled:
			const wide = 12
			b.WriteString(x.mark.text + strings.Repeat(" ", max(0, wide-utf8.RuneCountInString(x.mark.text))) + t.spans(x.spans, wide) + "\n")
		case tabular:
			for i, columns := range x.table.cut(t.width) {
				if i > 0 {
					b.WriteString("\n")
				}
				b.WriteString(t.table(x.table, columns))
			}
		case note:
			text := x.lines[0]
			under := strings.Repeat(" ", noteIndent(text))
			for _, l := range x.lines[1:] {
				text += "\n" + under + l
			}
			b.WriteString(t.paint(dim, text) + "\n")
		}
	}
	return b.String()
}

// noteIndent is where a footnote's further lines begin: after its first colon.
func noteIndent(first string) int {
	head, _, ok := strings.Cut(first, ": ")
	if !ok {
		return 2
	}
	return utf8.RuneCountInString(head) + 2
}

// table writes some columns of a table, as wide as their widest cells, two
// spaces between them, and above them the names of the groups if there are any.
func (t terminal) table(x *table, columns []int) string {
	groups, heads := make([]cell, len(x.columns)), make([]cell, len(x.columns))
	grouped, above := false, ""
	for n, i := range columns {
		c := x.columns[i]
		if n == 0 || c.group != above {
			groups[i] = cell{c.group, bold}
		}
		above = c.group
		grouped = grouped || c.group != ""
		heads[i] = cell{c.head, c.paint}
	}
	rows := x.rows
	var b strings.Builder
	if grouped {
		b.WriteString(t.row(x, columns, groups))
	}
	b.WriteString(t.row(x, columns, heads))
	for _, r := range rows {
		b.WriteString(t.row(x, columns, r))
	}
	return b.String()
}

func (t terminal) row(x *table, columns []int, cells []cell) string {
	var b strings.Builder
	for n, i := range columns {
		if n > 0 && x.widths[i] > 0 {
			b.WriteString("  ")
		}
		c := cells[i]
		pad := strings.Repeat(" ", max(0, x.widths[i]-utf8.RuneCountInString(c.text)))
		if x.columns[i].left {
			b.WriteString(t.paint(c.paint, c.text) + pad)
		} else {
			b.WriteString(pad + t.paint(c.paint, c.text))
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}
