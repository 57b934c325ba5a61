package engine

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// A Stage is a point of a run that every worker reaches before any proceeds.
type Stage uint8

// The stages, in order.
const (
	Declared  Stage = iota // the destinations exist
	Opened                 // every producer is open, every subscription ready; the epoch is agreed
	Filled                 // mode Backlog: all that was sent is confirmed, or the system accepts no more
	Left                   // no worker uses the destinations any more; only the worker that removes them waits
	NumStages              // number of stages
)

// String returns the stage's name in messages.
func (s Stage) String() string {
	if s >= NumStages {
		return "invalid"
	}
	return [...]string{Declared: "declared", Opened: "opened", Filled: "filled", Left: "left"}[s]
}

// Peers connects a worker with the other workers of the run and with the coordinator that decides
// for all. A run in one process has one too.
//
// Its methods are called by one goroutine at a time.
type Peers interface {
	// Meet reports that this worker has reached a stage. It blocks until every other worker has,
	// until ctx ends, or until the others fail, and then returns the reason. p stays valid, for use
	// by any goroutine, until Execute returns.
	Meet(ctx context.Context, stage Stage, p *Progress) (Agreed, error)
	// Orders reports the status of this worker and returns what was decided last. It is called
	// every few milliseconds while messages are offered, while the run drains and while it keeps
	// listening, and must not block for long. It must not keep s.
	Orders(s *Status) Orders
}

// Agreed is the result of a meeting.
type Agreed struct {
	// EpochNS is the run's epoch on this host's monotonic clock: set for Opened, in mode Consume
	// for Declared.
	EpochNS int64
	// Lay is, for Filled, the number of messages confirmed and not delivered, in the subscription
	// with the most.
	Lay uint64
	// Removes says, for Left, that this worker removes the destinations, because the one that
	// created them is gone.
	Removes bool
}

// Orders are the decisions for all workers.
type Orders struct {
	Stop  bool   // offer nothing more
	Why   string // the reason, if the run failed elsewhere; "" otherwise
	Over  bool   // the drain has ended
	Leave bool   // consumers do not keep listening after the drain

	// Resume is when paused consumers resume, ns since the epoch; 0: undecided, or the Pause has a
	// duration.
	Resume int64
}

// A Status is the state of a worker at an instant.
type Status struct {
	At        int64 // ns since the run's epoch
	Draining  bool
	Open      uint64 // messages handed over and not completed, plus one for each producer that has not reached its end
	Confirmed uint64 // messages
	Failed    string // why this worker ended at once; "" otherwise
	Gone      string // why it considers the system gone for good; "" otherwise
	Cut       bool   // it was asked to end at once
	Complete  bool   // while draining: it knows of no missing message
	Replying  bool   // a consumer is sending a reply
	Last      int64  // the latest delivery or end of work, of all subscriptions
	Subs      []SubscriptionStatus
}

// A SubscriptionStatus is the state of one subscription's consumers in one worker.
type SubscriptionStatus struct {
	Distinct uint64 // first deliveries
	Dead     uint64 // dead letters
	Passed   uint64 // see measure.Behind
	Last     int64  // the latest delivery or end of work
	Cut      bool   // a consumer lost its connection and has received nothing since
}

// Progress gives the coordinator access to a worker.
type Progress struct{ run *run }

func (r *run) hands() *Progress { return &Progress{r} }

// Facts returns what was read from the running system; valid at stage Opened only.
func (p *Progress) Facts() driver.Facts { return p.run.facts }

// Holds asks the system whether a subscription has nothing left to deliver, as far as this worker
// can know: from its own connections and the system's own count. answered is false if the system
// does not answer within half a second.
func (p *Progress) Holds(sub int) (nothing, answered bool) { return p.run.holdsNothing(sub) }

// Adopt reports what all workers together have received of the streams that this one receives and
// does not send, so that its ledger need not keep deliveries to others as holes: see ledger.Adopt.
// It takes ownership of deliveries. If several arrive before one is taken, the latest counts.
func (p *Progress) Adopt(deliveries *ledger.Part) { p.run.adopt.Store(deliveries) }

// status fills s.
func (r *run) status(s *Status, draining bool) {
	s.At, s.Draining = r.now(), draining
	s.Open, s.Confirmed = r.outstanding(), r.ledger.Confirmations()
	s.Complete, s.Replying, s.Last = r.complete.Load(), r.replying(), r.lastDelivery()
	s.Cut = r.outer.Err() != nil
	open, _ := r.inFlight()
	r.stall.look(s.At, s.Confirmed, open)
	s.Failed, s.Gone = "", ""
	if f := r.failed.Load(); f != nil {
		s.Failed = *f
	}
	if e := r.gone.Load(); e != nil {
		s.Gone = (*e).Error()
	}
	if len(s.Subs) != len(r.receivers) {
		s.Subs = make([]SubscriptionStatus, len(r.receivers))
	}
	for sub := range s.Subs {
		last := max(r.ledger.LastDelivery(sub), r.lastWork(sub, s.At))
		x := r.subscriptionStatus(sub)
		x.Last, x.Cut = last, r.isCut(sub)
		s.Subs[sub] = x
		s.Last = max(s.Last, last)
	}
}

// An Outcome is the result of the drain.
type Outcome struct {
	Dry         []bool // by subscription: it ran dry, so what is missing is lost
	Needs       int64  // ns that the pending messages would still have needed at the observed rate; 0: unknown, or none pending
	Peaks       Peaks  // of the backlog
	Interrupted bool   // the run was asked to stop early
	Ended       int64  // end of the run, if all of its processes vanished
	// Together is what the processes observed beside their own snapshots: the sum of what a coordinator does not keep by process.
	Together measure.Snapshot
}

// An Outline is what a coordinator needs to know about a run before it begins.
type Outline struct {
	Limits  ledger.Limits // streams and subscriptions, including those of replies
	From    int64         // start of the measured window, ns since the epoch
	Owed    bool          // it is known what the subscriptions should receive
	Replies int           // the subscription of the replies; 0: none
}

// Outline returns the outline of the run of cfg.
func (c *Config) Outline() (Outline, error) {
	sh, err := newShape(*c)
	if err != nil {
		return Outline{}, err
	}
	o := Outline{Limits: ledger.Limits{Streams: sh.plan.Streams(), Subscriptions: sh.subscriptions()}, From: sh.from, Owed: sh.owed()}
	if sh.echoing {
		o.Replies = replies
	}
	return o, nil
}
