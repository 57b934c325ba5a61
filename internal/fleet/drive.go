package fleet

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/placement"
)

// Limits of a drive's waits.
const (
	farLead    = 500 * time.Millisecond // from the agreement to the epoch
	stampEvery = 200 * time.Millisecond

	lookOutEvery = 500 * time.Millisecond
)

// A drive is a run in progress.
type drive struct {
	f       *Fleet
	run     *Run
	c       *coordinator.Coordinator
	workers []engine.Worker // of the agents
	abouts  []protocol.About
	flows   []placement.Flow // between agents
	places  map[string]int   // agents by name
	ids     map[string]int   // agents by instance
	clocks  *clocks

	mu     sync.Mutex
	finals []*protocol.Final
	posts  []*inbox
	lines  []protocol.Line
	own    []host.Daemon // of this host

	gaps    []coordinator.Absence  // times without a coordinator
	decoder protocol.ReportDecoder // of report
	ledger  ledger.Part            // scratch space of read
	full    bool                   // a full disk has been reported
	stamped time.Time              // when keep's file was last touched

	starter *starter // nil: no agent's host started the system
	trouble *trouble // its server faults; nil: none

	asking chan struct{} // a slot for each agent that may query leaders
}

// An inbox assembles an agent's reports.
type inbox struct {
	pieces protocol.Assembler
	seq    uint64
	lost   uint64 // missing between received reports
	done   bool

	refused int // refused pieces
}

// Do executes a run on agents that joined. When stop is closed, no further message is sent and the run
// drains; when ctx ends, it ends at once; in both cases what was measured is returned. An error without
// Done, or with a nil Raw in it, means that there are no figures.
func (f *Fleet) Do(ctx context.Context, stop <-chan struct{}, run *Run) (*Done, error) {
	d, err := f.newDrive(run)
	if err != nil {
		return nil, err
	}
	return d.do(ctx, stop, func() error { return d.give(ctx) })
}

// do executes the run; begin starts the agents.
func (d *drive) do(ctx context.Context, stop <-chan struct{}, begin func() error) (*Done, error) {
	listening, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	undo, err := d.listen(listening)
	if err != nil {
		return nil, err
	}
	defer undo()
	defer d.forget()
	var side sync.WaitGroup
	defer side.Wait()
	telling, quiet := context.WithCancel(context.WithoutCancel(ctx))
	defer quiet()
	side.Go(func() { d.tell(telling) })
	side.Go(func() { d.watch(telling) })
	side.Go(func() { d.disturb(telling) })
	side.Go(func() { d.lookOut(telling) })
	if d.run.OnOpen != nil {
		d.run.OnOpen(d.leaders)
	}
	if err := begin(); err != nil {
		if lost := d.c.Why(); errors.Is(lost, coordinator.ErrLost) { // that is why it took no job
			err = lost
		}
		d.c.Abort(err)
		return nil, err
	}
	done, err := d.conduct(ctx, stop)
	quiet()
	side.Wait()
	if done != nil {
		if d.starter != nil {
			done.Starter = &d.starter.Starter
		}
		done.Faults, done.Unreported = d.faults()
	}
	return done, err
}

func (f *Fleet) newDrive(run *Run) (*drive, error) {
	d := &drive{f: f, run: run, places: map[string]int{}}
	for _, a := range f.Agents() {
		if run.Agents == nil || slices.Contains(run.Agents, a.Name) {
			d.places[a.Name] = len(d.abouts)
			d.abouts = append(d.abouts, a)
		}
	}
	shares, err := d.deal()
	if err != nil {
		return nil, err
	}
	for _, a := range f.Agents() {
		if a.Name == run.StartOn {
			d.starter = newStarter(a, d.places)
		}
	}
	return d, d.prepare(shares)
}

