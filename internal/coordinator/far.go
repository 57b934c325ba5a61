package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// What a coordinator takes from members that are reached over a network, and what it
// decided for them.

// ErrForeign: the books of a member are of another run than this one.
var ErrForeign = errors.New("books of another run")

// A foreign is an error that says which books came, and is ErrForeign.
type foreign struct{ text string }

func (f *foreign) Error() string        { return f.text }
func (f *foreign) Is(target error) bool { return target == ErrForeign }

// Books takes what a member's ledger held at the instant at, as it travels. What is
// not a ledger of this run is an error, and what was known before stays.
func (c *Coordinator) Books(i int, at int64, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare.Limits = c.limits
	if err := c.spare.UnmarshalBinary(b); err != nil {
		return err
	}
	if of := c.spare.Of(); of != c.limits {
		return &foreign{fmt.Sprintf("books of %d streams and %d subscriptions, the run has %d and %d",
			of.Streams, of.Subscriptions, c.limits.Streams, c.limits.Subscriptions)}
	}
	m := c.members[i]
	m.ledger, c.spare = c.spare, m.ledger // what was known stays known where what comes is none
	m.knownAt = at
	return nil
}

// Stand notes how many stages a member has come to, what it read from the system and
// how it stands; nil where it did not tell.
func (c *Coordinator) Stand(i, come int, facts *driver.Facts, status *engine.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[i]
	c.hear(m)
	m.come = max(m.come, min(come, int(engine.NumStages)))
	if facts != nil {
		m.facts = *facts
	}
	if status != nil && len(status.Subs) <= c.limits.Subscriptions {
		m.status, m.stood = *status, true
	}
	c.advance()
}

// Conclude is End of a member that has reported its intervals and ledger before.
func (c *Coordinator) Conclude(i int, p *engine.Part, extremes *measure.Extremes, window measure.Window, err error) {
	c.mu.Lock()
	m := c.members[i]
	p.Snapshot, p.Ledger = m.snapshot, m.ledger
	p.Snapshot.Widen(extremes)
	p.Snapshot.Window = window
	c.mu.Unlock()
	c.End(i, p, err)
}

// A Decision is what was decided for all members until now.
type Decision struct {
	engine.Orders
	Released int     // stages that all may pass
	EpochsNS []int64 // the run's epoch on each member's monotonic clock; nil before it is fixed
	Lay      uint64  // see engine.Agreed
	Remover  int     // the member that removes the destinations, where the one that made them is gone; -1: none
	Abort    error   // why the run does not take place; nil: it does
}

// Decided returns what was decided until now.
func (c *Coordinator) Decided() Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := Decision{Orders: c.stopped, Remover: -1}
	for _, r := range c.released {
		if !latch.Closed(r) {
			break
		}
		d.Released++
	}
	if c.epochNS != 0 {
		for i := range c.members {
			d.EpochsNS = append(d.EpochsNS, c.translate(i, c.epochNS))
		}
	}
	if d.Released > int(engine.Filled) {
		d.Lay = engine.Behind(c.standing()).Waiting()
	}
	if first := c.members[0]; d.Over && (first.silent || first.early) {
		for i, m := range c.members {
			if !m.silent && !m.ended {
				d.Remover = i
				break
			}
		}
	}
	if c.failure != nil && c.epochNS == 0 {
		d.Abort = c.failure
	}
	return d
}

// Tell tells of something that happened to no member.
func (c *Coordinator) Tell(ev engine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.OnEvent != nil {
		c.cfg.OnEvent(ev)
	}
}

// Look decides, as of now, what all members shall do.
func (c *Coordinator) Look() engine.Orders { return c.look(c.Now()) }

// Absences returns when a member was not heard of.
func (c *Coordinator) Absences(i int) []Absence {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[i].absences
}

// Limits returns how many streams and subscriptions the ledgers of this run have.
func (c *Coordinator) Limits() ledger.Limits { return c.limits }

// EpochNS returns the run's epoch on this host's monotonic clock; 0 before it is fixed.
func (c *Coordinator) EpochNS() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochNS
}

// Wall returns the epoch, which must be fixed, by the wall clock.
func (c *Coordinator) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.Epoch().Wall
}

// TakeUp makes the coordinator that of a run which began at an epoch, on this host's
// monotonic clock. It is called before anything else.
func (c *Coordinator) TakeUp(epochNS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epochNS = epochNS
	c.clock = c.base.At(epochNS)
	if c.cfg.OnStart != nil {
		c.cfg.OnStart(c.clock.Epoch())
	}
	for stage := engine.Declared; stage <= engine.Opened; stage++ {
		close(c.released[stage])
	}
}
