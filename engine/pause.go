package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// A Pause keeps all consumers from receiving for a time while messages are sent. They stay
// connected: each blocks inside Deliver. The zero value is no pause.
type Pause struct {
	At      time.Duration // since the end of the warm-up
	For     time.Duration // duration; 0: until Waiting
	Waiting uint64        // until that many messages are confirmed and not received; 0: for For
}

// Wanted reports whether there is a pause.
func (p Pause) Wanted() bool { return p.For > 0 || p.Waiting > 0 }

// A Paused is the outcome of a Pause. Instants are ns since the epoch, 0 if they were not reached.
// With several subscriptions, the counts are of the one that has received least.
type Paused struct {
	Began, Resumed, CaughtUp int64

	Before   uint64 // 99 % of the samples before the pause found at most that many messages waiting: the threshold of CaughtUp
	Waiting  uint64 // when the consumers resumed
	Until    int64  // CaughtUp, or the end of the observation: that of the plan
	Left     uint64 // waited at Until
	Received uint64 // first deliveries from Resumed until Until

	// Response times of first deliveries after the resume: Old for messages due before the resume,
	// Live for later ones. What never came is censored at its age at the end of the drain; for
	// messages due before the resume, only if the system may still hold them: see censor.
	Old, Live                 measure.Counts
	OldCensored, LiveCensored measure.Counts `json:"-"`
	OldLost                   uint64         `json:"-"` // due before the resume and after Newest, but failed or lost: not in Old

	// Course is set for a worker: all that it knows about what waits. The counts above are then 0,
	// except in Old and Live. Course is nil for the whole run.
	Course *PauseCourse
	Newest []int64 // by subscription: the latest due instant of what it had received by the resume
	Step   int64   // interval of the samples of what waits, ns
}

// A pausing is a Pause in progress. The goroutine of Execute calls look and end, the merge calls
// took, and consumers call pass.
type pausing struct {
	run       *run
	plan      Pause
	gate      atomic.Pointer[chan struct{}] // consumers wait until it is closed; nil: not paused
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

// pass blocks while consumers are paused. It returns false if the run ends meanwhile.
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

// look pauses and resumes when it is time. resume is that of Orders. p may be nil. All workers
// resume at the same instant, planned or agreed, so that they classify the same messages as old.
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

// event reports the pause, if the worker has consumers.
func (p *pausing) event(text string) {
	if slices.ContainsFunc(p.run.receivers, func(ks []*receiver) bool { return len(ks) > 0 }) {
		p.run.event("pause", text)
	}
}

// close pauses the consumers.
func (p *pausing) close(now int64) {
	gate := make(chan struct{})
	p.gate.Store(&gate)
	p.state.Began = now
	p.event("the consumers take nothing from here on")
}

// open resumes the consumers.
func (p *pausing) open(now int64) {
	p.state.Resumed = now
	p.resumed.Store(now)
	close(*p.gate.Swap(nil))
	p.event("the consumers continue")
}

// end is called at the end of the plan: from then on no consumer waits. p may be nil.
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

// took records a first delivery to a subscription at the instant at, by the sender's clock.
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

// sum returns the outcome after everything has stopped; nil without a pause.
func (p *pausing) sum() *Paused {
	if p == nil || p.state.Began == 0 {
		return nil
	}
	p.old.Read(&p.state.Old)
	p.live.Read(&p.state.Live)
	return &p.state
}

// censor adds messages that never reached a subscription. Of those due before the resume, Old gets
// what the system may still hold. Failed or lost messages are left out, since it is unknown how
// long they waited. So are messages due before the newest message received by the resume: the
// system had skipped them by then.
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
