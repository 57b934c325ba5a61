package policy

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many characters a line of Markdown may have, tables, links and code
// excepted.
const widest = 120

// A form is a way to write that readers stumble over, and what to write instead.
type form struct {
	re      *regexp.Regexp
	instead string
}

// forms are banned in what users and contributors read.
var forms = []form{
	{regexp.MustCompile(`(?i)\bof which\b`), "two sentences"},
	{regexp.MustCompile(`(?i)\bwhose\b`), "with, or two sentences"},
	{regexp.MustCompile(`(?i)\bnobody\b`), "no process, no agent, no user"},
	{regexp.MustCompile(`(?i)\bonce more\b`), "again"},
	{regexp.MustCompile(`(?i)\b(has|have|had) it (done|told)\b`), "the verb itself: runs it"},
	{regexp.MustCompile(`(?i)\b(hold|holds|held) (it|them|that) against\b`), "compare with"},
	{regexp.MustCompile(`(?i)\b(what|which|anything) is under way\b`), "messages in flight"},
	{regexp.MustCompile(`(?i)\b(process|program|agent|driver|consumer|producer|server|generator|lane|client|coordinator|thread|goroutine|weir),? who\b`), "which or that: a program is it"},
}

// isNo finds "X is no Y". "There is no", "is no longer" and comparatives are usual.
var isNo = regexp.MustCompile(`(?i)(\S+ )?\b(?:is|are|was|were) no ([a-z]+)`)

// usual are the words after which "is no" is usual English.
var usual = []string{"longer", "more", "such", "other", "less", "wider", "finer", "larger", "later", "better", "worse", "way", "reason", "one", "different"}

// faults returns the banned forms in a text.
func faults(text string) []string {
	var found []string
	for _, f := range forms {
		for _, m := range f.re.FindAllString(text, -1) {
			found = append(found, strconv.Quote(m)+" (write: "+f.instead+")")
		}
	}
	for _, m := range isNo.FindAllStringSubmatch(text, -1) {
		if !strings.EqualFold(strings.TrimSpace(m[1]), "there") && !slices.Contains(usual, strings.ToLower(m[2])) {
			found = append(found, strconv.Quote(m[0])+" (write: is not a)")
		}
	}
	return found
}

// TestDocumentsArePlain: no Markdown file has a banned form, nor a line that is too
// long. Generated pages say what the Go code says, which has a test of its own.
func TestDocumentsArePlain(t *testing.T) {
	for _, doc := range documents(t) {
		text := read(t, doc)
		if strings.HasPrefix(text, "<!-- Generated") {
			continue
		}
		code, at := false, strings.TrimPrefix(filepath.ToSlash(doc), "../../")
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if code {
				continue
			}
			if utf8.RuneCountInString(line) > widest && !strings.HasPrefix(line, "|") && !strings.Contains(line, "](") {
				t.Errorf("%s:%d: a line of %d characters, at most %d", at, i+1, utf8.RuneCountInString(line), widest)
			}
		}
		for _, f := range faults(strings.Join(strings.Fields(prose(text)), " ")) {
			t.Errorf("%s: %s", at, f)
		}
	}
}

// tourMost is how many words of prose the tour may have: what a reader reads in six minutes
// or so, beside the four that its commands take.
const tourMost = 1300

// TestTheTourTakesTenMinutes counts the words of docs/README.md outside of code blocks.
func TestTheTourTakesTenMinutes(t *testing.T) {
	words := 0
	for i, part := range strings.Split(read(t, "../../docs/README.md"), "```") {
		if i%2 == 0 {
			words += len(strings.Fields(part))
		}
	}
	if words > tourMost {
		t.Errorf("docs/README.md has %d words of prose, at most %d: give a task a page of its own", words, tourMost)
	}
}

// TestMessagesArePlain: no text in the code that a user may read has a banned form.
func TestMessagesArePlain(t *testing.T) {
	for _, f := range load(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(l.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, said := range faults(text) {
				t.Errorf("%s: %s", f.at(l.Pos()), said)
			}
			return true
		})
	}
}

// TestCommentsArePlain: no comment has a banned form.
func TestCommentsArePlain(t *testing.T) {
	for _, f := range load(t) {
		if f.test {
			continue
		}
		for _, g := range f.ast.Comments {
			for _, said := range faults(g.Text()) {
				t.Errorf("%s: %s", f.at(g.Pos()), said)
			}
		}
	}
}
