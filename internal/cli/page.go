package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// A page is text for a terminal: paragraphs and tables no wider than it is.
type page struct {
	strings.Builder
	width  int // in characters
	colour bool
}

// Bounds of a page's width, and the width where the terminal does not say.
const (
	narrowest, widest, usualWidth = 60, 120, 100
)

// newPage begins a page for stdout.
func (e *env) newPage(noColor bool) *page {
	p := &page{width: usualWidth, colour: e.color(noColor, false)}
	if e.StdoutTerminal && e.Size != nil {
		if cols, _ := e.Size(); cols > 0 {
			p.width = min(max(cols-1, narrowest), widest)
		}
	}
	return p
}

// line writes a line as it is.
func (p *page) line(s string) { p.WriteString(strings.TrimRight(s, " ") + "\n") }

// head writes a heading after an empty line.
func (p *page) head(s string) { p.line("\n" + p.paint("\x1b[1m", s)) }

// paragraph writes words, indented.
func (p *page) paragraph(indent int, words string) {
	for _, l := range wrapped(words, p.width-indent) {
		p.line(strings.Repeat(" ", indent) + l)
	}
}

// table writes rows, indented, with columns as wide as their widest cell and two
// blanks between them. The last column is wrapped.
func (p *page) table(indent int, rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, c := range r[:len(r)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		left := strings.Repeat(" ", indent)
		for i, c := range r[:len(r)-1] {
			left += c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2)
		}
		at := utf8.RuneCountInString(left)
		for _, l := range wrapped(r[len(r)-1], max(p.width-at, narrowest/2)) {
			p.line(left + l)
			left = strings.Repeat(" ", at)
		}
	}
}

// grid writes rows, indented, whose first column is as wide as its widest cell and
// whose others share the rest and are wrapped, with two blanks between them.
func (p *page) grid(indent int, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	first, others := 0, max(len(rows[0])-1, 1)
	for _, r := range rows {
		first = max(first, utf8.RuneCountInString(r[0]))
	}
	each := max((p.width-indent-first)/others-2, narrowest/6)
	for _, r := range rows {
		cells := [][]string{{r[0]}}
		high := 1
		for _, c := range r[1:] {
			lines := wrapped(c, each)
			cells, high = append(cells, lines), max(high, len(lines))
		}
		for i := range high {
			line := strings.Repeat(" ", indent)
			for column, lines := range cells {
				cell := ""
				if i < len(lines) {
					cell = lines[i]
				}
				width := map[bool]int{true: first, false: each}[column == 0]
				line += cell + strings.Repeat(" ", max(width-utf8.RuneCountInString(cell), 0)+2)
			}
			p.line(line)
		}
	}
}

// paint puts colour on a text. A painted text has no place in a table's cells
// but the last, whose width does not matter.
func (p *page) paint(escape, s string) string {
	if !p.colour {
		return s
	}
	return escape + s + "\x1b[0m"
}

// to writes the page.
func (p *page) to(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// wrapped breaks a text between words into lines of at most width characters; a
// longer word has a line of its own. There is always one line.
func wrapped(s string, width int) []string {
	var lines []string
	line := ""
	for w := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = w
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) <= width:
			line += " " + w
		default:
			lines = append(lines, line)
			line = w
		}
	}
	return append(lines, line)
}
