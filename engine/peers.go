package engine

import (
	"context"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
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
	peaks       peaks  // of the backlog
	Interrupted bool   // the run was asked to stop before its end
	Ended       int64  // of the run, where all of its processes vanished
}

// A DrainPolicy decides for all parts of a run when the drain is over and which
// subscriptions ran dry. One goroutine uses it.
type DrainPolicy struct {
	shape   *shape
	began   int64           // the drain; -1 before
	backlog measure.Backlog // when the drain began
	open    uint64          // as of the last look
	changed int64           // and when it changed
	calm    []int64         // of each subscription: when its unbroken series of the answer "nothing" began; -1: there is none
	asked   []int64         // and when it was asked last
	resume  int64           // see Orders; 0: not yet
	outcome Outcome
}

// NewDrainPolicy returns one for the run of cfg. The share in cfg does not matter.
func NewDrainPolicy(cfg Config) (*DrainPolicy, error) {
	sh, err := newShape(cfg)
	if err != nil {
		return nil, err
	}
	n := sh.subscriptions()
	c := &DrainPolicy{shape: sh, began: -1, calm: make([]int64, n), asked: make([]int64, n), outcome: Outcome{Dry: make([]bool, n)}}
	for sub := range c.calm {
		c.calm[sub] = -1
	}
	return c, nil
}

// Limits returns how many streams and subscriptions the run has, the replies'
// among them.
func (c *DrainPolicy) Limits() ledger.Limits {
	return ledger.Limits{Streams: c.shape.plan.Streams(), Subscriptions: c.shape.subscriptions()}
}

// From returns where the measured window begins, ns since the epoch.
func (c *DrainPolicy) From() int64 { return c.shape.from }

// Outcome returns what was found until now.
func (c *DrainPolicy) Outcome() Outcome { return c.outcome }

// resumeLead is how long before it all parts hear of the instant at which paused consumers go on.
const resumeLead = 300 * time.Millisecond

// Look takes how all parts stand at the instant now, and returns what they shall
// do. complete reports whether nothing is missing, of all that was confirmed; it
// is asked only when nothing is open any more. holds asks the system about a
// subscription, as Progress.Holds does.
func (c *DrainPolicy) Look(now int64, parts []Status, complete func() bool, holds func(sub int) (nothing, answered bool)) Orders {
	behind := Behind(parts)
	c.outcome.peaks.note(now, behind)
	draining, idle := len(parts) > 0, true
	if p := c.shape.cfg.Pause; c.resume == 0 && p.Waiting > 0 && now >= c.shape.from+int64(p.At) && behind.Waiting() >= p.Waiting {
		c.resume = now
		if len(parts) > 1 {
			c.resume += int64(resumeLead)
		}
	}
	o := Orders{Resume: c.resume}
	for i := range parts {
		p := &parts[i]
		draining = draining && p.Draining
		idle = idle && p.At-p.Last > int64(IdleLimit)
		if why := p.Failed + p.Gone; why != "" && !o.Stop {
			o.Stop, o.Why = true, why
		}
	}
	switch {
	case draining:
		o.Stop, o.Over = true, c.drain(now, parts, complete, holds)
	case c.shape.cfg.Mode == Consume && idle:
		o.Stop = true
	}
	return o
}

// drain decides whether the drain is over: nothing is open, or every subscription
// that misses something has run dry since the last confirmation, or the limit has
// come.
//
// A subscription has run dry when the system has answered "nothing" for dryLimit,
// each time it was asked, and nothing was delivered since the first of these answers.
// Silence alone proves nothing: a system that stands still is silent too.
func (c *DrainPolicy) drain(now int64, parts []Status, complete func() bool, holds func(sub int) (nothing, answered bool)) bool {
	var open uint64
	over, replying := false, false
	heard := now // as of when all parts are known
	for i := range parts {
		open += parts[i].Open
		replying = replying || parts[i].Replying
		over = over || parts[i].Failed != "" || parts[i].Cut
		heard = min(heard, parts[i].At)
	}
	if c.began < 0 {
		c.began, c.changed, c.open, c.backlog = now, now, open, Behind(parts)
	}
	if open != c.open { // what a slow system confirms only now it may deliver only now
		c.open, c.changed = open, now
	}
	limit := c.began + int64(c.shape.cfg.Drain)
	dry := c.outcome.Dry
	missing := len(dry) > 0 && c.shape.owed() && (open > 0 || !complete())
	all, answers := true, true
	for sub := range dry {
		last, cut := c.changed, false
		for i := range parts {
			if sub < len(parts[i].Subs) {
				last, cut = max(last, parts[i].Subs[sub].Last), cut || parts[i].Subs[sub].Cut
			}
		}
		// Where a consumer lost its connection and got nothing since, what is missing
		// may still be on its way. At the limit that holds only of a system that keeps
		// messages for consumers who are away: what another sent meanwhile is gone.
		cut = cut && (now < limit || c.shape.cfg.Definition.Capabilities.Retains)
		// A consumer that is held up by a reply gets nothing meanwhile; as long as
		// requests come, replies will.
		if last > c.calm[sub] || replying || c.shape.isReplies(sub) && !dry[requests] {
			c.calm[sub] = -1
		}
		// What was delivered before the latest answer is known of here only when
		// every part has told how it stood after that.
		told := heard-c.asked[sub] >= int64(tellLimit)
		dry[sub] = c.calm[sub] >= 0 && c.asked[sub]-c.calm[sub] >= int64(dryLimit) && told && !cut
		quiet := !replying && now-last >= int64(quietLimit)
		if missing && quiet && !dry[sub] && answers && now >= c.asked[sub]+int64(askLimit) {
			var nothing bool
			nothing, answers = holds(sub)
			switch {
			case !nothing:
				c.calm[sub] = -1
			case c.calm[sub] < 0:
				c.calm[sub] = now
			}
			c.asked[sub] = now
		}
		all = all && dry[sub]
	}
	if done := open == 0 && (!missing || all); !done && now < limit && !over {
		return false
	}
	if open == 0 && !missing {
		for sub := range dry {
			dry[sub] = true // nothing is missing
		}
		return true
	}
	for sub, x := range Behind(parts) {
		if sub >= len(dry) || dry[sub] || sub >= len(c.backlog) {
			continue // what is missing is lost
		}
		left := x.Missing - min(x.Missing, x.Passed)
		if done := int64(c.backlog[sub].Missing) - int64(x.Missing); done > 0 && left > 0 {
			c.outcome.Needs = max(c.outcome.Needs, int64(float64(left)/float64(done)*float64(now-c.began)))
		}
	}
	return true
}
