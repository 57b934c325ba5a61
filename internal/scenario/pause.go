package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// pauseForm is an example of a pause.
const pauseForm = "such as at 10s for 5s, or at 10s until 50000, which is until this many messages wait"

// pauseParts are the parts of a pause, in the order of its text.
var pauseParts = []part[engine.Pause]{
	{"at", placed(span(0), func(p *engine.Pause) *time.Duration { return &p.At })},
	{"for", placed(span(0), func(p *engine.Pause) *time.Duration { return &p.For })},
	{"until", placed(whole[uint64](1, 1_000_000_000), func(p *engine.Pause) *uint64 { return &p.Waiting })},
}

// pause is a text, or a mapping with the same words.
var pause = kind[engine.Pause]{
	schema: either(
		object{"type": "string", "pattern": `^ *at +[^ ]+ +(for|until) +[^ ]+ *$`},
		mapped("at", duration(), "for", duration()), mapped("at", duration(), "until", wholeNumber(1, 1_000_000_000)),
	),
	read: func(d *decoder, n *tree.Node, path string, into *engine.Pause) bool {
		if n.Shape != tree.Mapping {
			text, ok := d.textOf(n, path, pauseForm)
			if !ok {
				return false
			}
			words := strings.Fields(text)
			if len(words)%2 != 0 || len(words) == 0 {
				d.fault(n.At, path, "%q is not a pause (%s)", text, pauseForm)
				return false
			}
			m := &tree.Node{Shape: tree.Mapping, At: n.At, From: n.From}
			for i := 0; i < len(words); i += 2 {
				m = m.With([]string{words[i]}, &tree.Node{Shape: tree.Text, Text: words[i+1], At: n.At, From: n.From})
			}
			n = m
		}
		var p engine.Pause
		ok := true
		for _, f := range n.Fields {
			i := slices.IndexFunc(pauseParts, func(x part[engine.Pause]) bool { return x.key == f.Key })
			if i < 0 {
				d.fault(f.At, path, "%q is not known (%s)", f.Key, pauseForm)
				ok = false
				continue
			}
			ok = pauseParts[i].read(d, f.Value, path+"."+f.Key, &p) && ok
		}
		switch {
		case !ok:
			return false
		case n.Field("at") == nil || p.For > 0 == (p.Waiting > 0):
			d.fault(n.At, path, "needs at, and one of for and until (%s)", pauseForm)
			return false
		}
		*into = p
		return true
	},
	text: func(p *engine.Pause) string {
		if p.Waiting > 0 {
			return fmt.Sprintf("at %v until %d", p.At, p.Waiting)
		}
		return fmt.Sprintf("at %v for %v", p.At, p.For)
	},
	zero: func(p *engine.Pause) bool { return !p.Wanted() },
}

// combinePause rejects an invalid pause, or one without measurable effect.
func (d *decoder) combinePause(s *Scenario) {
	const path = "consume.pause"
	p := s.Consume.Pause
	if !p.Wanted() {
		return
	}
	at, window := d.at(path), max(0, s.Length()-s.WarmUp)
	switch {
	case s.Mode == engine.Produce: // already rejected with everything about consumers
	case s.Mode != engine.Stream:
		d.fault(at, path, "needs mode stream, in which load continues meanwhile (leave it out)")
	case s.Load.Closed:
		d.fault(d.later(path, "load.rate"), path, "needs a rate: with rate: max no message is due at a time (such as load.rate: 1000/s)")
	case s.Load.Received:
		d.fault(d.later(path, "load.in_flight_until"), path, "has nothing wait with load.in_flight_until: received, as nothing is sent (confirmed)")
	case window > 0 && p.At+p.For >= window:
		d.fault(at, path, "ends after the measured window of %v, and then nothing is caught up while load continues (less)", window)
	}
}

