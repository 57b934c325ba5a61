package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// Bounds of a coordinator's waits.
const (
	startLead  = 20 * time.Millisecond // from the agreement to the epoch, where all members are a channel away
	beginLimit = 30 * time.Second      // the same before the run begins, when agents calibrate beside each other
	graceLimit = 3 * time.Second       // for the others' same second to arrive
)

// SilentLimit is how long an agent is not heard of before it is held to be gone, until
// it is heard again.
const SilentLimit = 10 * time.Second

// Errors by which a caller decides.
var (
	// ErrAgent: an agent ended before the run's end, or never began.
	ErrAgent = errors.New("agent failed")
	// ErrSilent: an agent was not heard of any more.
	ErrSilent = errors.New("agent silent")
)

// A Coordinator brings the parts of one run together: it lets them pass their
// stages, decides for all of them, adds up what they report, and joins them. It
// does not know how they are reached: in this process or over a network.
//
// Its methods may be called by any goroutine.
type Coordinator struct {
	cfg  engine.Config
	base *pace.Clock // of this process, from an epoch of its own
	lead time.Duration

	// translate gives an instant of this host's monotonic clock on a member's; ready
	// reports whether it can.
	translate func(member int, ns int64) int64
	ready     func() bool
	far       bool // members may vanish

	mu          sync.Mutex
	members     []*member
	released    [engine.NumStages]chan struct{} // closed when all may go on
	epochNS     int64                           // of the run, on this host's monotonic clock; 0 before
	clock       *pace.Clock                     // that counts from it
	failure     error                           // why the run does not go on; nil while it does
	stopped     engine.Orders                   // decided so far
	interrupted bool                            // the user wants the run to end; of one in this process its parts know
	quietAt     int64                           // since when nothing is open anywhere; -1: something is
	seconds     seconds
	phases      []string        // that were told of
	stands      []engine.Status // scratch of look

	looking   sync.Mutex      // one look at a time
	seen      []engine.Status // scratch of it
	conductor *engine.DrainPolicy
	limits    ledger.Limits
	union     ledger.Part // of deliveries
	spare     ledger.Part // of encoded
}

// A member is one agent of a run.
type member struct {
	name  string
	share engine.Share

	come     int // stages reached
	facts    driver.Facts
	status   engine.Status
	stood    bool  // there is a status
	heard    int64 // when, by the coordinator's clock
	silent   bool
	absences []Absence

	snapshot measure.Snapshot // sum of its intervals
	seen     int64            // instant of the latest interval's end
	ledger   ledger.Part
	knownAt  int64 // as of when the ledger is
	final    *engine.Part
	err      error // it ended without figures
	ended    bool
	early    bool // before the drain was over

	holds func(sub int) (nothing, answered bool)
}

// An Absence is when an agent was not heard of: ns since the run's epoch. To is 0
// where it never came back.
type Absence struct{ From, To int64 }

// Far says how members are reached over a network, and that they may vanish. Its
// functions are called by any goroutine, and must not call the coordinator.
type Far struct {
	Lead time.Duration // from the agreement to the epoch
	// Translate gives an instant of this host's monotonic clock, in ns, on a member's;
	// Ready reports whether it can.
	Translate func(member int, ns int64) int64
	Ready     func() bool
	// Holds asks the system about a subscription through a member, as
	// engine.Progress.Holds does.
	Holds func(member, sub int) (nothing, answered bool)
}

// New returns the coordinator of a run of cfg. Its callbacks take what all parts
// together do. names are the members', shares what each does of the run. far is nil
// where they are in this process.
func New(cfg engine.Config, names []string, shares []engine.Share, far *Far) (*Coordinator, error) {
	conductor, err := engine.NewDrainPolicy(cfg)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{cfg: cfg, base: cfg.Clock, lead: startLead, conductor: conductor, quietAt: -1, limits: conductor.Limits()}
	c.translate = func(_ int, ns int64) int64 { return ns }
	c.ready = func() bool { return true }
	for i := range c.released {
		c.released[i] = make(chan struct{})
	}
	for i, n := range names {
		c.members = append(c.members, &member{name: n, share: shares[i], heard: c.base.Now()})
	}
	if far != nil {
		c.lead, c.far, c.translate, c.ready = far.Lead, true, far.Translate, far.Ready
		for i, m := range c.members {
			m.holds = func(sub int) (bool, bool) { return far.Holds(i, sub) }
		}
	}
	c.seconds.emit, c.seconds.every = cfg.OnInterval, int64(cfg.Every)
	c.seconds.members = len(names)
	return c, nil
}

