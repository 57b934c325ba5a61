package cli

import (
	"errors"
	"testing"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/result"
)

func TestWhatARunGaveDecidesItsCode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		damage  func(*series.Outcome)
		verdict result.Verdict
		want    Code
		says    string
	}{
		{"nothing is wrong", func(*series.Outcome) {}, result.Verdict{}, OK, ""},
		{"its books", func(o *series.Outcome) { o.Books = errors.New("a message too few") }, result.Verdict{}, Failed, "a message too few"},
		{"the driver", func(o *series.Outcome) { o.Err = errors.New("completed twice") }, result.Verdict{}, Failed, "completed twice"},
		{"its files", func(o *series.Outcome) { o.Written = errors.New("no room\nnone") }, result.Verdict{}, Failed, "writing the result: no room"},
		{"the system is gone", func(o *series.Outcome) { o.Gone = errors.New("connection given up") }, result.Verdict{}, Unreachable, "connection given up"},
		{
			"the run ended at once", func(o *series.Outcome) { o.Failed = "a producer is full" },
			result.Verdict{},
			Invalid,
			"the run ended at once: a producer is full",
		},
		{"a message that was not confirmed arrived corrupted", func(o *series.Outcome) { o.Broken = true }, result.Verdict{}, Lost, ""},
		{
			"messages failed", func(*series.Outcome) {},
			result.Verdict{Status: result.Invalid, Checks: []result.Check{{Name: judge.CheckFailed, Status: result.Suspect}}},
			Refused, "",
		},
		{
			"messages failed, as many as may", func(*series.Outcome) {},
			result.Verdict{Checks: []result.Check{{Name: judge.CheckFailed, Status: result.Valid}}},
			OK, "",
		},
		{"interrupted", func(o *series.Outcome) { o.Result.Run.Interrupted = true }, result.Verdict{Status: result.Invalid}, Interrupted, ""},
		{"the figures must not be used", func(*series.Outcome) {}, result.Verdict{Status: result.Invalid}, Invalid, ""},
		{"an objective was missed", func(*series.Outcome) {}, result.Verdict{SLO: []result.SLO{{Status: result.Pass}, {Status: result.Fail}}}, Missed, ""},
		{"an objective was not decided", func(*series.Outcome) {}, result.Verdict{SLO: []result.SLO{{Status: result.Undecided}}}, OK, ""},
		{
			"missed in a run that must not be used", func(*series.Outcome) {},
			result.Verdict{Status: result.Invalid, SLO: []result.SLO{{Status: result.Fail}}},
			Invalid, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := &series.Outcome{Result: &result.Result{Verdict: tt.verdict}}
			tt.damage(o)
			if got := worst((&runCommand{}).codes(o)...); got != tt.want {
				t.Errorf("exit code %d; want %d", got, tt.want)
			}
			said := ""
			if all := o.Wrong(); len(all) > 0 {
				said = all[0].Error()
			}
			if said != tt.says {
				t.Errorf("it says %q; want %q", said, tt.says)
			}
		})
	}
}
