package report

import (
	"io"
	"strings"

	"github.com/weirmq/weir/result"
)

// Markdown writes a result as Text does, in the Markdown of GitHub: its name,
// the verdict, the percentiles, the outcomes. The error is that of w.
func Markdown(w io.Writer, e Entry, o Options) error {
	p := new(page)
	p.heading(title(e.Result))
	one(p, e, o)
	_, err := io.WriteString(w, markdown{level: 1}.page(p))
	return err
}

// title names a run where its page needs a head.
func title(r *result.Result) string {
	if r.Run.Name == "" {
		return r.System.Driver
	}
	return r.Run.Name
}

// markdown writes pages in GitHub's Markdown. A level is that of its headings.
type markdown struct{ level int }

func (m markdown) page(p *page) string {
	var b strings.Builder
	list := false // the block before was of a list
	for i, x := range p.blocks {
		of := x.form == item || x.form == labelled
		if x.form == gap {
			list = false
			continue
		}
		if i > 0 && (!list || !of) {
			b.WriteString("\n")
		}
		switch x.form {
		case heading:
			b.WriteString(strings.Repeat("#", m.level) + " " + escape(x.spans[0].text) + "\n")
		case line, status:
			b.WriteString(m.spans(x.spans) + "\n")
		case item:
			b.WriteString("- ")
			if x.mark.text != "" {
				b.WriteString("**" + escape(x.mark.text) + "** ")
			}
			b.WriteString(m.spans(x.spans) + "\n")
			if x.under != "" {
				b.WriteString("  " + escape(x.under) + "\n")
			}
		case labelled:
			b.WriteString("- ")
			if x.mark.text != "" {
				b.WriteString(escape(x.mark.text) + ": ")
			}
			b.WriteString(m.spans(x.spans) + "\n")
		case tabular:
			for i, columns := range x.table.cut(markdownWidth) {
				if i > 0 {
					b.WriteString("\n")
				}
				b.WriteString(m.table(x.table, columns))
			}
		case note:
			for i, l := range x.lines {
				if i > 0 {
					b.WriteString("; ")
				}
				b.WriteString(escape(strings.TrimSuffix(l, ";"))) // which a line may end with where it stands alone
			}
			b.WriteString("\n")
		}
		list = of
	}
	return b.String()
}

// spans joins texts; what is painted in a terminal is strong here, but for what
// is dim.
func (m markdown) spans(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		text := escape(s.text)
		if inner := strings.TrimSpace(text); s.paint != "" && s.paint != dim && inner != "" {
			text = strings.Replace(text, inner, "**"+inner+"**", 1)
		}
		b.WriteString(text)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// markdownWidth is where a table is cut: GitHub's page shows so many characters
// or few less, and scrolls for the rest.
const markdownWidth = 140

// table writes some columns of a table.
func (m markdown) table(t *table, columns []int) string {
	var heads, rules strings.Builder
	for _, i := range columns {
		c := t.columns[i]
		head := c.head
		if c.group != "" && !c.beside {
			head = strings.TrimSpace(c.group + " " + head)
		}
		heads.WriteString("| " + escape(head) + " ")
		rule := " ---: "
		if c.left {
			rule = " :--- "
		}
		rules.WriteString("|" + rule)
	}
	var b strings.Builder
	b.WriteString(heads.String() + "|\n" + rules.String() + "|\n")
	for _, r := range t.rows {
		for _, i := range columns {
			b.WriteString("| " + escape(r[i].text) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// escape makes a text mean itself. A tilde strikes out only in pairs, and stands
// before every figure of too few samples: alone it is left.
func escape(s string) string {
	pairs := []string{
		"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "\\<", "|", "\\|", "#", "\\#", "&", "&amp;",
	}
	if strings.Count(s, "~") > 1 {
		pairs = append(pairs, "~", "\\~")
	}
	return strings.NewReplacer(pairs...).Replace(s)
}
