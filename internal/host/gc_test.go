package host

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGCEventsCountSinceLastCall(t *testing.T) {
	runtime.GC() // earlier, so not counted
	g := NewGCEvents()
	for range 3 {
		runtime.GC()
	}
	got := g.Next()
	if got.Cycles < 3 {
		t.Errorf("%d cycles, want the 3 that were forced", got.Cycles)
	}
	if got.Pauses < 3 {
		t.Errorf("%d pauses in %d cycles", got.Pauses, got.Cycles)
	}
	if got.LongestNS <= 0 || got.PauseNS < got.LongestNS {
		t.Errorf("pauses of %d ns in all, the longest %d", got.PauseNS, got.LongestNS)
	}
	// The collector may run by itself, but not that often in so short a time.
	if next := g.Next(); next.Cycles >= got.Cycles {
		t.Errorf("%d cycles since then, though %d had been told already", next.Cycles, got.Cycles)
	}
}

func TestGCEventsReportCycleEnds(t *testing.T) {
	g := NewGCEvents()
	began := time.Now()
	runtime.GC()
	first := time.Since(began)
	time.Sleep(20 * time.Millisecond)
	runtime.GC()
	n := g.Next().Cycles
	ends := g.Cycles(n)
	all := time.Since(began)
	if uint64(len(ends)) != n || n < 2 {
		t.Fatalf("%d ends of %d cycles", len(ends), n)
	}
	if ends[0].Ago < 20*time.Millisecond || ends[0].Ago > all || ends[n-1].Ago > all-first-20*time.Millisecond || ends[n-1].Stopped <= 0 {
		t.Errorf("%+v, of collections that began %v ago and 20 ms after the end of that", ends, all)
	}
	if g.Cycles(1<<20) != nil {
		t.Error("ends of more cycles than there were")
	}
}

func TestGCIsDifferenceOfTotals(t *testing.T) {
	upper := []int64{0, 64, 128, 1000}
	for _, c := range []struct {
		name       string
		then, now  gcTotals
		wantResult GC
	}{
		{
			"nothing happened",
			gcTotals{3, []uint64{0, 4, 2, 0}, upper},
			gcTotals{3, []uint64{0, 4, 2, 0}, upper},
			GC{},
		},
		{
			"one cycle of two pauses",
			gcTotals{3, []uint64{0, 4, 2, 9}, upper},
			gcTotals{4, []uint64{0, 5, 3, 9}, upper},
			GC{Cycles: 1, Pauses: 2, PauseNS: 192, LongestNS: 128},
		},
		{
			"the longest is of the span, not of the process",
			gcTotals{3, []uint64{0, 4, 2, 1}, upper},
			gcTotals{4, []uint64{0, 6, 2, 1}, upper},
			GC{Cycles: 1, Pauses: 2, PauseNS: 128, LongestNS: 64},
		},
		{
			"since the process began",
			gcTotals{},
			gcTotals{2, []uint64{0, 0, 0, 4}, upper},
			GC{Cycles: 2, Pauses: 4, PauseNS: 4000, LongestNS: 1000},
		},
		{"a runtime that tells nothing", gcTotals{}, gcTotals{}, GC{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.wantResult, c.now.since(c.then)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUpperEdgesAreInNanoseconds(t *testing.T) {
	got := upperEdges([]float64{math.Inf(-1), 0, 6.4e-8, 1e-3, math.Inf(1)})
	if diff := cmp.Diff([]int64{0, 64, 1_000_000, 1_000_000}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := upperEdges(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