// prepare creates the run's coordinator.
func (d *drive) prepare(shares []engine.Worker) (err error) {
	cfg := d.run.Config
	d.ids = map[string]int{}
	for i, a := range d.abouts {
		d.ids[a.Instance] = i
	}
	d.flows = crossingOf(&d.run.Config, shares)
	cfg.Clock = d.f.clock
	d.asking = make(chan struct{}, mostAsking)
	known := d.abouts
	if d.run.Troubled && d.starter != nil {
		place, part := d.places[d.starter.Name]
		if !part {
			place, known = len(known), append(slices.Clone(known), d.starter.About)
		}
		d.trouble = &trouble{place: place}
	}
	d.clocks = newClocks(d.f.clock, known, len(d.abouts))
	d.workers = shares
	d.finals = make([]*protocol.Final, len(d.abouts))
	d.posts = make([]*inbox, len(d.abouts))
	for i := range d.posts {
		d.posts[i] = &inbox{}
	}
	d.c, err = coordinator.New(cfg, d.names(), shares, &coordinator.Remote{
		Lead: farLead, Restarts: d.run.Restarts, Translate: d.clocks.translate, Ready: d.clocks.known, Holds: d.holds, Order: d.order, Look: d.look,
	})
	return err
}

func (d *drive) names() []string {
	var names []string
	for _, a := range d.abouts {
		names = append(names, a.Name)
	}
	return names
}

// deal assigns the parts.
func (d *drive) deal() (shares []engine.Worker, err error) {
	var agents []placement.Agent
	for _, a := range d.abouts {
		agents = append(agents, placement.Agent{Name: a.Name, Labels: a.Labels})
	}
	dealt, err := Assign(d.run.Placement, &d.run.Config, agents)
	if err != nil {
		return nil, err
	}
	for i, s := range dealt {
		shares = append(shares, engine.Worker{Producers: s.Producers, Consumers: s.Consumers, Follows: i > 0})
	}
	return shares, nil
}

// listen subscribes to standings and reports.
func (d *drive) listen(ctx context.Context) (undo func(), err error) {
	f, id := d.f, d.run.Config.RunID
	standings, err := f.nc.Subscribe(protocol.StandingSubject(f.session, "*"), d.stand)
	if err != nil {
		return nil, fmt.Errorf("listening to the agents: %w", err)
	}
	leaders, err := f.nc.Subscribe(protocol.LeadersSubject(f.session, "*"), d.tellLeaders)
	if err != nil {
		_ = standings.Unsubscribe()
		return nil, fmt.Errorf("listening to the agents: %w", err)
	}
	consumer, err := f.js.OrderedConsumer(ctx, streamPrefix+f.session, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{protocol.ReportSubject(f.session, id, "*")},
	})
	if err == nil {
		var reports jetstream.ConsumeContext
		if reports, err = consumer.Consume(d.report); err == nil {
			return func() { _, _ = standings.Unsubscribe(), leaders.Unsubscribe(); reports.Stop() }, nil
		}
	}
	_, _ = standings.Unsubscribe(), leaders.Unsubscribe()
	return nil, fmt.Errorf("reading the agents' reports: %w", err)
}

