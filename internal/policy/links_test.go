package policy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/weirmq/weir/internal/must"
)

// TestLinksInDocumentsResolve follows every link in Markdown files to a file of the repository, and to
// its heading.
func TestLinksInDocumentsResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	followed := 0
	for _, doc := range documents(t) {
		text := prose(read(t, doc))
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := m[1]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			followed++
			name, anchor, _ := strings.Cut(to, "#")
			target := doc
			if name != "" {
				target = filepath.Join(filepath.Dir(doc), filepath.FromSlash(name))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", doc, to)
				continue
			}
			if anchor != "" && !headings(read(t, target))[anchor] {
				t.Errorf("%s: the link to %s names a heading that is not there", doc, to)
			}
		}
	}
	if followed < 10 {
		t.Errorf("followed %d links: the documents have lost theirs, or this test its eyes", followed)
	}
}

// documents returns the Markdown files of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var docs []string
	must.Do(t, filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "results"):
			return filepath.SkipDir
		case strings.HasSuffix(p, ".md"):
			docs = append(docs, p)
		}
		return nil
	}))
	return docs
}

func read(t *testing.T, name string) string {
	t.Helper()
	b := must.Get(os.ReadFile(name))(t)
	return string(b)
}

// prose returns a document without code blocks and code spans, whose brackets are not links.
func prose(doc string) string {
	var b strings.Builder
	for i, part := range strings.Split(doc, "```") {
		if i%2 == 0 {
			b.WriteString(regexp.MustCompile("`[^`\n]*`").ReplaceAllString(part, "code"))
		}
	}
	return b.String()
}

// headings returns the anchors of a document as GitHub generates them.
func headings(doc string) map[string]bool {
	found := map[string]bool{}
	for i, part := range strings.Split(doc, "```") {
		if i%2 == 1 {
			continue
		}
		for line := range strings.Lines(part) {
			title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
			if !strings.HasPrefix(line, "#") || !ok {
				continue
			}
			anchor := strings.Map(func(r rune) rune {
				switch {
				case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
					return unicode.ToLower(r)
				case r == ' ':
					return '-'
				}
				return -1
			}, strings.TrimSpace(title))
			found[anchor] = true
		}
	}
	return found
}
