package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
)

// maxName is the longest name of a durable subscription and the longest offset, in bytes; systems
// allow less.
const maxName = 255

// position is where a new subscription begins.
var position = func() kind[driver.Position] {
	const example = "an instant such as 2026-01-31T12:00:00Z"
	set := func(at driver.Start) func(*driver.Position) { return func(p *driver.Position) { p.At = at } }
	offset := placed(handle("an offset as the system writes it", ""), func(p *driver.Position) *string { return &p.Offset })
	instant := placed(single(example, anyText(), func(s string) (time.Time, error) {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return t, fmt.Errorf("%q is not an instant", cut(s))
		}
		return t.UTC(), nil
	}, func(t time.Time) string { return quote(t.Format(time.RFC3339Nano)) }), func(p *driver.Position) *time.Time { return &p.Time })
	return choice("earliest, latest, {offset: N}, {time: T}", func(p *driver.Position) string { return p.At.String() },
		branch[driver.Position]{name: "earliest", set: set(driver.AtEarliest)},
		branch[driver.Position]{name: "latest", set: set(driver.AtLatest)},
		branch[driver.Position]{"offset", set(driver.AtOffset), &offset},
		branch[driver.Position]{"time", set(driver.AtTime), &instant},
	)
}()

// durable is the name of a subscription.
var durable = handle("the name of a subscription, without blanks", " \t\r\n")

// handle is a name in a system, of 1 to maxName bytes and without any of without.
func handle(allowed, without string) kind[string] {
	return single(allowed, anyText(), func(s string) (string, error) {
		switch {
		case s == "" || len(s) > maxName:
			return "", inFull{fmt.Errorf("is %d bytes long (%s, 1 to %d bytes)", len(s), allowed, maxName)}
		case strings.ContainsAny(s, without):
			return "", fmt.Errorf("%q has blanks", cut(s))
		}
		return s, nil
	}, quote)
}

// combinePosition rejects a start position if there is none to choose, or the driver does not declare
// it.
func (d *decoder) combinePosition(s *Scenario) {
	switch s.Mode {
	case engine.Consume:
	case engine.Produce:
		d.excluded("mode produce receives nothing", beginning.paths()...)
		return
	default:
		d.excluded("mode "+s.Mode.String()+" makes its own destinations, in which nothing lies before the run", beginning.paths()...)
		return
	}
	if d.has("consume.durable") && s.Topology.Subscriptions > 1 {
		d.fault(d.later("consume.durable", "topology.subscriptions"), "consume.durable",
			"names one subscription, and topology.subscriptions is %d (1)", s.Topology.Subscriptions)
	}
	if !d.known(s) || !s.System.Definition.Capabilities.Consume {
		return
	}
	def := s.System.Definition
	if at := s.Consume.From.At; at != driver.AtDefault && !slices.Contains(def.Capabilities.Replays, at) {
		can := "leave it out"
		if len(def.Capabilities.Replays) > 0 {
			can = joined(def.Capabilities.Replays)
		}
		d.fault(d.at("consume.from"), "consume.from", "driver %s has no subscription begin at %s (%s)", def.Name, at, can)
	}
	if s.Consume.Durable != "" && !def.Capabilities.Resumes {
		d.fault(d.at("consume.durable"), "consume.durable", "driver %s has no subscriptions that outlive the run (leave it out)", def.Name)
	}
}
