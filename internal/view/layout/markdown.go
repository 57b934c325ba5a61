package layout

import "strings"

// Markdown controls how pages become GitHub Markdown.
type Markdown struct {
	Level int // of the headings; 0 is 1
	Width int // of tables in characters: wider ones are cut; 0: unlimited

	picture func(*Chart) string // makes a chart a file, and returns its name; nil: charts are described
}

// MarkdownWidth is how many characters of a table GitHub's page shows without scrolling.
const MarkdownWidth = 140

// Page returns a page as Markdown.
func (m Markdown) Page(p *Page) string {
	var b strings.Builder
	list := false // the previous block was in a list
	level := max(1, m.Level)
	for i, x := range p.blocks {
		of := x.Form == Item || x.Form == Bullet || x.Form == Labelled
		if x.Form == Gap || x.Form == Contents {
			list = list && x.Form != Gap
			continue
		}
		if i > 0 && (!list || !of) {
			b.WriteString("\n")
		}
		switch x.Form {
		case Heading, Chapter:
			if x.Form == Chapter {
				level++
			}
			b.WriteString(strings.Repeat("#", level) + " " + Escape(x.Spans[0].Text) + "\n")
			level = max(1, m.Level)
		case Line, Status:
			b.WriteString(m.spans(x.Spans) + "\n")
		case Item, Bullet, Labelled:
			b.WriteString("- ")
			switch {
			case x.Mark.Text == "":
			case x.Form == Item:
				b.WriteString("**" + Escape(x.Mark.Text) + "** ")
			default:
				b.WriteString(Escape(x.Mark.Text) + ": ")
			}
			b.WriteString(m.spans(x.Spans) + "\n")
			if x.Under != "" {
				b.WriteString("  " + Escape(x.Under) + "\n")
			}
		case Tabular:
			for i, columns := range x.Table.cut(m.Width) {
				if i > 0 {
					b.WriteString("\n")
				}
				b.WriteString(m.table(x.Table, columns))
			}
		case Note:
			for i, l := range x.Lines {
				if i > 0 {
					b.WriteString("; ")
				}
				b.WriteString(Escape(strings.TrimSuffix(l, ";"))) // no trailing semicolon on a line that stands alone
			}
			b.WriteString("\n")
		case Drawing:
			if m.picture != nil {
				b.WriteString("![" + Escape(x.Chart.Title) + "](" + m.picture(x.Chart) + ")\n")
				break
			}
			b.WriteString(Escape(x.Chart.Words()) + "\n")
		case Folded:
			b.WriteString(m.spans(x.Spans) + "\n\n" + m.Page(x.Inside))
		case Inset:
			b.WriteString(m.Page(x.Inside))
		case Verbatim:
			for _, l := range x.Lines {
				b.WriteString(strings.TrimRight("    "+l, " ") + "\n")
			}
		}
		list = of
	}
	return b.String()
}

// spans joins texts. What a terminal colours is bold here, unless it is faint.
func (m Markdown) spans(spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		text := Escape(s.Text)
		if inner := strings.TrimSpace(text); s.Tone != Plain && s.Tone != Faint && inner != "" {
			text = strings.Replace(text, inner, "**"+inner+"**", 1)
		}
		b.WriteString(s.leads(text))
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// leads makes a text of s a link, if it is one.
func (s Span) leads(text string) string {
	if s.Link == "" {
		return text
	}
	return "[" + text + "](" + s.Link + ")"
}

// table writes some columns of a table.
func (m Markdown) table(t *Table, columns []int) string {
	var heads, rules, b strings.Builder
	for _, i := range columns {
		c := t.Columns[i]
		head := c.Head
		if c.Group != "" && !c.Beside {
			head = strings.TrimSpace(c.Group + " " + head)
		}
		heads.WriteString("| " + Escape(head) + " ")
		rules.WriteString(map[bool]string{true: "| ---: ", false: "| :--- "}[c.Kind == Number])
	}
	b.WriteString(heads.String() + "|\n" + rules.String() + "|\n")
	for _, r := range t.Rows {
		for _, i := range columns {
			text := Escape(r[i].Whole())
			if t.Columns[i].Judges && (r[i].Tone == Good || r[i].Tone == Bad) {
				text = "**" + text + "**"
			}
			b.WriteString("| " + r[i].leads(text) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// Escape escapes a text so that Markdown shows it literally. Only pairs of tildes strike out text: a single
// one, as before a figure with too few samples, stays.
func Escape(s string) string {
	pairs := []string{
		"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "\\<", "|", "\\|", "#", "\\#", "&", "&amp;",
	}
	if strings.Count(s, "~") > 1 {
		pairs = append(pairs, "~", "\\~")
	}
	return strings.NewReplacer(pairs...).Replace(s)
}
