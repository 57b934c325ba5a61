package host

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The runtime/metrics that are read. Reading them does not stop the world.
const (
	metricCycles = "/gc/cycles/total:gc-cycles"
	metricPauses = "/sched/pauses/total/gc:seconds"
)

// A GC summarizes the garbage collector's work over a period.
type GC struct {
	Cycles uint64 `json:"cycles"` // completed cycles
	Pauses uint64 `json:"pauses"` // stop-the-world pauses of the collector: two per cycle
	// PauseNS is the total time the world was stopped, LongestNS the longest single pause. The runtime
	// keeps pauses in a histogram with four buckets per power of two. Both figures use the buckets' upper
	// edges: they are never too small, and from 256 ns up at most 25 % too large.
	PauseNS   int64 `json:"pause_ns"`
	LongestNS int64 `json:"longest_ns"`
}

// GCEvents reports what the collector did since the previous call. It is not safe for concurrent use.
type GCEvents struct {
	reader gcReader
	last   gcTotals
	stats  debug.GCStats
}

// NewGCEvents returns a GCEvents that counts from now.
func NewGCEvents() *GCEvents {
	g := &GCEvents{reader: newGCReader()}
	g.last = g.reader.read()
	return g
}

// Next returns what happened since the previous call, or since NewGCEvents. It takes some
// microseconds.
func (g *GCEvents) Next() GC {
	now := g.reader.read()
	gc := now.since(g.last)
	g.last = now
	return gc
}

// A Cycle is one completed garbage collection.
type Cycle struct {
	Ago     time.Duration // time since its end
	Stopped time.Duration // total of its stop-the-world pauses
}

// Cycles returns the last n cycles, earliest first; nil if the runtime does not keep that many. It
// does not stop the world, but waits for the heap lock. If the wall clock has been stepped since, Ago
// is off by the step.
func (g *GCEvents) Cycles(n uint64) []Cycle {
	debug.ReadGCStats(&g.stats)
	now := time.Now()
	if n > uint64(len(g.stats.PauseEnd)) {
		return nil
	}
	all := make([]Cycle, n)
	for i := range all {
		k := len(all) - 1 - i // the source has the latest first
		all[i] = Cycle{max(0, now.Sub(g.stats.PauseEnd[k])), g.stats.Pause[k]}
	}
	return all
}

// gcTotals is the collector's work since the process started.
type gcTotals struct {
	cycles uint64
	pauses []uint64 // bucket counts
	upper  []int64  // upper edges of the buckets, ns; the lower edge for an unbounded bucket
}

// A gcReader reads totals. The runtime reuses the samples' memory.
type gcReader struct {
	samples []metrics.Sample
}

func newGCReader() gcReader {
	return gcReader{samples: []metrics.Sample{{Name: metricCycles}, {Name: metricPauses}}}
}

func (r gcReader) read() gcTotals {
	metrics.Read(r.samples)
	var t gcTotals
	// A metric removed in a later Go version is of KindBad: it stays zero.
	if v := r.samples[0].Value; v.Kind() == metrics.KindUint64 {
		t.cycles = v.Uint64()
	}
	if v := r.samples[1].Value; v.Kind() == metrics.KindFloat64Histogram {
		h := v.Float64Histogram()
		t.pauses = append(t.pauses, h.Counts...)
		t.upper = upperEdges(h.Buckets)
	}
	return t
}

// upperEdges converts the n+1 edges of n buckets, in seconds, to the n upper edges in ns. The last
// bucket may be unbounded.
func upperEdges(edges []float64) []int64 {
	if len(edges) == 0 {
		return nil
	}
	upper := make([]int64, len(edges)-1)
	for i := range upper {
		e := edges[i+1]
		if math.IsInf(e, 1) {
			e = edges[i]
		}
		upper[i] = int64(math.Round(max(0, e) * float64(time.Second)))
	}
	return upper
}

// since returns the difference between two readings.
func (t gcTotals) since(earlier gcTotals) GC {
	gc := GC{Cycles: t.cycles - earlier.cycles}
	for i, n := range t.pauses {
		if i < len(earlier.pauses) {
			n -= earlier.pauses[i]
		}
		if n == 0 {
			continue
		}
		gc.Pauses += n
		gc.PauseNS += int64(n) * t.upper[i]
		gc.LongestNS = t.upper[i] // edges are ascending
	}
	return gc
}
