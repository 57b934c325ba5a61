package engine

import (
	"runtime"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// recorderConfig chooses how finely the recorder is divided: enough shards that
// the cores seldom meet in one, few enough that 2 MiB each stay small.
func (r *run) recorderConfig() measure.Config {
	shards := 2 * runtime.NumCPU()
	c := measure.Config{
		SendShards: min(shards, max(1, r.cfg.Plan.Producers)), ReceiveShards: min(shards, max(1, r.cfg.Subscriptions*r.cfg.Consumers)),
		From: r.from, To: r.to, Closed: r.closed(), Horizon: r.to,
	}
	if len(r.sizes) == 1 {
		c.Bytes = r.sizes[0]
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

// gather fills raw from everything that has stopped.
func (r *run) gather(raw *Raw, c *collector, cut *measure.Window) {
	raw.From, raw.To = r.from, r.to
	switch {
	case r.cfg.Mode == Consume:
		raw.From, raw.To = r.firstDelivery(), r.lastDelivery()
		if raw.From == never {
			raw.From = 0
		}
	case r.closed() && r.cfg.Messages > 0:
		// A count ends with its last confirmation, not when that was noticed.
		raw.To = raw.From
		for _, s := range r.senders {
			raw.To = max(raw.To, s.lastDone.Load())
		}
	}
	raw.To = max(raw.From, min(raw.To, raw.Ended))
	r.recorder.Read(raw.Ended, &raw.Snapshot)
	if cut != nil {
		raw.Snapshot.Window = *cut
	}
	raw.Backlog = max(c.backlog, r.ledger.Backlog())
	raw.Evicted = r.ledger.Evicted()
	if f := r.failed.Load(); f != nil {
		raw.Failed = *f
	}
	for _, l := range r.lanes {
		raw.LaneWaits += l.waits.Load()
	}
	for _, s := range r.senders {
		raw.Abandoned += s.abandoned.Load()
		raw.ForeignReplies += s.foreign.Load()
		raw.CorruptedReplies += s.corrupted.Load()
	}
	for _, e := range r.echoes {
		raw.Abandoned += e.abandoned.Load()
	}
	raw.Subscriptions = len(r.receivers)
	if r.cfg.Mode == Backlog {
		raw.Drained = r.drained()
		raw.Backlog = max(raw.Backlog, raw.Drained.Lay)
		if raw.Drained.Began > 0 {
			r.event("backlog", r.account(raw.Drained))
		}
	}
	raw.Errors = r.errs.list()
	if cut == nil && !r.closed() && r.cfg.Mode != Consume {
		raw.Planned = r.planned()
	}
	r.censor(raw)
	r.count(raw)
}

// planned counts the plan anew, so that what the lanes say has something to be
// held against; 0 where that would take long.
func (r *run) planned() (n uint64) {
	const most = 5_000_000
	for range r.plan.Due(schedule.Part{Count: 1}) {
		if n++; n > most {
			return 0
		}
	}
	return n
}

// censor adds what did not complete, at its age at the end of the drain
// (DESIGN 2, Censoring).
func (r *run) censor(raw *Raw) {
	end := raw.Ended
	age := func(from int64) int64 { return max(0, end-from) }
	add := func(k measure.Kind, p measure.Phase, v int64, n uint64) {
		if r.cfg.Mode == Backlog && (k == measure.E2EResponse || k == measure.E2EService) {
			return // which this mode does not have
		}
		raw.Censored[k][p].Add(v, n)
	}
	open := !r.closed()
	response, service := r.confirmKinds()
	r.ledger.Unsuccessful(func(_ ledger.Fate, measured bool, n uint64, due, start int64) {
		p := phaseOf(measured)
		if open {
			add(response, p, age(due), n)
		}
		add(service, p, age(start), n)
	})
	if open {
		r.recorder.NotSent(end, func(p measure.Phase, a int64, n uint64) {
			add(response, p, a, n)
			for sub := range r.receivers {
				response, _ := r.kindsOf(sub)
				add(response, p, a, n)
			}
		})
	}
	for sub := range r.receivers {
		response, service := r.kindsOf(sub)
		r.ledger.Undelivered(sub, func(_ ledger.Fate, measured bool, n uint64, due, start int64) {
			p := phaseOf(measured)
			if open {
				add(response, p, age(due), n)
			}
			add(service, p, age(start), n)
		})
	}
}

func phaseOf(measured bool) measure.Phase {
	if measured {
		return measure.Measure
	}
	return measure.WarmUp
}

// count fills the outcomes of the window and of the whole run.
func (r *run) count(raw *Raw) {
	var all, measured ledger.Book
	for sub := range r.receivers {
		a, m := r.ledger.Book(sub)
		if r.isReplies(sub) {
			// Replies come from several consumers at once: their order is nobody's
			// promise.
			a.Reordered, m.Reordered = 0, 0
		}
		addBook(&all, &a)
		addBook(&measured, &m)
		if len(r.receivers) > 1 {
			raw.Shares = append(raw.Shares, result.Subscription{
				Name: r.nameOf(sub), Messages: share(&m, raw.Dry[sub]), MessagesAll: share(&a, raw.Dry[sub]),
			})
		}
		into := func(msgs *result.Messages, b *ledger.Book) {
			if raw.Dry[sub] {
				msgs.Lost += b.Missing
			} else {
				msgs.Pending += b.Missing
			}
		}
		into(&raw.All, &a)
		into(&raw.Measured, &m)
	}
	// What stayed unconfirmed is the ledger's word, the rest the recorder's: two
	// that count apart, so that the books can fail to balance.
	sentAll, sentMeasured := r.ledger.Senders()
	fill := func(msgs *result.Messages, b, sent *ledger.Book, counters ...measure.Counters) {
		for _, c := range counters {
			msgs.Scheduled += c.Scheduled
			msgs.Sent += c.Sent
			msgs.Dropped += c.Dropped
			msgs.Unsent += c.Unsent
			msgs.Confirmed += c.Confirmed
			msgs.Failed += c.Failed
			msgs.Settled += c.Settled
		}
		if r.closed() {
			msgs.Scheduled = msgs.Sent // a closed loop schedules what it starts
		}
		msgs.Unconfirmed = sent.Unconfirmed
		if r.ledger.Evicted() > 0 {
			msgs.Unconfirmed = msgs.Sent - msgs.Confirmed - msgs.Failed // the ledger no longer knows
		}
		msgs.Delivered = b.Delivered
		msgs.Corrupted = b.Corrupted
		msgs.Duplicated = b.Duplicated
		msgs.Redelivered = b.Redelivered
		msgs.Reordered = b.Reordered
		msgs.Foreign = b.Foreign
		msgs.FailedDelivered = b.FailedDelivered
		msgs.UnconfirmedDelivered = b.UnconfirmedDelivered
	}
	raw.Damaged = all.CorruptedUnconfirmed + raw.CorruptedReplies
	all.Foreign += raw.ForeignReplies
	fill(&raw.All, &all, &sentAll, raw.Snapshot.Counters[:]...)
	fill(&raw.Measured, &measured, &sentMeasured, raw.Snapshot.Counters[measure.Measure])
}

// share is what one subscription's book says of it.
func share(b *ledger.Book, dry bool) result.Received {
	x := result.Received{
		Delivered: b.Delivered, Pending: b.Missing, Duplicated: b.Duplicated, Redelivered: b.Redelivered,
		Reordered: b.Reordered, Corrupted: b.Corrupted, Foreign: b.Foreign,
	}
	if dry {
		x.Pending, x.Lost = 0, b.Missing
	}
	return x
}

// nameOf is what a result calls one of several subscriptions.
func (r *run) nameOf(sub int) string {
	switch {
	case r.isReplies(sub):
		return "replies"
	case r.echoing:
		return "requests"
	}
	return "s" + itoa(sub)
}

// addBook sums what is per subscription; the sender's side is the same in each.
func addBook(sum, b *ledger.Book) {
	sum.Delivered += b.Delivered
	sum.Corrupted += b.Corrupted
	sum.Duplicated += b.Duplicated
	sum.Redelivered += b.Redelivered
	sum.Reordered += b.Reordered
	sum.Foreign += b.Foreign
	sum.FailedDelivered += b.FailedDelivered
	sum.UnconfirmedDelivered += b.UnconfirmedDelivered
	sum.CorruptedUnconfirmed += b.CorruptedUnconfirmed
}
