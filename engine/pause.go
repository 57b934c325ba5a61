package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// A Pause has all consumers take nothing for a time while messages are sent. They stay
// connected: each waits inside Deliver. The zero value is none.
type Pause struct {
	At      time.Duration // since the end of the warm-up
	For     time.Duration // how long; 0: until Waiting
	Waiting uint64        // until so many messages are confirmed and not received; 0: for For
}

// Wanted reports whether there is one.
func (p Pause) Wanted() bool { return p.For > 0 || p.Waiting > 0 }

// A Paused is what became of a Pause. Instants are ns since the epoch, 0 where they did
// not come. Of several subscriptions the counts are of the one that has received least.
type Paused struct {
	Began, Resumed, CaughtUp int64

	Before   uint64 // 99 % of the looks before found at most so many messages waiting; caught up is when no more do
	Waiting  uint64 // when the consumers resumed
	Until    int64  // CaughtUp, or the end of what was observed: that of the plan
	Left     uint64 // waited then
	Received uint64 // first deliveries from Resumed until Until

	// Response times of first deliveries after the resume, by when they were due: before
	// it, or later. What never came is censored at its age at the end of the drain. Of what
	// was due before the resume that is only what the system may still hold: see censor.
	Old, Live                 measure.Counts
	OldCensored, LiveCensored measure.Counts `json:"-"`
	OldLost                   uint64         `json:"-"` // due before the resume and after Newest, but failed or lost: not in Old

	// Of a part of the run: all that it knows of what waits. The counts above are 0 then, but for
	// those of Old and Live. Nil of the whole run.
	Course *PauseCourse
	Newest []int64 // by subscription: the latest due instant of what it had received by the resume
	Step   int64   // how far the looks at what waits are apart, ns
}

// A pausing is a Pause on its way. look and end are called by the goroutine of Execute,
// took by the merge, pass by consumers.
type pausing struct {
	run       *run
	plan      Pause
	gate      atomic.Pointer[chan struct{}] // consumers wait for its closing; nil: they need not
	resumed   atomic.Int64
	state     Paused
	old, live *measure.Histogram
}

func newPausing(r *run) *pausing {
	if !r.cfg.Pause.Wanted() {
		return nil
	}
	return &pausing{
		run: r, plan: r.cfg.Pause, old: measure.NewHistogram(), live: measure.NewHistogram(),
		state: Paused{Course: newPauseCourse(r), Newest: make([]int64, len(r.receivers))},
	}
}

// pass waits while consumers are paused. It is false where the run ends meanwhile.
func (p *pausing) pass() bool {
	gate := p.gate.Load()
	if gate == nil {
		return true
	}
	select {
	case <-*gate:
		return true
	case <-p.run.receiving.Done():
		return false
	}
}

// look does what is to be done at an instant of the plan. resume is that of Orders. p may be nil.
// All parts of a run resume at the same instant, planned or agreed, so that they have the same
// messages as old ones.
func (p *pausing) look(now, resume int64) {
	if p == nil {
		return
	}
	s := &p.state
	s.Course.note(now, p.run)
	begins := p.run.from + int64(p.plan.At)
	if p.plan.For > 0 {
		resume = begins + int64(p.plan.For)
	}
	switch {
	case now < begins:
	case s.Began == 0:
		p.close(now)
	case s.Resumed == 0 && resume > 0 && now >= resume:
		p.open(resume)
	}
}

// event tells of the pause, where the part has consumers.
func (p *pausing) event(text string) {
	if slices.ContainsFunc(p.run.receivers, func(ks []*receiver) bool { return len(ks) > 0 }) {
		p.run.event("pause", text)
	}
}

// close has the consumers take nothing.
func (p *pausing) close(now int64) {
	gate := make(chan struct{})
	p.gate.Store(&gate)
	p.state.Began = now
	p.event("the consumers take nothing from here on")
}

// open has them go on.
func (p *pausing) open(now int64) {
	p.state.Resumed = now
	p.resumed.Store(now)
	close(*p.gate.Swap(nil))
	p.event("the consumers go on")
}

// end is called when the plan is at its end: no consumer waits from then on. p may be nil.
func (p *pausing) end(now int64) {
	if p == nil || p.state.Began == 0 {
		return
	}
	if p.state.Resumed == 0 {
		p.open(now)
	}
	p.state.Course.next = 0
	p.state.Course.note(now, p.run)
}

// took takes a first delivery to a subscription at the instant at, by the clock of who sent it.
func (p *pausing) took(sub int, e *ledger.Event, at int64) {
	resumed := p.resumed.Load()
	switch {
	case resumed == 0 || e.At < resumed:
		p.state.Newest[sub] = max(p.state.Newest[sub], e.Due)
	case e.Due < resumed:
		p.old.Record(max(0, at-e.Due))
	default:
		p.live.Record(max(0, at-e.Due))
	}
}

// sum is what became of it, when everything has stopped; nil where there was no pause.
func (p *pausing) sum() *Paused {
	if p == nil || p.state.Began == 0 {
		return nil
	}
	p.old.Read(&p.state.Old)
	p.live.Read(&p.state.Live)
	return &p.state
}

// censor adds messages that never came to a subscription. Of those due before the resume, Old gets
// what the system may still hold. What failed or was lost is left out, since nobody saw until when
// it waited; what was due before the newest message received by the resume was passed over by then.
func (s *Paused) censor(sub int, fate ledger.Fate, lost bool, due, age int64, n uint64) {
	switch {
	case s == nil || s.Resumed == 0:
	case due >= s.Resumed:
		s.LiveCensored.Add(age, n)
	case !lost && fate != ledger.FateFailed:
		s.OldCensored.Add(age, n)
	case due > s.Newest[sub]:
		s.OldLost += n
	}
}
