package layout

import (
	"cmp"
	"fmt"
	"html"
	"strings"
)

// A File is a file that belongs to a page in Markdown.
type File struct{ Name, Text string }

// Pictured returns a page as the Markdown file base.md, and the pictures that it shows: files beside it.
func Pictured(p *Page, base string) (files []File) {
	m := Markdown{picture: func(c *Chart) string {
		name := fmt.Sprintf("%s-%d.svg", base, len(files)+1)
		files = append(files, File{name, c.picture()})
		return name
	}}
	text := m.Page(p)
	return append(files, File{base + ".md", text})
}

// picture returns the chart as an SVG file: in light and dark, with its title and its legend above it.
func (c *Chart) picture() string {
	const (
		perLine = 3 // entries of the legend
		edge    = 60
	)
	colours, _, _ := strings.Cut(pageStyle, "* { box-sizing")
	_, style, _ := strings.Cut(pageStyle, ".chart {")
	style, _, _ = strings.Cut(style, ".column {")
	alone := c.Chart
	alone.Columns = nil // they wait for a pointer
	_, svg, _ := strings.Cut(alone.SVG(), `viewBox="`)
	var width, height int
	_, _ = fmt.Sscanf(svg, "0 0 %d %d", &width, &height) // as SVG writes it
	_, svg, _ = strings.Cut(svg, `"`)
	attributes, body, _ := strings.Cut(svg, ">")
	numbered := strings.Contains(body, `class="number"`)
	var legend strings.Builder
	y := -22
	for i, k := range c.Legend {
		if i%perLine == 0 {
			y += 18
		}
		x, text := edge+width/perLine*(i%perLine), html.EscapeString(k.Text)
		if numbered {
			text = fmt.Sprintf("%d %s", i+1, text)
		}
		sign := fmt.Sprintf(`<path class="line %s" d="M%d %dh20"/>`, k.Class, x, y-4)
		switch of, shape, _ := strings.Cut(k.Class, " "); cmp.Or(shape, of) {
		case "fault", "stage":
			sign = fmt.Sprintf(`<rect class="span %s" x="%d" y="%d" width="20" height="8"/>`, of, x, y-8)
		case "round":
			sign = fmt.Sprintf(`<g class="%s"><circle class="dot" cx="%d" cy="%d" r="3.5"/></g>`, of, x+10, y-4)
		case "box":
			sign = fmt.Sprintf(`<g class="%s"><rect class="square" x="%d" y="%d" width="8" height="8"/></g>`, of, x+6, y-8)
		}
		fmt.Fprintf(&legend, "%s<text x=\"%d\" y=\"%d\">%s</text>\n", sign, x+26, y, text)
	}
	above := 44 + y + 22
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\"%s viewBox=\"0 %d %d %d\" width=\"%d\" height=\"%d\">\n<style>%s.chart {%s"+
		"svg { background: var(--paper); font-family: system-ui, sans-serif; }</style>"+
		"<g transform=\"translate(0 %d)\"><text x=\"%d\" y=\"-26\" font-weight=\"600\">%s</text>\n%s</g>%s",
		attributes, -above, width, height+above, width, height+above, colours, style, -y-6, edge, html.EscapeString(c.Title), legend.String(), body)
}