// Now is the instant in ns since the run's epoch; 0 before there is one.
func (c *Coordinator) Now() int64 {
	c.mu.Lock()
	clock := c.clock
	c.mu.Unlock()
	if clock == nil {
		return 0
	}
	return clock.Now()
}

// arrive notes that a member has come to a stage, and lets all pass where it was
// the last.
func (c *Coordinator) arrive(i int, stage engine.Stage, p facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[i]
	m.come = max(m.come, int(stage)+1)
	if stage == engine.Opened {
		m.facts = p.Facts()
	}
	c.advance()
}

// facts is what a member has read from the system when it has opened everything.
type facts interface{ Facts() driver.Facts }

// advance opens the stages that every member has come to. A member that has ended,
// or is silent once the run has begun, does not hold the others up.
func (c *Coordinator) advance() {
	if c.failure != nil && c.epochNS == 0 {
		return // the run does not take place
	}
	for stage := range c.released {
		if latch.Closed(c.released[stage]) {
			continue
		}
		for _, m := range c.members {
			if m.come <= stage && !m.ended && (!m.silent || c.epochNS == 0) {
				return
			}
		}
		if c.begins(engine.Stage(stage)) && !c.ready() {
			return
		}
		c.release(engine.Stage(stage))
	}
}

// begins reports whether the epoch is fixed when the stage is released.
func (c *Coordinator) begins(stage engine.Stage) bool {
	if c.cfg.Mode == engine.Consume {
		return stage == engine.Declared
	}
	return stage == engine.Opened
}

// release opens a stage.
func (c *Coordinator) release(stage engine.Stage) {
	if c.begins(stage) {
		lead := c.lead
		if c.cfg.Mode == engine.Consume {
			lead = 0 // the first delivery may come as soon as somebody listens
		}
		c.epochNS = c.base.Monotonic() + int64(lead)
		c.clock = c.base.At(c.epochNS)
		if c.cfg.OnStart != nil {
			c.cfg.OnStart(c.clock.Epoch())
		}
	}
	close(c.released[stage])
}

// agreed is what the members agreed on at a stage that was released.
func (c *Coordinator) agreed(i int, stage engine.Stage) engine.Agreed {
	c.mu.Lock()
	defer c.mu.Unlock()
	var a engine.Agreed
	if c.epochNS != 0 {
		a.EpochNS = c.translate(i, c.epochNS)
	}
	if stage == engine.Filled {
		a.Lay = engine.Behind(c.standing()).Waiting()
	}
	return a
}

// stand notes how a member stands.
func (c *Coordinator) stand(i int, s *engine.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[i]
	subs := append(m.status.Subs[:0], s.Subs...)
	m.status = *s
	m.status.Subs = subs
	m.stood = true
	c.hear(m)
}

// hear notes that a member was heard of.
func (c *Coordinator) hear(m *member) {
	m.heard = c.base.Now()
	if !m.silent {
		return
	}
	m.silent = false
	at := c.instant()
	m.absences[len(m.absences)-1].To = at
	c.event(m, engine.Event{At: at, Kind: "agent-back", Text: fmt.Sprintf("answers again after %v of silence", time.Duration(at-m.absences[len(m.absences)-1].From).Round(100*time.Millisecond))})
}

// instant is now, under the lock.
func (c *Coordinator) instant() int64 {
	if c.clock == nil {
		return 0
	}
	return c.clock.Now()
}

