package fleet

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/placement"
)

// Limits for clock records.
const (
	courseKept = 4096 // corrections of an agent, compared with the course afterwards
	enough     = 5    // exchanges before a clock is known

	besideLimit = 30 * time.Second       // for the clock of an agent without a part
	lineLate    = 500 * time.Millisecond // for a correction to reach a live agent: all orders carry it
)

// A Clock is the uncertainty of the difference between two agents' instants.
type Clock struct {
	Crosses bool  // messages go from one agent to another
	Same    bool  // all these agents read one clock
	BoundNS int64 // over all pairs of agents of which one sends to the other
	Known   bool  // false: unknown for some pair
}

// A Watch describes an agent's clock.
type Watch struct {
	Same      bool          // it is the coordinator's own
	EpochNS   int64         // the run's epoch on it; 0: unknown
	OffsetNS  int64         // to add to its readings, at the epoch
	BoundNS   int64         // of its corrected instants, over the run
	AtStartNS int64         // its actual epoch in hindsight, ns since the run's
	Course    offset.Course // over the run; empty for the coordinator's own clock
	Steps     []offset.Step // of the course, in ns since the run's epoch
	Exchanges int
	Daemon    *Checked // nil if unknown
}

// clocks compares the agents' clocks with the coordinator's. Agents that read one clock share its
// measurements. Its methods may be called from any goroutine.
type clocks struct {
	base  *pace.Clock
	own   string
	began time.Time

	mu     sync.Mutex
	parts  int // agents with a part of the run; the others come after them
	agents []*watched
	tracks map[string]*tracked
}

type tracked struct {
	track *offset.Track
	n     int
}

type watched struct {
	id      string // of the clock
	t       *tracked
	epoch   int64 // on the agent's monotonic clock; 0: not set
	offset  int64 // by which it was translated
	kept    []correction
	skip    int // corrections skipped per kept one
	skipped int
}

// A correction is what was added to an agent's instants from at on, by its clock, until the next one
// reached it.
type correction struct {
	at int64
	protocol.Line
}

// newClocks returns the clocks of agents, of which the first parts have a part of the run.
func newClocks(base *pace.Clock, agents []protocol.About, parts int) *clocks {
	c := &clocks{base: base, own: pace.ClockID(), began: time.Now(), parts: parts, tracks: map[string]*tracked{}}
	for _, a := range agents {
		id := a.Clock
		if id == "" {
			id = "agent " + a.Name
		}
		t := c.tracks[id]
		if t == nil {
			t = &tracked{track: offset.NewTrack(0)}
			c.tracks[id] = t
		}
		c.agents = append(c.agents, &watched{id: id, t: t})
	}
	return c
}

// add adds an agent's clock exchanges, without impossible ones.
func (c *clocks) add(i int, es []offset.Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.agents[i].t
	for _, e := range es {
		if t.track.Add(e) == nil {
			t.n++
		}
	}
}

// same reports whether an agent reads the coordinator's own clock.
func (c *clocks) same(w *watched) bool { return c.own != "" && w.id == c.own }

// known reports whether every agent's clock is known well enough to begin. It gives up on agents without a
// part after a limit.
func (c *clocks) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.agents {
		if !c.knows(w) && (i < c.parts || time.Since(c.began) < besideLimit) {
			return false
		}
	}
	return true
}

// knows reports whether an agent's clock is known. The lock must be held.
func (c *clocks) knows(w *watched) bool { return c.same(w) || w.t.n >= enough }

// beside translates ns to the clock of an agent without a part, like translate; 0 if that clock is unknown.
func (c *clocks) beside(i int, ns int64) int64 {
	c.mu.Lock()
	known := c.knows(c.agents[i])
	c.mu.Unlock()
	if !known {
		return 0
	}
	return c.translate(i, ns)
}

// now returns the offset to add to an agent's reading at this moment.
func (c *clocks) now(w *watched) (add, bound int64) {
	if c.same(w) {
		return 0, 0
	}
	ours := c.base.Monotonic()
	theirs := ours
	if l, ok := w.t.track.Live(); ok {
		theirs = ours - l.Offset
	}
	for range 2 { // refines the first approximation
		if o, b, ok := w.t.track.Now(theirs); ok {
			add, bound = o, b
			theirs = ours - add
		}
	}
	return add, bound
}

// translate returns the agent's reading at an instant near now of the coordinator's monotonic clock, and
// makes it the agent's epoch.
func (c *clocks) translate(i int, ns int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.agents[i]
	if w.epoch == 0 {
		w.offset, _ = c.now(w)
		w.epoch = ns - w.offset
		w.keep(correction{w.epoch, protocol.Line{}}) // until the first correction reaches it
	}
	return w.epoch
}

// reading converts an agent's instant, ns since the epoch by its clock, to the coordinator's clock with
// present knowledge. by describes the uncertainty if the clocks differ.
func (c *clocks) reading(i int, at int64) (ns int64, by string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.agents[i]
	if c.same(w) {
		return at, ""
	}
	add, bound := c.now(w)
	return at + add - w.offset, fmt.Sprintf(" (by its clock, within %v)", time.Duration(bound).Round(time.Microsecond))
}

