package engine

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
)

// A Stage is a point of a run that every part reaches before any goes on.
type Stage uint8

// The stages, in their order.
const (
	Declared  Stage = iota // the destinations are there
	Opened                 // every producer is open, every subscription ready; the epoch is agreed on
	Filled                 // mode Backlog: all that was sent is confirmed, or no more is taken
	Left                   // no part uses the destinations any more; only the part that removes them waits
	NumStages              // how many there are
)

// String returns the stage's name in messages.
func (s Stage) String() string {
	if s >= NumStages {
		return "invalid"
	}
	return [...]string{Declared: "declared", Opened: "opened", Filled: "filled", Left: "left"}[s]
}

// A Peers is the processes that do the other parts of the same run, and the one that
// decides for all. A run that one process does alone has one too.
//
// Its methods are called by one goroutine at a time.
type Peers interface {
	// Meet says that this part has come to a stage, and waits until every other
	// has, or ctx ends, or the others are not going on: then with the reason. p
	// stays valid, for use by any goroutine, until Execute returns.
	Meet(ctx context.Context, stage Stage, p *Progress) (Agreed, error)
	// Orders tells how this part stands and returns what was decided last. It is
	// called every few milliseconds while messages are offered, while the run drains
	// and while it listens on, and does not block for long. s is the engine's again on return.
	Orders(s *Status) Orders
}

// Agreed is what a meeting agreed on.
type Agreed struct {
	// EpochNS is the run's epoch on this host's monotonic clock: of Opened, in mode
	// Consume of Declared.
	EpochNS int64
	// Lay is, of Filled, how many messages are confirmed and not delivered, of the
	// subscription that has most.
	Lay uint64
	// Removes says, of Left, that this part removes the destinations, because the
	// one that made them is gone.
	Removes bool
}

// Orders are what was decided for all parts.
type Orders struct {
	Stop  bool   // nothing more is offered
	Why   string // where that is because the run failed elsewhere; "" otherwise
	Over  bool   // the drain has ended
	Leave bool   // consumers do not listen on after the drain

	// Resume is when paused consumers go on, ns since the epoch; 0: it is not fixed, or the
	// Pause has a length.
	Resume int64
}

// A Status is how a part stands at an instant.
type Status struct {
	At        int64 // ns since the run's epoch
	Draining  bool
	Open      uint64 // messages handed over and not completed, and one for each producer that has not come to its end
	Confirmed uint64 // messages
	Failed    string // why this part ended at once; "" otherwise
	Gone      string // why it holds the system to be gone for good; "" otherwise
	Cut       bool   // it was told to end at once
	Complete  bool   // draining: nothing that it knows of is missing
	Replying  bool   // a consumer is sending a reply
	Last      int64  // the latest delivery or end of work, of all subscriptions
	Subs      []SubscriptionStatus
}

// A SubscriptionStatus is how a subscription's consumers of one part stand.
type SubscriptionStatus struct {
	Distinct uint64 // first deliveries
	Dead     uint64 // dead letters
	Passed   uint64 // see measure.Behind
	Last     int64  // the latest delivery or end of work
	Cut      bool   // a consumer lost its connection and got nothing since
}

// Progress is a part's hands for whoever decides.
type Progress struct{ run *run }

func (r *run) hands() *Progress { return &Progress{r} }

// Facts returns what was read from the running system; of the stage Opened only.
func (p *Progress) Facts() driver.Facts { return p.run.facts }

// Holds asks the system whether a subscription has nothing more to get, as far as
// this part can know: its own connections, and what the system tells of all.
// answered is false when the system does not answer within half a second.
func (p *Progress) Holds(sub int) (nothing, answered bool) { return p.run.holdsNothing(sub) }

// Adopt tells the part what all parts together have got of the streams that it
// receives and does not send, so that its own ledger need not keep what went to
// others as holes: see ledger.Adopt. deliveries is the engine's from here on. Of
// several that come before one was taken the latest counts.
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
		x := r.reception(sub)
		x.Last, x.Cut = last, r.isCut(sub)
		s.Subs[sub] = x
		s.Last = max(s.Last, last)
	}
}

// An Outcome is what the drain found.
type Outcome struct {
	Dry         []bool // by subscription: it ran dry, so that what is missing is lost
	Needs       int64  // ns that the pending messages would still have needed at the rate seen; 0: unknown, or none are
	Peaks       Peaks  // of the backlog
	Interrupted bool   // the run was asked to stop before its end
	Ended       int64  // of the run, where all of its processes vanished
}

// An Outline is what a coordinator needs to know of a run before it begins.
type Outline struct {
	Limits  ledger.Limits // streams and subscriptions, those of the replies among them
	From    int64         // where the measured window begins, ns since the epoch
	Owed    bool          // it is known what the subscriptions should get
	Replies int           // the subscription of the replies; 0: there is none
}

// Outline returns that of the run of cfg.
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
