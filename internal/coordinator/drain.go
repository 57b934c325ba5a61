package coordinator

import (
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/measure"
)

// Limits of a drain.
const (
	resumeLead = 300 * time.Millisecond // for all workers to learn the instant at which paused consumers resume
	dryLimit   = 2 * time.Second        // of answers that nothing is held, without a delivery, after which the subscription has run dry (DESIGN 2)
	askEvery   = 500 * time.Millisecond // how often the system is asked for its backlog
	quietLimit = 250 * time.Millisecond // without a delivery, before asking
	tellLimit  = 100 * time.Millisecond // for a delivery to appear in a worker's status
)

// A drain decides from the statuses of all workers when a run stops, when paused consumers resume,
// when the drain is over and which subscriptions ran dry. It is used by one goroutine.
type drain struct {
	cfg     *engine.Config
	outline engine.Outline
	began   int64           // -1 before
	backlog measure.Backlog // at the beginning
	open    uint64          // as of the last look
	changed int64           // when open changed
	calm    []int64         // by subscription: start of the current series of answers "nothing"; -1: none
	asked   []int64         // by subscription: the last question
	resume  int64           // see engine.Orders; 0: undecided
	outcome engine.Outcome
}

func newDrain(cfg *engine.Config, outline engine.Outline) *drain {
	n := outline.Limits.Subscriptions
	d := &drain{cfg: cfg, outline: outline, began: -1, calm: make([]int64, n), asked: make([]int64, n), outcome: engine.Outcome{Dry: make([]bool, n)}}
	for sub := range d.calm {
		d.calm[sub] = -1
	}
	return d
}

// look takes the statuses of all workers at the instant now, and returns what they do next.
// complete reports whether nothing is missing of all that was confirmed; it is called only when
// nothing is open. holds asks the system about a subscription, as engine.Progress.Holds does.
func (d *drain) look(now int64, workers []engine.Status, complete func() bool, holds func(sub int) (nothing, answered bool)) engine.Orders {
	behind := engine.Behind(workers)
	d.outcome.Peaks.Note(now, behind)
	if p := d.cfg.Pause; d.resume == 0 && p.Waiting > 0 && now >= d.outline.From+int64(p.At) && behind.Waiting() >= p.Waiting {
		d.resume = now
		if len(workers) > 1 {
			d.resume += int64(resumeLead)
		}
	}
	draining, idle := len(workers) > 0, true
	o := engine.Orders{Resume: d.resume}
	for i := range workers {
		w := &workers[i]
		draining = draining && w.Draining
		idle = idle && w.At-w.Last > int64(engine.IdleLimit)
		if why := w.Failed + w.Gone; why != "" && !o.Stop {
			o.Stop, o.Why = true, why
		}
	}
	switch {
	case draining:
		o.Stop, o.Over = true, d.over(now, workers, complete, holds)
	case d.cfg.Mode == engine.Consume && idle:
		o.Stop = true
	}
	return o
}

// over decides whether the drain is over: nothing is open, or every subscription with missing
// messages has run dry since the last confirmation, or the limit is reached.
//
// A subscription has run dry when the system has answered "nothing" for dryLimit, each time it was
// asked, and nothing was delivered since the first of these answers. Silence alone proves nothing:
// a system that stands still is silent too.
func (d *drain) over(now int64, workers []engine.Status, complete func() bool, holds func(sub int) (nothing, answered bool)) bool {
	var open uint64
	over, replying := false, false
	heard := now // instant of the oldest status
	for i := range workers {
		w := &workers[i]
		open += w.Open
		replying = replying || w.Replying
		over = over || w.Failed != "" || w.Cut
		heard = min(heard, w.At)
	}
	if d.began < 0 {
		d.began, d.changed, d.open, d.backlog = now, now, open, engine.Behind(workers)
	}
	if open != d.open { // a slow system may deliver late what it confirms late
		d.open, d.changed = open, now
	}
	limit := d.began + int64(d.cfg.Drain)
	dry := d.outcome.Dry
	missing := len(dry) > 0 && d.outline.Owed && (open > 0 || !complete())
	all, answers := true, true
	for sub := range dry {
		last, cut := d.changed, false
		for i := range workers {
			if subs := workers[i].Subs; sub < len(subs) {
				last, cut = max(last, subs[sub].Last), cut || subs[sub].Cut
			}
		}
		// If a consumer lost its connection and has received nothing since, missing messages may
		// still be on their way. At the limit that holds only for a system that retains messages
		// for absent consumers: elsewhere what another sent meanwhile is gone.
		cut = cut && (now < limit || d.cfg.Definition.Capabilities.Retains)
		// A consumer that is blocked by a reply receives nothing meanwhile; as long as requests
		// arrive, replies will.
		if last > d.calm[sub] || replying || sub > 0 && sub == d.outline.Replies && !dry[0] {
			d.calm[sub] = -1
		}
		// What was delivered before the latest answer is known only when every worker has reported
		// its status after that.
		reported := heard-d.asked[sub] >= int64(tellLimit)
		dry[sub] = d.calm[sub] >= 0 && d.asked[sub]-d.calm[sub] >= int64(dryLimit) && reported && !cut
		quiet := !replying && now-last >= int64(quietLimit)
		if missing && quiet && !dry[sub] && answers && now >= d.asked[sub]+int64(askEvery) {
			var nothing bool
			nothing, answers = holds(sub)
			switch {
			case !nothing:
				d.calm[sub] = -1
			case d.calm[sub] < 0:
				d.calm[sub] = now
			}
			d.asked[sub] = now
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
	for sub, x := range engine.Behind(workers) {
		if sub >= len(dry) || dry[sub] || sub >= len(d.backlog) {
			continue // what is missing is lost
		}
		left := x.Missing - min(x.Missing, x.Passed)
		if done := int64(d.backlog[sub].Missing) - int64(x.Missing); done > 0 && left > 0 {
			d.outcome.Needs = max(d.outcome.Needs, int64(float64(left)/float64(done)*float64(now-d.began)))
		}
	}
	return true
}
