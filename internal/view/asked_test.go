package view

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/result"
)

func TestAdviceIsCommandAddingMissingRuns(t *testing.T) {
	side := func(dir string, n int) compare.Side {
		s := compare.Side{Given: dir}
		for range n {
			s.Runs = append(s.Runs, compare.Run{Dir: dir, Result: &result.Result{Verdict: result.Verdict{Status: result.Valid}}})
		}
		return s
	}
	few, differ := compare.ErrTooFew, errors.Join(compare.ErrTooFew, compare.ErrDifferent)
	for _, c := range []struct {
		name  string
		asked Asked
		sides []compare.Side
		err   error
		want  string
	}{
		{"two single runs", Asked{}, []compare.Side{side("a", 1), side("b", 1)}, few, "each side is a single run; this repeats both in turns, and compares them:\n  for i in 1"},
		{"three", Asked{}, []compare.Side{side("a", 1), side("b", 1), side("c", 1)}, few, "each argument is a side;"},
		{"single runs that differ", Asked{}, []compare.Side{side("a", 1), side("b", 1)}, differ, ""},
		{"enough", Asked{}, []compare.Side{side("a", 9), side("b", 9)}, compare.ErrDifferent, ""},
		{"one that is short", Asked{Given: []string{"a b", "b"}, Flags: " --alpha 0.01"}, []compare.Side{side("a b", 2), side("b", 99)}, few, "this adds runs, and compares again:\n  weir run --append 'a b' --repeat "},
		{"no folder of several", Asked{Given: []string{"a", "no"}}, []compare.Side{side("a", 99), side("no", 2)}, few, "weir run FILE --repeat N makes a series of runs"},
		{"folders parted by a key", Asked{Given: []string{"a", "b"}, By: "load.rate"}, []compare.Side{side("1", 2), side("2", 2)}, few, "weir run FILE --repeat N makes a series of runs"},
	} {
		c.asked.Alpha, c.asked.Appends = 0.05, func(dir string) bool { return dir != "no" }
		got := strings.Join(c.asked.Advice(c.sides, c.err), "\n")
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
		if c.asked.Flags != "" && !strings.HasSuffix(got, "\n  weir compare 'a b' b --alpha 0.01") {
			t.Errorf("%s: %q does not compare again as before", c.name, got)
		}
	}
}
