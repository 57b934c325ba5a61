package host

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The runtime/metrics that are read. Neither stops the world.
const (
	metricCycles = "/gc/cycles/total:gc-cycles"
	metricPauses = "/sched/pauses/total/gc:seconds"
)

// A GC is what the garbage collector did over some span.
type GC struct {
	Cycles uint64 `json:"cycles"` // completed
	Pauses uint64 `json:"pauses"` // stops of the world for the collector: two a cycle
	// PauseNS is the time the world stood, and LongestNS the longest single
	// stop. The runtime keeps pauses in a histogram with four buckets to a
	// power of two; these are from the buckets' upper edges, thus never too
	// small, and from 256 ns up at most 25 % too large.
	PauseNS   int64 `json:"pause_ns"`
	LongestNS int64 `json:"longest_ns"`
}

// GCEvents tells what the collector did since it was last asked. One goroutine
// at a time may use it.
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

// Next returns what happened since the call before, or since NewGCEvents. It
// takes some microseconds.
func (g *GCEvents) Next() GC {
	now := g.reader.read()
	gc := now.since(g.last)
	g.last = now
	return gc
}

// A Cycle is a collection of garbage that ended.
type Cycle struct {
	Ago     time.Duration // since its end
	Stopped time.Duration // how long it stopped the world, both times together
}

// Cycles returns the last n cycles, the earliest first; nil where the runtime does not keep
// so many. It stops nothing, and waits for the lock of the heap. Where the wall clock was
// stepped since, Ago is off by as much.
func (g *GCEvents) Cycles(n uint64) []Cycle {
	debug.ReadGCStats(&g.stats)
	now := time.Now()
	if n > uint64(len(g.stats.PauseEnd)) {
		return nil
	}
	all := make([]Cycle, n)
	for i := range all {
		k := len(all) - 1 - i // they stand latest first
		all[i] = Cycle{max(0, now.Sub(g.stats.PauseEnd[k])), g.stats.Pause[k]}
	}
	return all
}

// gcTotals is what the collector did since the process began.
type gcTotals struct {
	cycles uint64
	pauses []uint64 // counts of the buckets
	upper  []int64  // upper edges of the buckets, ns; the lower one where there is no upper
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
	// A metric that a later Go drops is of KindBad: it stays zero.
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

// upperEdges converts the edges of n buckets, n+1 of them in seconds, to the n
// upper ones in ns. The last bucket may have no upper edge.
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

// since returns what happened between two readings.
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
		gc.LongestNS = t.upper[i] // edges ascend
	}
	return gc
}
