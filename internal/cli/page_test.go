package cli

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
)

// expected compares what was got with a file of testdata.
func expected(t *testing.T, name, got string) {
	t.Helper()
	golden.File(t, filepath.Join("testdata", "golden", name), got)
}

// unpainted takes the colours away.
func unpainted(s string) string {
	return regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(s, "")
}

func TestTextIsWrappedBetweenWords(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one  two", 3, []string{"one", "two"}},
		{"averylongword is kept", 5, []string{"averylongword", "is", "kept"}},
		{"µµµµ µ", 6, []string{"µµµµ µ"}},
	} {
		if diff := cmp.Diff(c.want, wrapped(c.text, c.width)); diff != "" {
			t.Errorf("%q in %d (-want +got)\n%s", c.text, c.width, diff)
		}
	}
}

func TestATablesLastColumnIsWrapped(t *testing.T) {
	p := &page{width: 44}
	p.table(2, [][]string{{"a", "1", "short"}, {"bµb", "22", "some words that do not fit into one line of it"}})
	want := "  a    1   short\n  bµb  22  some words that do not fit into\n           one line of it\n"
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
