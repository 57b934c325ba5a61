package engine

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
)

// errRefused returns deliveries to the system because a consumer fails on purpose.
var errRefused = errors.New("the consumer refuses it, as the scenario says")

// A refusing is how often one consumer refuses what a client call yields. Only the goroutine
// that delivers changes it, but for the counts.
type refusing struct {
	share uint64 // of all numbers; 0: nothing is refused
	state uint64 // of SplitMix64
	count [measure.NumPhases]atomic.Uint64
}

// begin sets what a consumer refuses; all that a run draws follows from its seed.
func (r *refusing) begin(share float64, seed uint64, sub, index int) {
	if share > 0 {
		r.share = uint64(math.Min(share*math.MaxUint64, math.MaxUint64-1))
		r.state = seed + uint64(sub)<<32 + uint64(index)<<1 + 1
	}
}

// draw reports whether the next is refused (SplitMix64: Steele, Lea, Flood 2014).
func (r *refusing) draw() bool {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z^z>>31 < r.share
}

// refuses draws whether the consumer refuses what a client call yielded, and counts those
// of this run. The ledger knows nothing of them: they are received when they are accepted.
func (k *receiver) refuses(ds []driver.Delivery) bool {
	if !k.refusing.draw() {
		return false
	}
	at := k.run.now()
	if k.first.Load() == 0 {
		k.first.Store(at)
	}
	k.last.Store(at)
	var st stamp.Stamp
	for i := range ds {
		if stamp.Read(ds[i].Payload, k.run.cfg.Run, &st) != stamp.Foreign {
			k.refusing.count[k.run.recorder.Phase(st.Due)].Add(1)
		}
	}
	return true
}

// refused adds up what the consumers refused, by phase.
func (r *run) refused() (n [measure.NumPhases]uint64) {
	for _, ks := range r.receivers {
		for _, k := range ks {
			for p := range n {
				n[p] += k.refusing.count[p].Load()
			}
		}
	}
	return n
}