// corrected converts such an instant with knowledge of the whole run, and returns its uncertainty; if
// unknown, the instant is the agent's.
func (c *clocks) corrected(i int, at int64) (ns, bound int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.agents[i]
	if c.same(w) {
		return at, max(0, c.base.Epoch().ErrorNS), true
	}
	course, ok := w.t.track.Fit()
	if !ok || w.epoch == 0 {
		return at, 0, false
	}
	is, bound := course.At(w.epoch + at)
	return at + is - w.offset, bound, true
}

// lines returns the corrections for the agents from now on.
func (c *clocks) lines() []protocol.Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]protocol.Line, len(c.agents))
	for i, w := range c.agents {
		if w.epoch == 0 || c.same(w) {
			continue
		}
		add, _ := c.now(w)
		theirs := c.base.Monotonic() - add
		l := protocol.Line{At: theirs - w.epoch, Add: add - w.offset}
		if live, ok := w.t.track.Live(); ok {
			l.PPB = live.DriftPPB
		}
		all[i] = l
		w.keep(correction{theirs, l})
	}
	return all
}

// keep stores a correction. Of many it keeps every second, then every fourth and so on.
func (w *watched) keep(x correction) {
	if w.skipped < w.skip {
		w.skipped++
		return
	}
	w.skipped = 0
	if len(w.kept) == courseKept {
		half := w.kept[:0]
		for i := 0; i < courseKept; i += 2 {
			half = append(half, w.kept[i])
		}
		w.kept = half
		w.skip = 2*w.skip + 1
	}
	w.kept = append(w.kept, x)
}

// watch describes an agent's clock after the run. The bound is that of the course fitted to all exchanges,
// plus the difference from the corrections used during the run, while they were used: an early drift
// estimate may be far off a second later.
func (c *clocks) watch(i int) Watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watched(c.agents[i])
}

func (c *clocks) watched(w *watched) Watch {
	if c.same(w) {
		return Watch{Same: true, BoundNS: max(0, c.base.Epoch().ErrorNS)}
	}
	x := Watch{EpochNS: w.epoch, OffsetNS: w.offset, Exchanges: w.t.n, BoundNS: -1}
	course, ok := w.t.track.Fit()
	if !ok {
		return x
	}
	x.Course, x.BoundNS = course, course.Bound()
	if w.epoch != 0 {
		was, bound := course.At(w.epoch)
		x.AtStartNS = was - w.offset
		x.BoundNS = max(x.BoundNS, bound)
		for _, s := range course.Steps {
			s.At -= w.epoch
			x.Steps = append(x.Steps, s)
		}
	}
	for i, k := range w.kept {
		until := k.at
		if i+1 < len(w.kept) {
			until = w.kept[i+1].at
		}
		x.BoundNS = max(x.BoundNS, off(&course, k.at, until+int64(lineLate), func(t int64) int64 { return w.offset + k.Added(t-w.epoch) }))
	}
	return x
}

// off is the largest difference between the added correction and the offset over an interval, by the
// agent's clock. Both are piecewise linear, so the maximum is at a vertex; where it is unknown whether a
// step had happened, both lines are tried.
func off(c *offset.Course, from, to int64, added func(t int64) int64) (worst int64) {
	look := func(t int64) {
		for i, l := range c.Lines {
			if i > 0 && t < c.Steps[i-1].At-c.Steps[i-1].Uncertain || i < len(c.Steps) && t > c.Steps[i].At+c.Steps[i].Uncertain {
				continue
			}
			was, bound := l.At(t)
			d := added(t) - was
			worst = max(worst, bound+max(d, -d))
		}
	}
	look(from)
	look(to)
	for _, s := range c.Steps {
		for _, t := range [...]int64{s.At - s.Uncertain, s.At + s.Uncertain} {
			if t > from && t < to {
				look(t)
			}
		}
	}
	return worst
}

// bound is the uncertainty of the difference of two instants, over the pairs of agents of which one sends
// to the other.
func (c *clocks) bound(pairs []placement.Flow) Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := Clock{Crosses: len(pairs) > 0, Same: len(pairs) > 0, Known: true}
	known := make([]*Watch, len(c.agents))
	of := func(i int) *Watch {
		if known[i] == nil {
			w := c.watched(c.agents[i])
			known[i] = &w
		}
		return known[i]
	}
	for _, p := range pairs {
		a, b := of(p.From), of(p.To)
		one := c.agents[p.From].id == c.agents[p.To].id
		k.Same = k.Same && one
		switch {
		case one: // an error common to both cancels; their readings remain
			k.BoundNS = max(k.BoundNS, 2*max(0, c.base.Epoch().ErrorNS))
		case a.BoundNS < 0 || b.BoundNS < 0:
			k.Known = false
		default:
			k.BoundNS = max(k.BoundNS, a.BoundNS+b.BoundNS)
		}
	}
	return k
}
