package layout

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// A Term is a term that pages explain where they first use it.
type Term struct {
	Name, Text string
	Forms      string // other forms, as a regular expression; "" for none
	Alone      bool   // ordinary English too: explained only where it is the whole text, as in the head of a table
}

// An explainer writes the texts of one page in their order. The first use of a word becomes a button that shows
// its meaning: a popover, which needs no script, and works by mouse, key and touch.
type explainer struct {
	words   []Term
	pattern *regexp.Regexp // a group for each word
	used    []int          // indices of words, in the order of their first use
}

func newExplainer(words []Term) *explainer {
	words = slices.Clone(words)
	slices.SortStableFunc(words, func(a, b Term) int { return len(b.Name) - len(a.Name) }) // of two that begin alike the longer one
	var each []string
	for _, w := range words {
		form := regexp.QuoteMeta(w.Name) + "s?"
		if w.Forms != "" {
			form += "|" + w.Forms
		}
		each = append(each, "("+form+")")
	}
	return &explainer{words: words, pattern: regexp.MustCompile(`(?i)\b(?:` + strings.Join(each, "|") + `)\b`)}
}

// explain escapes a text, with buttons at the words that the page has not used before.
func (x *explainer) explain(text string) template.HTML {
	var b strings.Builder
	from := 0
	if len(x.used) < len(x.words) {
		for _, at := range x.pattern.FindAllStringSubmatchIndex(text, -1) {
			i := 0
			for at[2*i+2] < 0 { // one group matched
				i++
			}
			begin, end := at[0], at[1]
			if slices.Contains(x.used, i) || partOfName(text[:begin], text[end:]) || x.words[i].Alone && strings.TrimSpace(text) != text[begin:end] {
				continue
			}
			x.used = append(x.used, i)
			b.WriteString(template.HTMLEscapeString(text[from:begin]))
			fmt.Fprintf(&b, `<button class="word" popovertarget="word-%d">%s</button>`, i, template.HTMLEscapeString(text[begin:end]))
			from = end
		}
	}
	b.WriteString(template.HTMLEscapeString(text[from:]))
	return template.HTML(b.String()) //nolint:gosec // G203: escaped above
}

// partOfName reports whether what stands between two texts is part of a file's or an option's name.
func partOfName(before, after string) bool {
	return strings.HasSuffix(before, "-") || strings.HasSuffix(before, ".") || strings.HasSuffix(before, "/") || strings.HasSuffix(before, "_") ||
		strings.HasPrefix(after, "-") || strings.HasPrefix(after, "/") || strings.HasPrefix(after, "_") || strings.HasPrefix(after, "=") ||
		len(after) > 1 && after[0] == '.' && after[1] != ' '
}

// meaning is the popover of a word.
type meaning struct {
	ID         int
	Name, Text string
}

// meanings returns those of the words that the page used.
func (x *explainer) meanings() []meaning {
	var out []meaning
	for _, i := range x.used {
		out = append(out, meaning{i, x.words[i].Name, x.words[i].Text})
	}
	return out
}