// combineFail rejects failing consumers if the system does not redeliver.
func (d *decoder) combineFail(s *Scenario) {
	const path = "consume.fail"
	if s.Consume.Fail == 0 || !d.known(s) {
		return
	}
	at, def := d.at(path), s.System.Definition
	switch {
	case s.Mode == engine.Produce: // already rejected with everything about consumers
	case s.Mode != engine.Stream:
		d.fault(at, path, "needs mode stream (leave it out)")
	case !def.Capabilities.Nack:
		d.fault(at, path, "driver %s does not deliver again what a consumer refuses (leave it out)", def.Name)
	case s.Consume.Settle != driver.SettleEach && s.Consume.Settle != driver.SettleBatch:
		d.fault(d.later(path, "consume.settle"), path, "has nothing to refuse with consume.settle: %s (each or batch)", s.Consume.Settle)
	case s.Consume.Fail >= 1:
		d.fault(at, path, "refuses everything, again and again (less than 100%%)")
	}
}

// combineDeadLetter rejects dead letters that the system does not support, or that could not be
// distinguished from others.
func (d *decoder) combineDeadLetter(s *Scenario) {
	const path = "consume.dead_letter"
	if s.Consume.DeadLetter == 0 || !d.known(s) {
		return
	}
	at, def := d.at(path), s.System.Definition
	switch {
	case s.Mode == engine.Produce: // already rejected with everything about consumers
	case s.Mode != engine.Stream:
		d.fault(at, path, "needs mode stream (leave it out)")
	case !def.Capabilities.DeadLetters:
		d.fault(at, path, "driver %s has no dead letters with these options (leave it out%s)", def.Name, d.otherwise(s, func(c driver.Capabilities) bool { return c.DeadLetters }))
	case s.Consume.Fail == 0:
		d.fault(at, path, "needs consume.fail: without it no consumer refuses anything (such as consume.fail: 10%%)")
	case s.Topology.Names != nil:
		d.fault(d.later(path, "topology.names"), path, "needs destinations that weir makes, and topology.names has others (leave it out)")
	case s.Topology.Subscriptions > 1:
		d.fault(d.later(path, "topology.subscriptions"), path, "needs one subscription: dead letters do not name the one that they come from (topology.subscriptions: 1)")
	case s.Placement.Kind == placement.Split:
		d.fault(d.later(path, "placement"), path, "needs producers and consumers in one process, and placement is split (leave it out)")
	}
}

// combineChurn rejects consumers that reconnect if messages would be lost by it.
func (d *decoder) combineChurn(s *Scenario) {
	const path = "consume.churn"
	every := s.Consume.Churn
	if every == 0 || !d.known(s) {
		return
	}
	const least = 100 * time.Millisecond
	at, can, window := d.at(path), s.System.Definition.Capabilities, max(0, s.Length()-s.WarmUp)
	switch {
	case s.Mode == engine.Produce: // already rejected with everything about consumers
	case s.Mode != engine.Stream:
		d.fault(at, path, "needs mode stream (leave it out)")
	case s.Consume.Pause.Wanted():
		d.fault(d.later(path, "consume.pause"), path, "does not go with consume.pause: a consumer that takes nothing cannot close (leave one of them out)")
	case every < least:
		d.fault(at, path, "is %v (%v or more)", every, least)
	case window > 0 && every >= window:
		d.fault(at, path, "is no less than the measured window of %v, so that no consumer would close (less)", window)
	case !can.Resumes && !can.Competing:
		d.fault(at, path, "driver %s has one consumer for a destination, and keeps nothing while it is away (leave it out)", s.System.Definition.Name)
	case !can.Resumes && s.Topology.Consumers < 2*s.Topology.Destinations:
		d.fault(d.later(path, "topology.consumers", "topology.destinations"), path,
			"driver %s loses what comes while the only consumer of a destination is away (topology.consumers: %d or more)", s.System.Definition.Name, 2*s.Topology.Destinations)
	}
}