// give sends every agent its job.
func (d *drive) give(ctx context.Context) error {
	cfg := &d.run.Config
	errs := make([]error, len(d.abouts))
	var all sync.WaitGroup
	for i, a := range d.abouts {
		b := protocol.Encode(&protocol.Job{
			Session: d.f.session, Run: cfg.RunID, Number: cfg.Run, Scenario: d.run.Scenario, Files: d.run.Files, Address: d.run.Address,
			Options: d.run.Options, Servers: d.run.Servers, Index: i, Agents: d.names(), Workers: d.workers, Wire: cfg.Wire,
		})
		if most := min(protocol.JobSize, int(d.f.nc.MaxPayload())) - admission.Overhead; len(b) > most {
			return fmt.Errorf("the scenario and its files are %d bytes for an agent (at most %d)", len(b), most)
		}
		sealed, err := admission.Seal(b, a.Key)
		if err != nil {
			return fmt.Errorf("agent %s: %w", a.Name, err)
		}
		all.Go(func() { errs[i] = d.giveTo(ctx, a.Instance, sealed) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("agent %s: %w: %w", d.abouts[i].Name, coordinator.ErrAgent, err)
		}
	}
	return nil
}

// lookOut detects agents whose connection ends before the measured window, if the run can then be started again.
func (d *drive) lookOut(ctx context.Context) {
	if !d.run.Restarts {
		return
	}
	tick := time.NewTicker(lookOutEvery)
	defer tick.Stop()
	for !d.c.Measuring() {
		for i, a := range d.abouts {
			if d.f.quiet(a.Name) > lookOutEvery && d.f.left(a.Instance) {
				d.c.Vanished(i)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// giveTo asks an agent to take a job, again if it does not answer: jobs are idempotent. It also retries a
// busy agent, which may be leaving a run that has just ended or was called off.
func (d *drive) giveTo(ctx context.Context, instance string, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	var busy error
	for {
		asking, over := context.WithTimeout(ctx, protocol.AskLimit)
		m, err := d.f.nc.RequestWithContext(asking, protocol.OrderSubject(instance, "job"), b)
		over()
		if err == nil {
			var a protocol.Answer
			if err := protocol.Decode(m.Data, protocol.SmallSize, &a); err != nil {
				return err
			}
			switch {
			case a.Error == "":
				return nil
			case !a.Busy:
				return protocol.ErrorOf(protocol.Shown(a.Error), a.Kind)
			}
			busy = errors.New(protocol.Shown(a.Error))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not take the job: %w", cmp.Or(busy, err))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stand handles an agent's standing.
func (d *drive) stand(m *nats.Msg) {
	var s protocol.Standing
	instance := m.Subject[len(protocol.StandingSubject(d.f.session, "")):]
	if err := protocol.Decode(m.Data, protocol.StandingSize, &s); err != nil {
		d.refuse("a standing", instance, err)
		return
	}
	if s.Run != d.run.Config.RunID {
		return // from an earlier run
	}
	i, ok := d.ids[instance]
	if !ok {
		d.refuse("a standing", instance, errStranger)
		return
	}
	d.f.hear(d.abouts[i].Name)
	d.clocks.add(i, s.Exchanges)
	d.c.Reached(i, s.Come, s.Facts)
	if s.Status != nil {
		d.c.Status(i, s.Status)
	}
	if s.Error != "" {
		if errors.Is(protocol.ErrorOf(s.Error, s.Kind), protocol.ErrLeft) {
			d.c.Vanished(i)
		}
		d.c.End(i, nil, protocol.ErrorOf(s.Error, s.Kind))
	}
}

// errStranger refuses messages of agents without a part in the run.
var errStranger = errors.New("it comes from an agent outside this run")

// mostRefused limits the events about refused reports of one agent.
const mostRefused = 50

// refuse logs that something from an agent was refused.
func (d *drive) refuse(what, instance string, why error) {
	peer := instance
	if i, ok := d.ids[instance]; ok {
		peer = d.abouts[i].Name
	}
	d.f.limited.Warn(what+" was refused", peer, "run", d.run.Config.RunID, "why", why)
}

// report handles a piece of an agent's report.
func (d *drive) report(m jetstream.Msg) {
	prefix := protocol.ReportSubject(d.f.session, d.run.Config.RunID, "")
	subject := m.Subject()
	if len(subject) <= len(prefix) {
		return
	}
	instance := subject[len(prefix):]
	i, ok := d.ids[instance]
	if !ok {
		d.refuse("a report", instance, errStranger)
		return
	}
	x := d.posts[i]
	whole, err := x.pieces.Add(m.Data())
	if whole != nil {
		var r *protocol.Report
		if r, err = d.decoder.Decode(whole); err == nil {
			err = d.read(i, r)
		}
	}
	if err == nil {
		return
	}
	d.refuse("a report", instance, err)
	if x.refused++; x.refused <= mostRefused {
		d.c.Event(i, engine.Event{At: d.c.Now(), Kind: "report", Text: "a report was refused: " + err.Error()})
	}
}

// read applies an agent's report.
func (d *drive) read(i int, r *protocol.Report) error {
	x := d.posts[i]
	switch {
	case r.Agent != d.abouts[i].Name:
		return fmt.Errorf("%w: a report of agent %s", protocol.ErrMalformed, r.Agent)
	case x.done || r.Seq <= x.seq:
		return nil // read before
	case r.Seq != x.seq+1:
		d.mu.Lock()
		x.lost += r.Seq - x.seq - 1
		d.mu.Unlock()
		d.c.Event(i, engine.Event{At: r.At, Kind: "report", Text: fmt.Sprintf("%d reports are missing", r.Seq-x.seq-1)})
	}
	x.seq = r.Seq
	if r.Interval.To != 0 {
		d.c.Interval(i, &r.Interval)
	}
	if len(r.Ledger) > 0 {
		if err := d.readLedger(r.Ledger, &d.ledger); err != nil {
			return fmt.Errorf("its ledger: %w", err)
		}
		d.c.Ledger(i, r.At, &d.ledger)
	}
	for _, e := range r.Events {
		if e.Kind == "injected" {
			var by string
			e.At, by = d.clocks.reading(i, e.At)
			e.Text += by
		}
		d.c.Event(i, e)
	}
	f := r.Final
	if f == nil {
		return nil
	}
	if len(f.Late) > 0 {
		f.Part.Late = new(ledger.Part)
		if err := d.readLedger(f.Late, f.Part.Late); err != nil {
			return fmt.Errorf("what came late: %w", err)
		}
	}
	x.done = true
	f.Part.Gone = protocol.ErrorOf(f.Gone, f.GoneKind)
	d.mu.Lock()
	d.finals[i] = f
	d.mu.Unlock()
	d.c.EndReported(i, f.Part, &f.Extremes, f.Window, protocol.ErrorOf(f.Error, f.Kind))
	return nil
}

// holds queries the system about a subscription through an agent.
func (d *drive) holds(i, sub int) (nothing, answered bool) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(sub))
	m, err := d.f.nc.Request(protocol.OrderSubject(d.abouts[i].Instance, "holds"), b[:], time.Second)
	if err != nil {
		return false, false
	}
	var a protocol.Answer
	if protocol.Decode(m.Data, protocol.SmallSize, &a) != nil {
		return false, false
	}
	return a.Nothing, a.Answered
}

// readLedger decodes a ledger of this run.
func (d *drive) readLedger(b []byte, into *ledger.Part) error {
	into.Limits = d.c.Limits()
	if err := into.UnmarshalBinary(b); err != nil {
		return err
	}
	if of := into.Of(); of != into.Limits {
		return fmt.Errorf("%w: a ledger of %d streams and %d subscriptions, the run has %d and %d", protocol.ErrMalformed,
			of.Streams, of.Subscriptions, into.Limits.Streams, into.Limits.Subscriptions)
	}
	return nil
}

// look does the periodic work during a run.
func (d *drive) look() {
	if !d.full && d.f.full() {
		d.full = true
		d.c.Tell(engine.Event{At: d.c.Now(), Kind: "disk", Text: "the coordinator's disk is full: it takes no more reports from agents"})
	}
	switch {
	case !d.c.Begun():
	case d.stamped.IsZero():
		d.stamped = time.Now()
		if err := d.keep(); err != nil {
			d.f.o.Log.Warn("the run could not be resumed", "why", err)
		}
	case time.Since(d.stamped) > stampEvery:
		d.stamped = time.Now()
		d.stamp()
	}
}

// conduct brings the run to its end, and returns the result.
func (d *drive) conduct(ctx context.Context, stop <-chan struct{}) (*Done, error) {
	var asking sync.WaitGroup
	asking.Go(func() { d.daemon(ctx) })
	raw, err := d.c.Conduct(ctx, stop)
	asking.Wait()
	if raw == nil {
		return nil, err
	}
	d.daemon(context.Background())
	done := &Done{Raw: raw, Clock: d.clocks.bound(d.flows), Gaps: d.gaps, Full: d.f.full()}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, share := range d.workers {
		t := AgentReport{About: d.abouts[i], Share: share, Part: raw.Workers[i], Absences: d.c.Absences(i), Lost: d.posts[i].lost, Clock: d.clocks.watch(i)}
		if f := d.finals[i]; f != nil {
			t.Cost, t.Facts, t.Procs = f.Cost, f.Host, f.Procs
			t.Starts = f.Part.FirstNS + t.Clock.AtStartNS
			d.check(i, &t.Clock, f.Daemons)
		}
		done.Agents = append(done.Agents, t)
	}
	return done, err
}
