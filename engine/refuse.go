package engine

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
)

// errRefused nacks deliveries because a consumer fails on purpose.
var errRefused = errors.New("the consumer refuses it, as the scenario says")

// A refusing decides how often one consumer nacks what a client call yields. Except for the counts,
// only the delivering goroutine modifies it.
type refusing struct {
	share uint64 // threshold for a 64-bit random number; 0: never nack
	state uint64 // of SplitMix64
	count [measure.NumPhases]atomic.Uint64
}

// begin configures a consumer's nacks; all random draws of a run derive from its seed.
func (r *refusing) begin(share float64, seed uint64, sub, index int) {
	if share > 0 {
		r.share = uint64(math.Min(share*math.MaxUint64, math.MaxUint64-1))
		r.state = seed + uint64(sub)<<32 + uint64(index)<<1 + 1
	}
}

// draw reports whether to nack the next (SplitMix64: Steele, Lea, Flood 2014).
func (r *refusing) draw() bool {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z^z>>31 < r.share
}

// refuses draws whether the consumer nacks what a client call yielded, and counts those of this
// run. The ledger does not see them: they count as received when they are accepted.
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

// refused returns the nacks of all consumers, by phase.
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
