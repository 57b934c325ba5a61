package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/result"
)

// An upper end set by the generator bounds nothing.
func TestTargetUsesOnlySystemLimits(t *testing.T) {
	for by, want := range map[Judgement]Needed{
		Failed:    {PerS: 1900, Of: "systems", Least: 1, Most: 2},
		Limited:   {PerS: 1900, Of: "systems", Most: 2},
		Undecided: {PerS: 1900, Of: "systems", Most: 2},
	} {
		r := &Report{Plan: Planned{TargetPerS: 1900}, Answer: Answered{PassPerS: 1000, FailPerS: 1950, FailBy: by.String()}}
		golden.Equal(t, &want, r.needed(nil), "an end by %s", by)
	}
}

func TestOldFileEndFollowsStopReason(t *testing.T) {
	for stop, want := range map[Stop]End{
		Found: {2000, Failed}, Between: {2000, Failed}, Generator: {2000, Limited}, TooShort: {2000, Undecided}, OutOfTries: {2000, Limited},
	} {
		if got := (&Answered{PassPerS: 1000, FailPerS: 2000, Stop: stop}).Fail(); got != want {
			t.Errorf("%s: %v; want %v", stop, got, want)
		}
	}
	if got := (&Answered{PassPerS: 1000, Stop: AtMost}).Fail(); got != (End{}) {
		t.Errorf("no end at all is %v", got)
	}
}

// Lower bounds are marked.
func TestProbeKeepsObjectivePercentiles(t *testing.T) {
	r := &result.Result{}
	r.Verdict.SLO = []result.SLO{{Expr: "e2e.p90 <= 5ms"}, {Expr: "send.p95 <= 5ms"}}
	r.Latency.E2E.Response = &result.Dist{Percentiles: []result.Percentile{
		{P: 50, NS: 1, Supported: true}, {P: 90, NS: 2, Supported: true}, {P: 95, NS: 3, Supported: true}, {P: 99, NS: 4, Supported: true, AtLeast: true},
	}}
	p := new(Probed)
	p.Measured(r, false)
	want := []Figure{{P: 50, NS: 1}, {P: 90, NS: 2}, {P: 99, NS: 4, AtLeast: true}}
	if diff := cmp.Diff(want, p.Figures); diff != "" || p.Of != "e2e" {
		t.Errorf("of %s (-want +got):\n%s", p.Of, diff)
	}
	if p.P50NS == nil || *p.P50NS != 1 || p.P99NS != nil {
		t.Errorf("p50 %v, p99 %v; want 1, and no value for a lower bound", p.P50NS, p.P99NS)
	}
}
