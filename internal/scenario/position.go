package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
)

// maxName is the longest name of a durable subscription and the longest offset,
// in bytes; systems allow less.
const maxName = 255

// position reads consume.from.
func (d *decoder) position() driver.Position {
	const path, allowed = "consume.from", "earliest, latest, {offset: N}, {time: T}"
	n := d.find(path)
	if n == nil {
		return driver.Position{}
	}
	if n.shape == text {
		switch s := strings.TrimSpace(n.text); s {
		case "earliest":
			return driver.Position{At: driver.AtEarliest}
		case "latest":
			return driver.Position{At: driver.AtLatest}
		default:
			d.fault(n.at, path, "%q is not known (%s)", cut(s), allowed)
		}
		return driver.Position{}
	}
	switch kind, v := d.choice(n, path, allowed, []string{"offset", "time"}); kind {
	case "offset":
		s, ok := d.textOf(v, path+".offset", "an offset as the system writes it")
		switch {
		case !ok:
		case s == "" || len(s) > maxName:
			d.fault(v.at, path+".offset", "is %d bytes long (an offset as the system writes it, 1 to %d bytes)", len(s), maxName)
		default:
			return driver.Position{At: driver.AtOffset, Offset: s}
		}
	case "time":
		const example = "an instant such as 2026-01-31T12:00:00Z"
		s, ok := d.textOf(v, path+".time", example)
		if !ok {
			break
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			d.fault(v.at, path+".time", "%q is not an instant (%s)", cut(s), example)
			break
		}
		return driver.Position{At: driver.AtTime, Time: t.UTC()}
	}
	return driver.Position{}
}

// durable reads consume.durable.
func (d *decoder) durable() string {
	const path, allowed = "consume.durable", "the name of a subscription, without blanks"
	s, n, ok := d.scalar(path, allowed)
	switch {
	case !ok:
	case s == "" || len(s) > maxName:
		d.fault(n.at, path, "is %d bytes long (%s, 1 to %d bytes)", len(s), allowed, maxName)
	case strings.ContainsAny(s, " \t\r\n"):
		d.fault(n.at, path, "%q has blanks (%s)", cut(s), allowed)
	default:
		return s
	}
	return ""
}

// combinePosition refuses a beginning where there is none to choose, and what the
// driver does not declare.
func (d *decoder) combinePosition(s *Scenario) {
	if s.Mode != engine.Consume {
		d.excluded("mode "+modes[s.Mode]+" makes its own destinations, in which nothing lies before the run", beginning...)
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
		can := []string{"leave it out"}
		if rs := def.Capabilities.Replays; len(rs) > 0 {
			can = nil
			for _, r := range rs {
				can = append(can, r.String())
			}
		}
		d.fault(d.at("consume.from"), "consume.from", "driver %s has no subscription begin at %s (%s)", def.Name, at, strings.Join(can, ", "))
	}
	if s.Consume.Durable != "" && !def.Capabilities.Resumes {
		d.fault(d.at("consume.durable"), "consume.durable", "driver %s has no subscriptions that outlive the run (leave it out)", def.Name)
	}
}

// positionText writes a position as a scenario has it.
func positionText(p driver.Position) string {
	switch p.At {
	case driver.AtOffset:
		return "{offset: " + quote(p.Offset) + "}"
	case driver.AtTime:
		return "{time: " + quote(p.Time.Format(time.RFC3339Nano)) + "}"
	}
	return p.At.String()
}
