package sheet

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/layout"
	"github.com/weirmq/weir/internal/textpage"
)

// Text writes a sheet on a page for a terminal.
func (s *Sheet) Text(w io.Writer, p *textpage.Page) {
	for i, b := range s.blocks {
		// A heading brings its own line, and a table follows right below one.
		titled := i > 0 && s.blocks[i-1].heading != "" && s.blocks[i-1].words == "" && len(b.rows) > 0
		if i > 0 && b.heading == "" && !titled {
			p.Line("")
		}
		if b.heading != "" {
			p.Head(b.heading)
		}
		if b.words != "" {
			p.Paragraph(0, b.words)
			if len(b.rows) > 0 {
				p.Line("")
			}
		}
		for _, item := range b.items {
			for n, l := range textpage.Wrapped(item, p.Width-2) {
				mark := "- "
				if n > 0 {
					mark = "  "
				}
				p.Line(mark + l)
			}
		}
		if len(b.rows) > 0 {
			table(p, b)
		}
	}
	_ = p.To(w) // a buffer
}

// table writes a table with columns as wide as their widest cells. One that is wider than the page gets its last columns below, each with the first
// again.
func table(p *textpage.Page, b block) {
	widths := make([]int, len(b.head))
	for _, r := range append([][]string{b.head}, b.rows...) {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for n, columns := range cutColumns(widths, p.Width) {
		if n > 0 {
			p.Line("")
		}
		for n, r := range append([][]string{b.head}, b.rows...) {
			var cells []string
			for at, i := range columns {
				pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(r[i]))
				text := r[i]
				switch {
				case text == "":
				case n == 0:
					text = p.Paint("\x1b[1m", text)
				case i == len(r)-1 && b.colours != nil && b.colours[n-1] != "":
					text = p.Paint(b.colours[n-1], text)
				}
				switch {
				case !b.left[i]:
					text = pad + text
				case at < len(columns)-1:
					text += pad
				}
				cells = append(cells, text)
			}
			p.Line(strings.Join(cells, "  "))
		}
	}
}

// cutColumns deals columns of these widths to tables of at most width
// characters, the first column to each.
func cutColumns(widths []int, width int) [][]int {
	tables := [][]int{{0}}
	at := widths[0]
	for i := 1; i < len(widths); i++ {
		last := &tables[len(tables)-1]
		if at+2+widths[i] > width && len(*last) > 1 {
			tables = append(tables, []int{0})
			last = &tables[len(tables)-1]
			at = widths[0]
		}
		*last = append(*last, i)
		at += 2 + widths[i]
	}
	return tables
}

// Markdown writes a sheet in GitHub's Markdown.
func (s *Sheet) Markdown(w io.Writer) {
	var b strings.Builder
	b.WriteString("# Comparison\n")
	for _, x := range s.blocks {
		b.WriteString("\n")
		if x.heading != "" {
			b.WriteString("## " + markdownText(x.heading) + "\n")
		}
		if x.words != "" {
			if x.heading != "" {
				b.WriteString("\n")
			}
			b.WriteString(markdownText(x.words) + "\n")
		}
		if x.words != "" && len(x.items) > 0 {
			b.WriteString("\n")
		}
		for _, item := range x.items {
			b.WriteString("- " + markdownText(item) + "\n")
		}
		if len(x.rows) == 0 {
			continue
		}
		row := func(cells []string) {
			for _, c := range cells {
				b.WriteString("| " + markdownText(c) + " ")
			}
			b.WriteString("|\n")
		}
		row(x.head)
		for _, left := range x.left {
			b.WriteString(map[bool]string{true: "| :--- ", false: "| ---: "}[left])
		}
		b.WriteString("|\n")
		for i, r := range x.rows {
			cells := slices.Clone(r)
			if x.colours != nil && (x.colours[i] == red || x.colours[i] == green) {
				cells[len(cells)-1] = "\x00" + cells[len(cells)-1] + "\x00"
			}
			row(cells)
		}
	}
	_, _ = io.WriteString(w, strings.ReplaceAll(b.String(), "\x00", "**")) // a buffer
}

// markdownText makes a text mean itself.
func markdownText(s string) string { return layout.Escape(s) }
