package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// grouped is a table of three groups: a of two columns, b of a column with its
// interval beside it and one more, and one column of its own.
func grouped() *table {
	t := &table{
		columns: []tableColumn{
			{head: "run", left: true, key: true},
			{group: "a", head: "one"},
			{group: "a", head: "two"},
			{group: "b", head: "p50"},
			{group: "b", head: "95 %", beside: true, left: true},
			{group: "b", head: "p99"},
			{head: "alone"},
		},
		rows: [][]cell{{{text: "x"}, {text: "1"}, {text: "2"}, {text: "12345"}, {text: "1..2"}, {text: "9"}, {text: "0"}}},
	}
	t.measure()
	return t
}

func TestTablesAreCutBetweenGroupsAndThenBetweenColumns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		width int
		want  [][]int
	}{
		"without a bound it is one":                           {0, [][]int{{0, 1, 2, 3, 4, 5, 6}}},
		"one that fits is one":                                {38, [][]int{{0, 1, 2, 3, 4, 5, 6}}},
		"groups stay whole":                                   {37, [][]int{{0, 1, 2, 3, 4, 5}, {0, 6}}},
		"a group that fits a table of its own gets it":        {25, [][]int{{0, 1, 2}, {0, 3, 4, 5}, {0, 6}}},
		"one that does not is cut, but not from its interval": {17, [][]int{{0, 1, 2}, {0, 3, 4}, {0, 5, 6}}},
		"and what fits nowhere stands alone and is too wide":  {5, [][]int{{0, 1}, {0, 2}, {0, 3, 4}, {0, 5}, {0, 6}}},
	} {
		if diff := cmp.Diff(tt.want, grouped().cut(tt.width)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSentencesAreFoldedOnATerminalOnly(t *testing.T) {
	t.Parallel()
	p := new(page)
	p.add(block{form: item, mark: span{"suspect", yellow}, spans: []span{plain("lateness: a quarter of it is the generator's own")}, under: "A quieter host makes it go away, or a core more."})
	p.labelled("messages", plain("scheduled 1,000, "), span{"lost 1", red}, plain(", duplicated 0"))
	want := `  suspect  lateness: a quarter of it
           is the generator's own
           A quieter host makes it
           go away, or a core more.
messages    scheduled 1,000, lost 1,
            duplicated 0
`
	if diff := cmp.Diff(want, terminal{width: 36, folds: true}.page(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := (terminal{width: 36}).page(p); strings.Count(got, "\n") != 3 {
		t.Errorf("not a terminal, and folded:\n%s", got)
	}
}

func TestMarkdownMeansWhatItSays(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"~1.59 ms":         "~1.59 ms",
		"~a~":              `\~a\~`,
		"a_b*c*":           `a\_b\*c\*`,
		"x | y":            `x \| y`,
		"<script>&lt;":     `\<script>&amp;lt;`,
		"[a](b) `c` \\ #1": "\\[a\\](b) \\`c\\` \\\\ \\#1",
		">= 104 ms":        ">= 104 ms",
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestLongNamesLoseTheirMiddle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"short", 10, "short"}, {"kafka-1kib-20k", 10, "kafk…b-20k"}, {"ααααααααα", 5, "αα…αα"}, {"ab", 1, "ab"}} {
		if got := middle(tt.in, tt.n); got != tt.want || tt.n >= 3 && utf8.RuneCountInString(got) > tt.n {
			t.Errorf("middle(%q, %d) = %q; want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestAFilesTextMovesNoCursor(t *testing.T) {
	t.Parallel()
	p := new(page)
	p.line(plain("a\x1b[31mb\r\nc\u009bd"))
	p.tabular(&table{columns: []tableColumn{{head: "x"}}, rows: [][]cell{{{text: "\x07"}}}})
	if diff := cmp.Diff("a\ufffd[31mb\ufffd c\ufffdd\nx\n\ufffd\n", terminal{}.page(p)); diff != "" {
		t.Error(diff)
	}
}