// Listen looks for members that were not heard of for long. It is for members that
// are reached over a network.
func (c *Coordinator) Listen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := SilentLimit
	if c.epochNS == 0 {
		limit = beginLimit
	}
	for _, m := range c.members {
		if m.silent || m.ended || c.base.Now()-m.heard < int64(limit) {
			continue
		}
		m.silent = true
		at := c.instant()
		m.absences = append(m.absences, Absence{From: at - int64(limit)})
		c.event(m, engine.Event{At: at, Kind: "agent-silent", Text: fmt.Sprintf("silent for %v", limit)})
		if c.epochNS == 0 && c.failure == nil {
			c.failure = fmt.Errorf("agent %s: %w for %v before the run began", m.name, ErrSilent, limit)
		}
	}
	c.advance()
	c.seconds.late(c.base.Now())
}

// event tells of something that happened to a member, or that it told.
func (c *Coordinator) event(m *member, ev engine.Event) {
	if c.cfg.OnEvent == nil {
		return
	}
	if len(c.members) > 1 {
		switch {
		case ev.Kind != "phase":
			ev.Text = m.name + ": " + ev.Text
		case slices.Contains(c.phases, ev.Text):
			return // everybody's are the same: the first one's counts
		default:
			c.phases = append(c.phases, ev.Text)
		}
	}
	c.cfg.OnEvent(ev)
}

// Event takes an event from a member.
func (c *Coordinator) Event(i int, ev engine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.event(c.members[i], ev)
}

// Interval adds what a member did since its last interval. The interval is the
// caller's again on return.
func (c *Coordinator) Interval(i int, iv *measure.Interval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[i]
	if c.far { // of one in this process the whole is had at the end
		m.snapshot.Add(iv)
	}
	m.seen = max(m.seen, iv.To)
	if len(c.members) > 1 {
		iv.Backlog = engine.Behind(c.standing())
	}
	c.seconds.add(i, iv, c.base.Now())
}

// books takes what a member's ledger held at the instant at; the part is the
// caller's again on return.
func (c *Coordinator) books(i int, at int64, p *ledger.Part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[i]
	m.ledger.Assign(p)
	m.knownAt = at
}

// Halt has nothing more offered, because the user wants it so.
func (c *Coordinator) Halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped.Stop, c.stopped.Leave, c.interrupted = true, true, true
}

// Begun reports whether the epoch is fixed.
func (c *Coordinator) Begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochNS != 0
}

// AllSilentFor reports whether all members were silent for that long.
func (c *Coordinator) AllSilentFor(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if !m.ended && c.base.Now()-m.heard < int64(d) {
			return false
		}
	}
	return true
}

// standing is how all members stand; of one that is gone, that nothing of it is
// under way. The slice is valid until the next call.
func (c *Coordinator) standing() []engine.Status {
	c.stands = c.stands[:0]
	for _, m := range c.members {
		if !m.stood {
			if m.silent || m.ended {
				continue
			}
			return nil
		}
		s := m.status
		if m.silent || m.ended {
			s.Open, s.Draining, s.Replying, s.Failed, s.Gone, s.Cut = 0, true, false, "", "", false
		}
		c.stands = append(c.stands, s)
	}
	return c.stands
}

// snap copies how members stand, for use without the lock: a member of this process
// writes over its subscriptions as it stands anew. The caller looks.
func (c *Coordinator) snap(stands []engine.Status) []engine.Status {
	for len(c.seen) < len(stands) {
		c.seen = append(c.seen, engine.Status{})
	}
	parts := c.seen[:len(stands)]
	for i := range stands {
		subs := append(parts[i].Subs[:0], stands[i].Subs...)
		parts[i] = stands[i]
		parts[i].Subs = subs
	}
	return parts
}

