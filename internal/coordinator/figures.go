package coordinator

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirmq/weir/engine"
)

// Figures makes the run's figures of what the members reported. A nil Raw comes with
// an error; both come where a member ended with figures and an error.
func (c *Coordinator) Figures() (*engine.Raw, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seconds.flush()
	var parts []*engine.Part
	var errs []error
	figures := false
	for _, m := range c.members {
		p := m.final
		if p == nil {
			p = c.leftover(m)
		} else {
			figures = true
			p.Share = m.share
			if c.far && p.Interrupted && !c.interrupted {
				// By its own user, while the others went on: what it had still to send is
				// missing, as if it had vanished.
				p.Missing, p.Interrupted = true, false
				m.absences = append(m.absences, Absence{From: p.To})
				c.event(m, engine.Event{At: p.To, Kind: "agent-ended", Text: "ended by itself, before the run's end"})
			}
			if m.err != nil {
				errs = append(errs, m.err)
			}
		}
		parts = append(parts, p)
	}
	told := slices.ContainsFunc(parts, func(p *engine.Part) bool { return !p.Ledger.Empty() })
	if !told || !figures && (c.failure != nil || c.epochNS == 0) {
		if c.failure == nil {
			return nil, fmt.Errorf("%w: nothing was reported", ErrAgent)
		}
		return nil, c.failure
	}
	found := c.conductor.Outcome()
	found.Ended = c.instant()
	raw, err := engine.Assemble(c.cfg, parts, found)
	if raw != nil && c.epochNS != 0 && (c.far || len(c.members) > 1) {
		raw.Epoch = c.clock.Epoch()
	}
	return raw, errors.Join(append(errs, err)...)
}

// leftover is what is known of a member that vanished.
func (c *Coordinator) leftover(m *member) *engine.Part {
	return &engine.Part{Share: m.share, Missing: true, Facts: m.facts, Ended: m.seen, From: c.conductor.From(), To: m.seen, Snapshot: m.snapshot, Ledger: m.ledger}
}
