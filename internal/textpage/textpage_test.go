package textpage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		if diff := cmp.Diff(c.want, Wrapped(c.text, c.width)); diff != "" {
			t.Errorf("%q in %d (-want +got)\n%s", c.text, c.width, diff)
		}
	}
}

func TestATablesLastColumnIsWrapped(t *testing.T) {
	p := &Page{Width: 44}
	p.Table(2, [][]string{{"a", "1", "short"}, {"bµb", "22", "some words that do not fit into one line of it"}})
	want := "  a    1   short\n  bµb  22  some words that do not fit into\n           one line of it\n"
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAGridWrapsEveryColumnButTheFirst(t *testing.T) {
	p := &Page{Width: 40}
	p.Grid(2, [][]string{{"", "one", "two"}, {"name", "a few words that are too many", "few"}, {"n", "x", "and a few words too many"}})
	want := `
        one              two
  name  a few words      few
        that are too
        many
  n     x                and a few words
                         too many
`
	if got := "\n" + p.String(); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}
