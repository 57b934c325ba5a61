package measure

import (
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
)

// MostStages is the maximum number of stages that are recorded separately.
const MostStages = 32

// A Stage is what was recorded of one part of the measured window. A message belongs to the stage
// of its due instant, whenever it is sent, confirmed or delivered. The zero value is empty and
// ready.
type Stage struct {
	Offered                   uint64           // messages due in it: handed over, dropped or unsent
	Sent, Confirmed, Received uint64           // events with their own instant in it, due in any stage
	Kinds                     [NumKinds]Counts // of messages due in it; only responses and those on time
}

// Merge adds o, another worker's record of the same stage.
func (g *Stage) Merge(o *Stage) {
	from := o.fields()
	for i, v := range g.fields() {
		*v += *from[i]
	}
	for k := range g.Kinds {
		g.Kinds[k].Merge(&o.Kinds[k])
	}
}

func (g *Stage) fields() [4]*uint64 {
	return [...]*uint64{&g.Offered, &g.Sent, &g.Confirmed, &g.Received}
}

// stages are a shard's stages; nil if the run has none.
type stages struct {
	begins []int64 // ascending, in ns since the epoch
	end    int64   // of the last
	of     []stage
}

// A stage belongs to one shard. Fields written by different goroutines are kept apart.
type stage struct {
	response, onTime *Histogram
	_                [64]byte
	offered, sent    atomic.Uint64
	_                [64]byte
	confirmed        atomic.Uint64
	received         atomic.Uint64
	_                [64]byte
}

func newStages(cfg *Config) *stages {
	if len(cfg.Stages) == 0 {
		return nil
	}
	s := &stages{begins: cfg.Stages, end: cfg.To, of: make([]stage, len(cfg.Stages))}
	for i := range s.of {
		s.of[i].response, s.of[i].onTime = NewHistogram(), NewHistogram()
	}
	return s
}

// indexAt returns the stage of an instant; -1 if none.
func indexAt(begins []int64, end, t int64) int {
	if len(begins) == 0 || t < begins[0] || t >= end {
		return -1
	}
	low, high := 0, len(begins) // begins[low] <= t < begins[high]
	for high-low > 1 {
		if mid := int(uint(low+high) >> 1); t < begins[mid] {
			high = mid
		} else {
			low = mid
		}
	}
	return low
}

// at returns the stage of an instant, or nil.
func (s *stages) at(t int64) *stage {
	if i := indexAt(s.begins, s.end, t); i >= 0 {
		return &s.of[i]
	}
	return nil
}

// Stages returns what has been recorded of each stage so far; nil if stages are not recorded
// separately. It is exact once recording has stopped. It allocates.
func (r *Recorder) Stages() []Stage {
	if len(r.cfg.Stages) == 0 {
		return nil
	}
	out := make([]Stage, len(r.cfg.Stages))
	for i := range out {
		g := &out[i]
		for _, x := range r.staged {
			own := &x.stages.of[i]
			own.response.addTo(&g.Kinds[x.response])
			own.onTime.addTo(&g.Kinds[x.onTime])
			g.Offered += own.offered.Load()
			g.Sent += own.sent.Load()
			g.Confirmed += own.confirmed.Load()
			g.Received += own.received.Load()
		}
		for b := range r.notSent.bins[slotOf(i)] {
			g.Offered += r.notSent.bins[slotOf(i)][b].Load()
		}
	}
	return out
}

// staged is the stages of one shard, and the kinds that they hold.
type staged struct {
	stages           *stages
	response, onTime Kind
}

// checkStages panics on stages that do not fit the window: that is a programming error.
func (cfg *Config) checkStages() {
	if n := len(cfg.Stages); n > MostStages || n > 0 && (cfg.Closed || cfg.Stages[0] != cfg.From ||
		!sort.SliceIsSorted(cfg.Stages, func(i, j int) bool { return cfg.Stages[i] < cfg.Stages[j] })) {
		panic(fmt.Sprintf("measure: stages that begin at %v in a window from %d", slices.Clone(cfg.Stages), cfg.From))
	}
}

// handed counts a message that was due and is handed over at start.
func (s *stages) handed(due, start int64) {
	if g := s.at(due); g != nil {
		g.offered.Add(1)
	}
	if g := s.at(start); g != nil {
		g.sent.Add(1)
	}
}
