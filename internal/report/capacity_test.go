package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/result"
)

func TestACapacityIsDrawnAgainstTheLoad(t *testing.T) {
	ns := func(v int64) *int64 { return &v }
	r := &capacity.Report{
		Promise: []string{"send.p99 <= 5ms", "lost == 0"},
		Probes: []capacity.Probed{
			{RatePerS: 1000, Purpose: capacity.Doubling, Judgement: "passed", Verdict: result.Valid, Dir: "01", Of: "send", P50NS: ns(1e6), P99NS: ns(2e6)},
			{RatePerS: 2000, Purpose: capacity.Doubling, Judgement: "failed", Why: "send.p99 <= 5ms", Verdict: result.Valid, Dir: "02", Of: "send", P50NS: ns(2e6), P99NS: ns(9e6)},
			{RatePerS: 1500, Purpose: capacity.Bisection, Judgement: "undecided", Verdict: result.Valid, Dir: "<script>"},
		},
		Answer: capacity.Answered{PassPerS: 1000, FailPerS: 2000, Stop: capacity.Found},
	}
	var b bytes.Buffer
	if err := CapacityHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"Capacity under send.p99 &lt;= 5ms, lost == 0", "1,000/s kept the promise, 2,000/s did not", `<svg class="chart"`,
		"2,000/s: p99 9.00 ms, failed", `<td class="left bad">failed</td>`, `<td class="left good">passed</td>`, "&lt;script&gt;",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, `class="hollow"`); n != 2 {
		t.Errorf("%d hollow dots, want the two of the probe that failed", n)
	}
	r.Probes = r.Probes[2:]
	b.Reset()
	if err := CapacityHTML(&b, r); err != nil || strings.Contains(b.String(), "<svg") {
		t.Errorf("a search without latencies is drawn, or %v", err)
	}
}

func TestWhatASearchThatIsNotOverCameTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pass, fail float64
		want       string
	}{
		{0, 0, "not known yet"},
		{100, 0, "not known yet: 100/s kept the promise"},
		{0, 125, "not known yet: no rate down to 125/s passed"},
		{100, 200, "not known yet: 100/s kept the promise, 200/s did not pass"},
	} {
		if got := Came(&capacity.Answered{PassPerS: c.pass, FailPerS: c.fail, Stop: capacity.OutOfTries}); got != c.want {
			t.Errorf("%v and %v came to %q; want %q", c.pass, c.fail, got, c.want)
		}
	}
}
