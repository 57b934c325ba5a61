package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// repeat is one of several repeats whose confirmations took some time each.
func repeat(n int, ns int64, samples uint64) Entry {
	c := new(measure.Counts)
	c.Add(ns, samples)
	row := func(p float64) result.Percentile {
		return result.Percentile{P: p, NS: ns, LoNS: &ns, HiNS: &ns, Supported: true}
	}
	d := &result.Dist{Count: samples, Percentiles: []result.Percentile{row(50), row(99), row(99.9), row(100)}}
	r := &result.Result{
		Run:      result.Run{Name: fmt.Sprintf("x-r%d", n), Series: "x", Repeat: n, Mode: "produce", Loop: result.LoopOpen},
		System:   result.System{Driver: "noop", Guarantee: "buffered"},
		Verdict:  result.Verdict{Status: result.Valid},
		Messages: result.Messages{Scheduled: samples, Sent: samples, Confirmed: samples}, Throughput: result.Throughput{ConfirmedPerS: float64(100 * n)},
		Latency: result.Latency{Send: result.Send{Response: d}},
	}
	r.MessagesAll = r.Messages
	return Entry{Entry: result.Entry{Dir: fmt.Sprintf("r/%d", n), Result: r, Totals: map[string]*measure.Counts{"send.response.measure": c}}}
}

func TestRepeatsShowRunsSpreadAndTotal(t *testing.T) {
	entries := []Entry{repeat(3, 3_000_000, 2000), repeat(1, 1_000_000, 7000), repeat(2, 2_000_000, 1000)}
	got := same(t, "repeats.txt", func(w io.Writer) error { return Overview(w, entries, Options{}) })
	// Of 10,000 samples 7,000 are of 1 ms, so that all together have that median,
	// while half of the runs are above 2 ms.
	if !strings.Contains(got, "send 50 %    2.00 ms  1.00 ms  3.00 ms  1.00 ms") {
		t.Errorf("the median run and the median of all runs together are not told apart:\n%s", got)
	}
}

func TestRepeatsLeaveInvalidRunsOut(t *testing.T) {
	entries := []Entry{repeat(1, 1_000_000, 1000), repeat(2, 2_000_000, 1000), repeat(3, 9_000_000, 1000)}
	entries[2].Result.Verdict.Status = result.Invalid
	var b strings.Builder
	must.Do(t, Overview(&b, entries, Options{}))
	if s := b.String(); !strings.Contains(s, "x, 2 runs (1 INVALID left out)") {
		t.Error(s)
	}
	entries[1].Result.Verdict.Status = result.Invalid
	b.Reset()
	must.Do(t, Overview(&b, entries, Options{}))
	if s := b.String(); strings.Contains(s, "each run") {
		t.Errorf("one run that may be used has no spread:\n%s", s)
	}
}

// Its figures are excluded, and the next command completes the series.
func TestInterruptedRunIsExcludedFromSeries(t *testing.T) {
	entries := []Entry{repeat(1, 1_000_000, 1000), repeat(2, 2_000_000, 1000), repeat(3, 9_000_000, 1000)}
	entries[2].Result.Run.Interrupted = true
	for left, want := range map[int]string{0: "weir run --append r --repeat 1  # finishes the series", 2: "weir run --append r --repeat 3  # finishes the series"} {
		b := rendered(t, Overview, entries, Options{Left: left})
		s := b
		if !strings.Contains(s, want) || !strings.Contains(s, "the median of 2 runs (1.00 ms to 2.00 ms)") || !strings.Contains(s, "x, 2 runs (1 interrupted left out)") {
			t.Errorf("%d left: want %q in\n%s", left, want, s)
		}
	}
}

func TestResumedSeriesNeedsNoFinishing(t *testing.T) {
	entries := []Entry{repeat(1, 1_000_000, 1000), repeat(2, 2_000_000, 1000), repeat(3, 3_000_000, 1000)}
	entries[1].Result.Run.Interrupted = true
	b := rendered(t, Overview, entries, Options{})
	if s := b; strings.Contains(s, "finishes the series") {
		t.Errorf("run 3 came after run 2 was interrupted:\n%s", s)
	}
}

func TestFigureMissingInRunHasNoSpread(t *testing.T) {
	a, b := repeat(1, 1_000_000, 1000), repeat(2, 2_000_000, 1000)
	b.Result.Latency.Send.Response.Percentiles[2].Supported = false
	b.Totals = nil
	figures := repeatedFigures([]Entry{a, b})
	if slices.ContainsFunc(figures, func(f repeated) bool { return f.name == "send 99.9 %" }) {
		t.Error("p99.9 of a run that does not support it is spread")
	}
	for _, f := range figures {
		if f.together != "" {
			t.Errorf("%s of all runs together is %s; the samples of one are not known", f.name, f.together)
		}
	}
}

func TestRepeatWithLowerBoundIsMarked(t *testing.T) {
	t.Parallel()
	entries := []Entry{repeat(1, 1_000_000, 1000), repeat(2, 2_000_000, 1000), repeat(3, 3_000_000, 1000)}
	for i := range entries[1].Result.Latency.Send.Response.Percentiles {
		entries[1].Result.Latency.Send.Response.Percentiles[i].AtLeast = true
	}
	b := rendered(t, Overview, entries, Options{})
	mentions(t, b, ">= 2.00 ms, the median of 3 runs (1.00 ms to >= 3.00 ms)", "send 50 %    >= 2.00 ms  1.00 ms  >= 3.00 ms")
}
