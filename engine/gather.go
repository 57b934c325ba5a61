package engine

import (
	"runtime"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// recorderConfig sizes the recorder: enough shards that the cores seldom contend for one, few
// enough that 2 MiB each stay small.
func (r *run) recorderConfig() measure.Config {
	shards := 2 * runtime.NumCPU()
	c := measure.Config{
		SendShards: min(shards, max(1, r.assigned.producers())), ReceiveShards: min(shards, max(1, r.cfg.Subscriptions*len(r.assigned.ownConsumers(r.cfg.Consumers)))),
		From: r.from, To: r.to, Closed: r.closed(), Horizon: r.to,
	}
	if len(r.sizes) == 1 {
		c.Bytes = r.sizes[0]
	}
	if n := len(r.stages); n > 0 { // each shard has all stages: the more stages, the fewer shards
		c.Stages = r.stages
		most := max(1, mostStaged/n)
		c.SendShards, c.ReceiveShards = min(c.SendShards, most), min(c.ReceiveShards, most)
	}
	c.Replied = r.native
	if r.echoing {
		c.ReplyShards = c.SendShards
	}
	if r.cfg.Mode == Consume {
		c.SendShards, c.From, c.Bytes = 1, 0, 0
	}
	return c
}

// mostStaged is the maximum number of stages over all shards of a side. They take 67 MiB, of which
// only touched pages become resident.
const mostStaged = 128

// A cut is the state of the window at the instant when it was cut short.
type cut struct {
	to     int64 // since the epoch; r.to stays the plan's, which producers still read
	window measure.Window
	stages []measure.Stage
}

// gather fills part after everything has stopped. cut is nil if the window was not cut short.
func (r *run) gather(part *WorkerResult, cut *cut) {
	part.From, part.To = r.from, r.to
	if part.Cut = cut != nil; part.Cut {
		part.To = cut.to
	}
	switch {
	case r.cfg.Mode == Consume:
		part.From, part.To = r.firstDelivery(), r.lastDelivery()
		if part.From == never {
			part.From = 0
		}
	case r.closed() && r.cfg.Messages > 0:
		// A count ends with its last confirmation, not when that was noticed.
		part.To = part.From
		for _, s := range r.senders {
			part.To = max(part.To, s.lastDone.Load())
		}
	}
	part.To = max(part.From, min(part.To, part.Ended))
	r.recorder.Read(part.Ended, &part.Snapshot)
	if cut != nil {
		part.Snapshot.Window = cut.window
	}
	part.Stages = r.recorder.Stages()
	if cut != nil {
		for i := range part.Stages { // what came after the cut counts in no rate
			of := &cut.stages[i]
			part.Stages[i].Sent, part.Stages[i].Confirmed, part.Stages[i].Received = of.Sent, of.Confirmed, of.Received
		}
	}
	if f := r.failed.Load(); f != nil {
		part.Failed = *f
	}
	for _, l := range r.pacers {
		part.PacerWaits += l.waits.Load()
		part.Behind += l.behind
		part.Inside.add(&Inside{Unreported: l.account.unreported})
		part.FirstNS = max(part.FirstNS, l.first)
	}
	for _, s := range r.senders {
		part.Inside.add(&s.inside)
		part.Abandoned += s.abandoned.Load()
		part.ForeignReplies += s.foreign.Load()
		part.CorruptedReplies += s.corrupted.Load()
		for phase := range s.misrouted {
			part.MisroutedReplies[phase] += s.misrouted[phase].Load()
		}
	}
	for _, e := range r.echoes {
		part.Abandoned += e.abandoned.Load()
	}
	if r.cfg.Mode == Backlog {
		part.Drained = r.drained()
		if part.Drained.Began > 0 {
			r.event("backlog", r.account(part.Drained))
		}
	}
	if r.cfg.Mode != Backlog && r.apart() {
		part.Receiving = r.drained()
	}
	part.OfRun = r.ofRun()
	part.Paused = r.pausing.sum()
	part.Refused = r.refused()
	part.Errors = r.errs.list()
	part.Slowest = r.slowest()
	part.Negative = r.negative
	if !r.closed() {
		r.recorder.NotSent(part.Ended, func(p measure.Phase, stage int, age int64, n uint64) {
			part.NotSent = append(part.NotSent, Group{Phase: p, Stage: stage, AgeNS: age, N: n})
		})
	}
	r.ledger.LastPart(&part.Ledger)
	if late := r.late.Load(); late != nil && r.lateCame > 0 {
		part.Late = new(ledger.Part)
		late.LastPart(part.Late)
	}
	if m := r.deadReceiver.Load(); m != nil && m.came > 0 {
		part.Dead = new(ledger.Part)
		m.ledger.LastPart(part.Dead)
	}
}
