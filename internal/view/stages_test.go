package view

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// ramped is a run with stages; p99.9 of the first is not supported, and of the second is
// the generator's own lateness.
func ramped(t *testing.T) Entry {
	e := run(t, "jetstream-500")
	ns := func(v int64) *int64 { return &v }
	perS := func(v float64) *float64 { return &v }
	dist := func(n uint64, p50, p99, p999 int64, enough bool) *result.Dist {
		return &result.Dist{Count: n, MaxNS: ns(9e6), Percentiles: []result.Percentile{
			{P: 50, NS: p50, Supported: true}, {P: 99, NS: p99, Supported: true}, {P: 99.9, NS: p999, Supported: enough}, {P: 100, NS: 9e6, Supported: true},
		}}
	}
	first, second := dist(2_000, 1e5, 2e6, 3e6, false), dist(90_000, 2e5, 4e6, 8e6, true)
	second.Censored = 7
	e.Result.Stages = []result.Stage{
		{
			Plan: "1000/s", FromNS: 2e9, ToNS: 4e9, BeginsPerS: 1000, EndsPerS: 1000, Offered: 2_000, OfferedPerS: 1000, SentPerS: 1000, ConfirmedPerS: 999.6, ReceivedPerS: perS(999),
			E2E: &result.Pair{Response: first, OnTime: first},
		},
		{
			Plan: "1000/s..17000/s", FromNS: 4e9, ToNS: 11e9, BeginsPerS: 1000, EndsPerS: 17_000, Offered: 90_007, OfferedPerS: 9000, SentPerS: 9000, ConfirmedPerS: 8000.4, ReceivedPerS: perS(8000),
			E2E: &result.Pair{Response: second, OnTime: dist(90_000, 2e5, 4e6, 1e6, true)},
		},
	}
	return e
}

func TestEachStageHasItsFigures(t *testing.T) {
	t.Parallel()
	e := ramped(t)
	same(t, "stages.txt", func(w io.Writer) error { return Text(w, e, Options{Width: 80}) })
	e.Result.Stages = e.Result.Stages[:1]
	one := rendered(t, Text, e, Options{Width: 80})
	if strings.Contains(one, "stage") {
		t.Error("the only stage repeats the figures of the run")
	}
}

// Shaded spans are named once, in the legend of the first chart, on a screen of any width.
func TestSpansAreNamedInTheLegend(t *testing.T) {
	t.Parallel()
	e := ramped(t)
	e.Course = newCourse(0, length(12), nil, 12)
	for _, at := range []int64{4e9, 8e9} {
		e.Result.Faults = append(e.Result.Faults, result.Fault{Do: "kill", To: "leader", Processes: []string{"server-2"}, BeganNS: at, UndoneNS: new(at + 1e9)})
	}
	page := html1(t, e, Options{})
	if n := strings.Count(page, `<li><span class="key fault"></span>kill server-2 (leader)</li>`); n != 1 {
		t.Errorf("the faults are named %d times", n)
	}
	mentions(t, page, `<li><span class="key stage"></span>1000/s</li>`, "and so are the faults, pauses or stages that the first chart names.")
	if n := strings.Count(page, `class="number sign"`); n != 4 {
		t.Errorf("%d spans have a number; want two stages and two faults", n)
	}
}

func TestOfferedIsDrawnAsPlanned(t *testing.T) {
	t.Parallel()
	e := ramped(t)
	e.Course = newCourse(0, length(12), nil, 12)
	page := html1(t, e, Options{})
	if !strings.Contains(page, "offered, as planned") || strings.Contains(page, "mean of the window") {
		t.Error("the legend does not say that it is the plan")
	}
	if !regexp.MustCompile(`class="line s5 thin" d="M[\d.]+ [\d.]+h[\d.]+l[\d.]+-[\d.]+"`).MatchString(page) {
		t.Error("there is no line of a step, and from its end a ramp")
	}
}
