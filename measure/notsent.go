package measure

import (
	"math"
	"sync/atomic"
)

// notSent keeps the due instants of messages that were never handed over, in a bounded number of
// bins. Warm-up and stages have separate bins, so that the count per stage is exact.
type notSent struct {
	width  int64   // ns
	begins []int64 // of the slots but the first
	bins   [][]atomic.Uint64
}

const notSentBins = 1 << 16

// Slots of bins: one for the warm-up, then one per stage, or a single one if stages are not
// recorded separately.
const warmUpSlot = 0

// slotOf returns the slot of a stage.
func slotOf(stage int) int { return stage + 1 }

func (n *notSent) init(cfg *Config) {
	n.width = max(1, (cfg.Horizon+notSentBins-1)/notSentBins)
	if n.begins = cfg.Stages; len(n.begins) == 0 {
		n.begins = []int64{cfg.From}
	}
	n.bins = make([][]atomic.Uint64, 1+len(n.begins))
	for slot := range n.bins {
		n.bins[slot] = make([]atomic.Uint64, notSentBins+1) // the last: beyond the horizon
	}
}

// bin returns the bin of an instant.
func (n *notSent) bin(due int64) *atomic.Uint64 {
	slot := slotOf(indexAt(n.begins, math.MaxInt64, due)) // outside all stages: the warm-up's
	return &n.bins[slot][min(max(due, 0)/n.width, notSentBins)]
}

// after returns where the bin of an instant ends, at most to.
func (n *notSent) after(due, to int64) int64 {
	if next := slotOf(indexAt(n.begins, math.MaxInt64, due)); next < len(n.begins) {
		to = min(to, n.begins[next])
	}
	if b := max(due, 0) / n.width; b < notSentBins {
		return min(to, (b+1)*n.width)
	}
	return to
}

// NotSent visits the messages that were dropped or left unsent, in groups: n messages of phase p,
// each at least age ns old at end. stage counts from 0; it is also 0 for warm-up, and if stages are
// not recorded separately. The due instants are kept in 65,536 bins over the run, so an age is too
// small by at most a bin's width (0.5 ms in a run of 30 s); it is 0 for messages due beyond the
// horizon. Call it when recording has stopped.
func (r *Recorder) NotSent(end int64, visit func(p Phase, stage int, age int64, n uint64)) {
	for slot, bins := range r.notSent.bins {
		p, stage := Measure, slot-1
		if slot == warmUpSlot {
			p, stage = WarmUp, 0
		}
		for i := range bins {
			n := bins[i].Load()
			if n == 0 {
				continue
			}
			latest := int64(math.MaxInt64) // beyond the horizon nothing is known
			if i < notSentBins {
				latest = int64(i+1)*r.notSent.width - 1
			}
			visit(p, stage, max(0, end-min(latest, end)), n)
		}
	}
}
