// Package textpage lays text out for a terminal: paragraphs and tables no wider than it
// is.
package textpage

import (
	"io"
	"strings"
	"unicode/utf8"
)

// A Page is text for a terminal. One goroutine uses it.
type Page struct {
	strings.Builder
	Width  int  // in characters, at least 60
	Colour bool // control sequences paint text
}

// Bounds of a page's width, and the width where the terminal does not say.
const (
	narrowest, widest, usual = 60, 120, 100
)

// New begins a page for a terminal of so many columns, 0 where that is not known.
func New(cols int, colour bool) *Page {
	p := &Page{Width: usual, Colour: colour}
	if cols > 0 {
		p.Width = min(max(cols-1, narrowest), widest)
	}
	return p
}

// Line writes a line as it is.
func (p *Page) Line(s string) { p.WriteString(strings.TrimRight(s, " ") + "\n") }

// Head writes a heading after an empty line.
func (p *Page) Head(s string) { p.Line("\n" + p.Paint("\x1b[1m", s)) }

// Paragraph writes words, indented.
func (p *Page) Paragraph(indent int, words string) {
	for _, l := range Wrapped(words, p.Width-indent) {
		p.Line(strings.Repeat(" ", indent) + l)
	}
}

// Table writes rows, indented, with columns as wide as their widest cell and two
// blanks between them. The last column is wrapped.
func (p *Page) Table(indent int, rows [][]string) {
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
		for _, l := range Wrapped(r[len(r)-1], max(p.Width-at, narrowest/2)) {
			p.Line(left + l)
			left = strings.Repeat(" ", at)
		}
	}
}

// Grid writes rows, indented, with two blanks between columns. The first column is as
// wide as its widest cell; the others share the rest and are wrapped.
func (p *Page) Grid(indent int, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	first, others := 0, max(len(rows[0])-1, 1)
	for _, r := range rows {
		first = max(first, utf8.RuneCountInString(r[0]))
	}
	each := max((p.Width-indent-first)/others-2, narrowest/6)
	for _, r := range rows {
		cells := [][]string{{r[0]}}
		high := 1
		for _, c := range r[1:] {
			lines := Wrapped(c, each)
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
			p.Line(line)
		}
	}
}

// Paint puts colour on a text. In a table only the last cell of a row may be painted:
// its width does not matter.
func (p *Page) Paint(escape, s string) string {
	if !p.Colour {
		return s
	}
	return escape + s + "\x1b[0m"
}

// To writes the page.
func (p *Page) To(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// Wrapped breaks a text between words into lines of at most width characters; a
// longer word has a line of its own. There is always one line.
func Wrapped(s string, width int) []string {
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
