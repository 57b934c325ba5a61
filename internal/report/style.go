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

// A painter puts colour on texts, or none.
type painter bool

func (p painter) paint(code, s string) string {
	if !p || s == "" || code == "" {
		return s
	}
	return code + s + reset
}

// A cell is a text in a table and how it is painted.
type cell struct {
	text  string
	paint string
	left  bool // aligned to the left; to the right otherwise
}

// table writes rows with columns as wide as their widest cell, two spaces
// between them.
func (p painter) table(rows [][]cell) string {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			if i > 0 && widths[i] > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			if c.left {
				line.WriteString(p.paint(c.paint, c.text) + pad)
			} else {
				line.WriteString(pad + p.paint(c.paint, c.text))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
