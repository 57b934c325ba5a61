package policy

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is the longest line in Markdown, in characters, except for tables, links and code.
const widest = 120

// TestDocumentsFitAScreen checks every Markdown file except generated pages.
func TestDocumentsFitAScreen(t *testing.T) {
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
	}
}

// tourMost is the largest number of words in the tour: about six minutes of reading, in addition to
// the four that its commands take.
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
