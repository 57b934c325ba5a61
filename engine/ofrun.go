package engine

import (
	"sync/atomic"

	"github.com/weirmq/weir/internal/stamp"
)

// An OfRun counts messages that other runs of weir sent, by their stamps.
type OfRun struct {
	Run       uint32 // number of the run that sent the first of them
	Several   bool   // other runs sent some of them
	Messages  uint64
	Corrupted uint64 // of these, with a damaged body
}

// merge adds what another consumer or process counted.
func (o *OfRun) merge(from *OfRun) {
	if o.Messages == 0 {
		o.Run = from.Run
	}
	o.Several = o.Several || from.Several || from.Messages > 0 && o.Run != from.Run
	o.Messages += from.Messages
	o.Corrupted += from.Corrupted
}

// An ofRun is an OfRun of one consumer while it receives.
type ofRun struct {
	run                 atomic.Uint32
	several             atomic.Bool
	messages, corrupted atomic.Uint64
}

// take counts a message without a stamp of this run.
func (o *ofRun) take(payload []byte) {
	run, ok := stamp.RunOf(payload)
	if !ok {
		return
	}
	if o.messages.Add(1) == 1 {
		o.run.Store(run)
	} else if o.run.Load() != run {
		o.several.Store(true)
	}
	var st stamp.Stamp
	if stamp.Read(payload, run, &st) == stamp.Corrupted {
		o.corrupted.Add(1)
	}
}

// ofRun sums up what the consumers received of other runs of weir; nil for nothing.
func (r *run) ofRun() *OfRun {
	sum := &OfRun{}
	for _, ks := range r.receivers {
		for _, k := range ks {
			sum.merge(&OfRun{Run: k.of.run.Load(), Several: k.of.several.Load(), Messages: k.of.messages.Load(), Corrupted: k.of.corrupted.Load()})
		}
	}
	if sum.Messages == 0 {
		return nil
	}
	return sum
}
