package engine

import (
	"sync/atomic"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/result"
)

// recall enters into the ledger what the run named by Config.Of sent.
func (r *run) recall() {
	for i := range r.cfg.Of {
		s, stream := &r.cfg.Of[i], uint32(i)
		r.ledger.MeasureFrom(stream, 0) // includes its warm-up: headers do not mark it
		failed, unconfirmed := s.Failed, s.Unconfirmed
		for seq := range s.Sent {
			r.ledger.Sent(stream, seq, 0, 0)
			switch {
			case in(&unconfirmed, seq):
			case in(&failed, seq):
				r.ledger.Failed(stream, seq)
			default:
				r.ledger.Confirmed(stream, seq)
			}
		}
	}
}

// in reports whether seq is in all, which is in ascending order, and drops the ranges below it.
func in(all *[]result.Seqs, seq uint64) bool {
	for len(*all) > 0 && (*all)[0].Last < seq {
		*all = (*all)[1:]
	}
	return len(*all) > 0 && (*all)[0].First <= seq
}

// streams returns what a run sent to destinations that remain, for a later run that names it; nil
// if that is not known message by message, or is too much.
func (j *assembly) streams() []result.Stream {
	if j.cfg.Mode != Produce || j.cfg.Names == nil {
		return nil
	}
	all := make([]result.Stream, j.plan.Streams())
	for i := range all {
		all[i].Destination = j.names[j.plan.DestinationOf(uint32(i))]
	}
	n := len(all)
	known := j.ledger.Fates(func(stream uint32, fate ledger.Fate, lo, hi uint64) {
		s := &all[stream]
		s.Sent = hi
		into := &s.Failed
		switch fate {
		case ledger.FateConfirmed:
			return
		case ledger.FateUnconfirmed:
			into = &s.Unconfirmed
		}
		if last := len(*into) - 1; last >= 0 && (*into)[last].Last+1 == lo {
			(*into)[last].Last = hi - 1
		} else if n++; n <= result.MostStreams {
			*into = append(*into, result.Seqs{First: lo, Last: hi - 1})
		}
	})
	if !known || n > result.MostStreams {
		return nil
	}
	return all
}

// An OfRun counts messages that other runs of weir sent, by their headers.
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

// An ofRun is one consumer's OfRun while it receives.
type ofRun struct {
	run                 atomic.Uint32
	several             atomic.Bool
	messages, corrupted atomic.Uint64
}

// take counts a message without a header of this run.
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

// ofRun sums up what the consumers received from other runs of weir; nil if nothing.
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
