// Package glossary explains the terms in weir's messages, tables and files. It reads them from
// docs/glossary.md, so that the two agree.
package glossary

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/docs"
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/view/layout"
)

// A Word is a term of weir.
type Word struct {
	Name    string // as in its heading: "Wake-up delay"
	Section string // its section: "Times"
	Text    string // definition, on one line, without Markdown
}

// link matches a Markdown link: its text, and its page, "" for another word of the glossary.
var link = regexp.MustCompile(`\[([^\]]*)\]\(([^)#]*)[^)]*\)`)

// unlinked returns a line with the path of each page that it links to.
func unlinked(line string) string {
	return link.ReplaceAllStringFunc(line, func(l string) string {
		m := link.FindStringSubmatch(l)
		if m[2] == "" {
			return m[1]
		}
		return m[1] + " (" + path.Join("docs", m[2]) + ")"
	})
}

// Words returns all words in the order of the document.
func Words() []Word {
	var words []Word
	section := ""
	for line := range strings.Lines(docs.Glossary()) {
		line = strings.TrimSpace(line)
		switch name, isWord := strings.CutPrefix(line, "### "); {
		case isWord:
			words = append(words, Word{Name: name, Section: section})
		case strings.HasPrefix(line, "## "):
			section = strings.TrimPrefix(line, "## ")
		case len(words) > 0 && line != "":
			w := &words[len(words)-1]
			w.Text = strings.TrimSpace(w.Text + " " + strings.ReplaceAll(unlinked(line), "`", ""))
		}
	}
	return words
}

// percentile is one as figures name it.
var percentile = regexp.MustCompile(`^[pP]\d+(\.\d+)?$`)

// Find returns the word of that name, in any case, or of that plural. Its error names the
// word that may be meant.
func Find(name string) (Word, error) {
	if percentile.MatchString(name) {
		name = "percentile"
	}
	words := Words()
	for _, name := range []string{name, strings.TrimSuffix(name, "s")} {
		for _, w := range words {
			if strings.EqualFold(w.Name, name) {
				return w, nil
			}
		}
	}
	var names []string
	for _, w := range words {
		names = append(names, strings.ToLower(w.Name))
	}
	if near := driver.Nearest(strings.ToLower(name), names); near != "" {
		return Word{}, fmt.Errorf("the glossary does not have %q, did you mean %q?", name, near)
	}
	return Word{}, fmt.Errorf("the glossary does not have %q", name)
}

// FindAll returns the words of these names, and an error for each that there is not. A name
// of two words, as "in flight", may be one argument or two.
func FindAll(names []string) (words []Word, faults []error) {
	for i := 0; i < len(names); i++ {
		w, err := Find(names[i])
		if err != nil && i+1 < len(names) {
			if pair, wrong := Find(names[i] + " " + names[i+1]); wrong == nil {
				w, err, i = pair, nil, i+1
			}
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		words = append(words, w)
	}
	return words, faults
}

// Show puts words on a page, each with what it means, and under the headings of their
// sections where these are wanted.
func Show(p *layout.Page, words []Word, sections bool) {
	section := ""
	for i, w := range words {
		if sections && w.Section != section {
			section = w.Section
			p.Gap()
			p.Chapter(strings.ToUpper(section))
		}
		if i > 0 || section != "" {
			p.Gap()
		}
		p.Line(layout.Strong.Of(w.Name))
		p.Inset(2).Say(w.Text)
	}
}

// plain are words of the glossary that every reader of a finding knows.
var plain = []string{
	"failed", "late", "lost", "unknown", "fleet", "agent", "driver", "interval", "percentile", "start", "ready", "received", "written", "copies",
	"send", "e2e", "rtt", "window", "process", "embedded", "probe",
}

// ordinary are words of the glossary that mean something else in most sentences.
var ordinary = []string{
	"figures", "send", "confirmed", "offered", "received", "written", "buffered", "copies", "stable", "replicated", "persisted", "due", "ready", "start",
	"settle", "drain", "window", "blocked", "hop", "slot", "stamp", "dropped", "failed", "late", "lost", "unknown", "pending", "gone", "foreign", "supported",
	"probe", "shift", "step", "process", "embedded", "driver",
}

// Explained returns the words as pages explain them.
func Explained() []layout.Term {
	var out []layout.Term
	for _, w := range Words() {
		x := layout.Term{Name: w.Name, Text: w.Text, Alone: slices.Contains(ordinary, strings.ToLower(w.Name))}
		if w.Name == "Percentile" {
			x.Forms = `p\d+(?:\.\d+)?`
		}
		out = append(out, x)
	}
	return out
}

// Used returns the names, in lower case and in the order of the glossary, of the words
// that a text uses. Words that everybody knows are left out.
func Used(text string) []string {
	text = strings.ToLower(text)
	var used []string
	for _, w := range Words() {
		name := strings.ToLower(w.Name)
		if !slices.Contains(plain, name) && regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`s?\b`).MatchString(text) {
			used = append(used, name)
		}
	}
	return used
}