// look decides, as of the instant now of the run, what all members shall do.
func (c *Coordinator) look(now int64) engine.Orders {
	c.looking.Lock()
	defer c.looking.Unlock()
	c.mu.Lock()
	if c.stopped.Over || c.clock == nil {
		defer c.mu.Unlock()
		return c.stopped
	}
	parts := c.snap(c.standing())
	open := uint64(0)
	for i := range parts {
		open += parts[i].Open
	}
	if open > 0 || len(parts) == 0 {
		c.quietAt = -1
	} else if c.quietAt < 0 {
		c.quietAt = now
	}
	c.mu.Unlock()
	o := c.conductor.Look(now, parts, func() bool { return c.complete(parts) }, c.ask)
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Stop && !c.stopped.Stop {
		c.stopped.Stop, c.stopped.Why = true, o.Why
	}
	c.stopped.Over = c.stopped.Over || o.Over
	c.stopped.Resume = o.Resume
	return c.stopped
}

// complete reports whether nothing is missing. What one process alone knows is
// all; of several the ledgers must have been told since nothing is open any more.
func (c *Coordinator) complete(parts []engine.Status) bool {
	if len(parts) == 1 {
		return parts[0].Complete
	}
	if engine.Behind(parts).Waiting() > 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if !m.silent && !m.ended && m.knownAt <= c.quietAt {
			return false
		}
	}
	joined, err := c.joined()
	return err == nil && joined.Complete()
}

// joined joins what the members' ledgers held when they told of it last.
func (c *Coordinator) joined() (*ledger.Joined, error) {
	var ledgers []*ledger.Part
	for _, m := range c.members {
		if !m.ledger.Empty() {
			ledgers = append(ledgers, &m.ledger)
		}
	}
	return ledger.Join(ledgers, c.vanished)
}

// Deliveries appends to b what all members together got of the streams that
// several of them receive, as it travels; nothing where none is.
func (c *Coordinator) Deliveries(b []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	receive := 0
	for _, m := range c.members {
		if !m.ledger.Empty() && m.share.Consumers.Index < c.cfg.Consumers {
			receive++
		}
	}
	if receive < 2 {
		return b, nil
	}
	joined, err := c.joined()
	if err != nil {
		return b, err
	}
	joined.Deliveries(&c.union)
	return c.union.AppendBinary(b)
}

// vanished reports whether a stream's producer is on a member that is gone.
func (c *Coordinator) vanished(stream uint32) bool {
	for _, m := range c.members {
		if (m.silent || m.ended) && m.final == nil && m.share.Sends(c.cfg.Plan.Producers, stream) {
			return true
		}
	}
	return false
}

// ask asks the system about a subscription through every member that is there: each
// knows of its own connections only. It is answered when each was, and holds nothing
// when each says so.
func (c *Coordinator) ask(sub int) (nothing, answered bool) {
	c.mu.Lock()
	var can []func(int) (bool, bool)
	for _, m := range c.members {
		if m.holds != nil && !m.silent && !m.ended {
			can = append(can, m.holds)
		}
	}
	c.mu.Unlock()
	var all sync.WaitGroup
	said := make([]struct{ nothing, answered bool }, len(can))
	for i, holds := range can {
		all.Go(func() { said[i].nothing, said[i].answered = holds(sub) })
	}
	all.Wait()
	nothing, answered = true, len(can) > 0
	for _, s := range said {
		nothing, answered = nothing && s.nothing, answered && s.answered
	}
	return nothing && answered, answered
}

// End notes that a member has ended: with figures, or an error, or both.
func (c *Coordinator) End(i int, part *engine.Part, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[i]
	if m.ended {
		return
	}
	m.ended, m.final, m.err, m.early = true, part, err, !c.stopped.Over
	if part == nil && c.failure == nil {
		if err == nil {
			err = errors.New("it returned nothing")
		}
		if len(c.members) > 1 {
			err = fmt.Errorf("agent %s: %w", m.name, err)
		}
		c.failure = err
		c.stopped.Stop = true
	}
	c.seconds.members = c.alive()
	c.advance()
}

// alive is how many members may still report.
func (c *Coordinator) alive() (n int) {
	for _, m := range c.members {
		if !m.ended {
			n++
		}
	}
	return n
}

// Ended reports whether every member has, or is gone.
func (c *Coordinator) Ended(gone bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if !m.ended && (!gone || !m.silent) {
			return false
		}
	}
	return true
}

// Why is why the run does not go on; nil while it does.
func (c *Coordinator) Why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}
