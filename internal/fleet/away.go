package fleet

import (
	"fmt"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/measure"
)

// What a coordinator takes from, and tells, members that are reached over a
// network.

// encoded is books of a part as it travels.
func (c *coordinator) encoded(i int, at int64, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare.Limits = c.limits
	if err := c.spare.UnmarshalBinary(b); err != nil {
		return err
	}
	if of := c.spare.Of(); of != c.limits {
		return fmt.Errorf("%w: books of %d streams and %d subscriptions, the run has %d and %d", ErrMalformed,
			of.Streams, of.Subscriptions, c.limits.Streams, c.limits.Subscriptions)
	}
	m := c.members[i]
	m.ledger, c.spare = c.spare, m.ledger // what was known stays known where what comes is none
	m.knownAt = at
	return nil
}

// standAway is arrive and stand of a member that is reached over a network.
func (c *coordinator) standAway(i int, s *standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[i]
	c.hear(m)
	m.come = max(m.come, min(s.Come, int(engine.NumStages)))
	if s.Facts != nil {
		m.facts = *s.Facts
	}
	if s.Status != nil && len(s.Status.Subs) <= c.limits.Subscriptions {
		m.status, m.stood = *s.Status, true
	}
	c.advance()
}

// conclude is end of a member whose intervals and ledger were reported before.
func (c *coordinator) conclude(i int, p *engine.Part, extremes *measure.Extremes, window measure.Window, err error) {
	c.mu.Lock()
	m := c.members[i]
	p.Snapshot, p.Ledger = m.snapshot, m.ledger
	p.Snapshot.Widen(extremes)
	p.Snapshot.Window = window
	c.mu.Unlock()
	c.end(i, p, err)
}

// orders are what was decided until now, as they travel.
func (c *coordinator) orders() orders {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := orders{Stop: c.stopped.Stop, Why: c.stopped.Why, Over: c.stopped.Over, Leave: c.stopped.Leave}
	for _, r := range c.released {
		if !isClosed(r) {
			break
		}
		o.Released++
	}
	if c.epochNS != 0 {
		o.Epoch = map[string]int64{}
		for i, m := range c.members {
			o.Epoch[m.name] = c.translate(i, c.epochNS)
		}
	}
	if o.Released > int(engine.Filled) {
		o.Lay = engine.Behind(c.standing())
	}
	if first := c.members[0]; o.Over && (first.silent || first.early) {
		for _, m := range c.members {
			if !m.silent && !m.ended {
				o.Remover = m.name
				break
			}
		}
	}
	if c.failure != nil && c.epochNS == 0 {
		o.Abort = c.failure.Error()
	}
	return o
}
