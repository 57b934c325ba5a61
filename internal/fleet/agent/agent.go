// Package agent runs one process of a fleet. It joins coordinators, one after another, executes its part of
// their runs, and starts systems on its host if allowed. When a coordinator is silent for long, the agent
// ends its part by itself.
package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
)

// What an agent may be allowed besides running drivers.
const (
	AllowBroker = "broker" // to start servers on its host
	AllowFaults = "faults" // to execute a scenario's faults on its host
)

// An Agent is one process of a fleet.
type Agent struct {
	Address admission.Address
	Name    string // see placement.CheckName
	Labels  map[string]string
	Allow   []string
	Version string // buildinfo.Identity, which must match the coordinator's
	Drivers *driver.Registry
	Env     func(string) (string, bool)
	Reach   Reach  // what a scenario may refer to in Env and on this host's disk
	Dir     string // holds a folder with its own files for each run; "": none
	Clock   func() *pace.Clock
	OwnTime bool // no other process reads Clock
	FIFO    bool // real-time priority for pacers on this host, if permitted

	// Start starts the system of a scenario on this host, if Allow has AllowBroker. It reports each step,
	// and servers' events; it returns when the system answers, or fails, leaving nothing behind. The system
	// ends with this process.
	Start func(ctx context.Context, s *scenario.Scenario, doing func(line string), happened func(Happening)) (*System, error)

	Self string // path of weir's own binary, for child processes; "": the agent steps no clock

	// Able refuses fault verbs that this host does not allow; nil: all are allowed.
	Able func(ctx context.Context, verbs []string) error

	Log  *slog.Logger
	Note func(format string, args ...any) // reports to the user; nil: silent

	self     *admission.Self
	instance string // its ID
	limited  *hub.LimitedLog
	nc       *nats.Conn
	ending   <-chan struct{} // closed when the agent should end
	base     *pace.Clock     // for queries, during and between runs
	looker   looker
	patience time.Duration // with the coordinator of a system here; 0: protocol.LostLimit

	mu      sync.Mutex
	session string    // of its coordinator; "": none
	heard   time.Time // the latest beacon
	task    *task     // in progress; nil: none
	refused string    // why the last join was refused
	hosting *hosting  // latest system on this host; nil: none yet
	left    bool      // it is ending: start no further system
}

// Run joins fleets, one after another, and executes their runs until ctx ends. It returns an error if the
// first connection failed (see hub.Dial), or if it was shut out for good. When a coordinator disappears it
// waits for that one, or another.
func (a *Agent) Run(ctx context.Context) error {
	var err error
	if a.self, err = admission.NewSelf(); err != nil {
		return err
	}
	a.instance = a.self.ID()
	a.limited = hub.NewLimitedLog(a.Log)
	defer a.limited.End()
	a.base = a.Clock()
	a.ending = ctx.Done()
	closed := make(chan struct{})
	nc, err := a.dial(ctx, closed)
	if err != nil {
		return err
	}
	a.nc = nc
	defer nc.Close()
	a.note("connected to %s as %s", a.where(), a.Name)
	service, err := a.serve()
	if err != nil {
		return fmt.Errorf("offering the agent's service: %w", err)
	}
	defer func() { _ = service.Stop() }()
	beacons, err := nc.Subscribe(protocol.BeaconSubject, func(m *nats.Msg) { a.beacon(ctx, m) })
	if err != nil {
		return fmt.Errorf("listening for coordinators: %w", err)
	}
	defer func() { _ = beacons.Unsubscribe() }()
	select {
	case <-ctx.Done():
	case <-closed:
		err = fmt.Errorf("the connection to %s was ended: %w", a.Address, nc.LastError())
	}
	a.mu.Lock()
	t := a.task
	a.mu.Unlock()
	if t != nil {
		t.cancel()
		<-t.done
	}
	a.leave()
	return err
}

// dial connects, with retries while no server answers.
func (a *Agent) dial(ctx context.Context, closed chan struct{}) (*nats.Conn, error) {
	for tries := 0; ; tries++ {
		nc, err := hub.Dial(ctx, a.Address, a.self, "agent "+a.Name, a.Log, nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
		if err == nil || !errors.Is(err, driver.ErrUnreachable) || ctx.Err() != nil {
			return nc, err
		}
		switch tries {
		case 0:
			a.note("waiting for a coordinator at %s", a.where())
		case triesBeforeWhy:
			a.note("no coordinator answers at %s yet (%v)", a.where(), err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(tryEvery):
		}
	}
}

// where is the address for people, without the fingerprint.
func (a *Agent) where() string { return a.Address.Scheme + "://" + a.Address.Host }

func (a *Agent) note(format string, args ...any) {
	if a.Note != nil {
		a.Note(format, args...)
	}
}

// serve offers the agent as a micro-service.
func (a *Agent) serve() (micro.Service, error) {
	labels := map[string]string{"agent": a.Name, "weir": a.Version}
	s, err := micro.AddService(a.nc, micro.Config{
		Name: serviceName, Version: "1.0.0", Description: "runs its part of a fleet's runs", Metadata: labels,
		QueueGroupDisabled: true, // each agent answers
	})
	if err != nil {
		return nil, err
	}
	for name, handle := range map[string]func(micro.Request){
		"job":     a.take,
		"may":     a.may,
		"holds":   a.holds,
		"leaders": a.tellLeaders,
		"system":  a.system,
		"faults":  a.faults,
	} {
		err = errors.Join(err, s.AddEndpoint(name, micro.HandlerFunc(func(r micro.Request) {
			go handle(r) // slow handlers must not delay others
		}), micro.WithEndpointSubject(protocol.OrderSubject(a.instance, name)), micro.WithEndpointQueueGroupDisabled()))
	}
	for subject, handle := range a.answers() {
		name := strings.ReplaceAll(strings.TrimPrefix(subject, protocol.AskPrefix), ".", "-")
		err = errors.Join(err, s.AddEndpoint("ask-"+name, micro.HandlerFunc(func(r micro.Request) { go handle(r) }),
			micro.WithEndpointSubject(subject), micro.WithEndpointQueueGroupDisabled()))
	}
	if err != nil {
		_ = s.Stop()
		return nil, err
	}
	return s, nil
}

// reply answers a request if its reply subject is acceptable.
func reply(r micro.Request, v any) {
	if protocol.Answerable(r.Reply()) {
		_ = r.Respond(protocol.Encode(v)) // the asker retries, or not
	}
}

// clockID is the same for processes that read the same monotonic clock: those of one boot of one kernel, in
// one time namespace.
func (a *Agent) clockID() string {
	if a.OwnTime {
		return a.instance
	}
	return pace.ClockID()
}

// beacon handles a coordinator's beacon: the agent's own, or the first one if it has none.
func (a *Agent) beacon(ctx context.Context, m *nats.Msg) {
	var b protocol.Beacon
	if err := protocol.Decode(m.Data, protocol.SmallSize, &b); err != nil || b.Session == "" || strings.ContainsAny(b.Session, ".*> ") {
		return
	}
	a.mu.Lock()
	mine := a.session == b.Session
	free := a.session == "" || time.Since(a.heard) > beaconLimit && a.task == nil && !a.hosts()
	if mine || free {
		a.heard = time.Now()
	}
	a.mu.Unlock()
	if mine || !free {
		return
	}
	a.mu.Lock()
	a.session = b.Session // a job may arrive before the answer
	a.mu.Unlock()
	if err := a.join(ctx, b); err != nil {
		a.mu.Lock()
		again := a.refused == err.Error()
		a.session, a.refused = "", err.Error()
		a.mu.Unlock()
		if !again && ctx.Err() == nil && a.limited.May("refused", "") {
			a.note("refused by the coordinator on %s: %s", protocol.Short(b.Host), protocol.Shown(err.Error()))
		}
		return
	}
	a.mu.Lock()
	a.refused = ""
	a.mu.Unlock()
	if a.limited.May("joined", "") {
		a.note("joined the coordinator on %s", protocol.Short(b.Host))
	}
}

// join asks to be admitted.
func (a *Agent) join(ctx context.Context, b protocol.Beacon) error {
	if err := admission.Like(a.Version, b.Version); err != nil {
		return err
	}
	var got protocol.Answer
	if err := a.ask(ctx, protocol.DoorSubject(b.Session, a.instance, "challenge"), protocol.Encode(protocol.Challenge{Agent: a.Name}), &got); err != nil {
		return err
	}
	j := admission.Request{Agent: a.Name, Version: a.Version, Labels: a.Labels, About: protocol.Encode(a.about()), Nonce: got.Nonce}
	j.Prove(a.Address.Token)
	whole, err := j.Encode()
	if err != nil {
		return err
	}
	return a.ask(ctx, protocol.DoorSubject(b.Session, a.instance, "join"), whole, &got)
}

// ask sends a request to the coordinator.
func (a *Agent) ask(ctx context.Context, subject string, question []byte, into *protocol.Answer) error {
	ctx, cancel := context.WithTimeout(ctx, protocol.AskLimit)
	defer cancel()
	m, err := a.nc.RequestWithContext(ctx, subject, question)
	if err != nil {
		return err
	}
	if err := protocol.Decode(m.Data, protocol.SmallSize, into); err != nil {
		return err
	}
	if into.Error != "" {
		return errors.New(into.Error)
	}
	return nil
}

// take handles a job.
func (a *Agent) take(r micro.Request) {
	var j protocol.Job
	err := a.open(r.Data(), &j)
	if err == nil {
		err = j.Check()
	}
	if err == nil {
		err = a.begin(&j)
	}
	var answer protocol.Answer
	if err != nil {
		answer.Error, answer.Kind, answer.Busy = err.Error(), protocol.KindOf(err), errors.Is(err, errBusy)
		a.limited.Warn("job refused", "", "run", j.Run, "why", err)
	}
	reply(r, answer)
}

// open decrypts an order sealed for this agent.
func (a *Agent) open(sealed []byte, into any) error {
	b, err := a.self.Open(sealed)
	if err != nil {
		return fmt.Errorf("%w: %w", protocol.ErrMalformed, err)
	}
	return protocol.Decode(b, protocol.JobSize, into)
}

// errBusy says that another job is in progress.
var errBusy = errors.New("the agent is busy")

// begin starts a run's task. Repeating a job in progress is fine; a task that has ended and is only
// reporting makes room.
func (a *Agent) begin(j *protocol.Job) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.task; t != nil && j.Session == a.session && t.job.Run != j.Run && latch.Closed(t.ended) {
		a.mu.Unlock()
		t.dismiss()
		select {
		case <-t.done:
		case <-time.After(protocol.AskLimit):
		}
		a.mu.Lock()
	}
	switch {
	case j.Session != a.session:
		return errors.New("the agent belongs to another coordinator, or to none yet")
	case j.Agents[j.Index] != a.Name:
		return fmt.Errorf("%w: the job is for agent %s", protocol.ErrMalformed, j.Agents[j.Index])
	case a.task != nil && a.task.job.Run == j.Run:
		return nil
	case a.task != nil:
		return fmt.Errorf("%w with run %s", errBusy, a.task.job.Run)
	}
	t, err := newTask(a, j)
	if err != nil {
		return err
	}
	a.task = t
	a.note("run %s begins: part %d of %d", j.Run, j.Index+1, len(j.Agents))
	go func() {
		t.run()
		a.mu.Lock()
		a.task = nil
		a.mu.Unlock()
		a.note("run %s has ended%s", j.Run, t.how())
		close(t.done)
	}()
	return nil
}

// holds queries the system about a subscription.
func (a *Agent) holds(r micro.Request) {
	a.mu.Lock()
	t := a.task
	a.mu.Unlock()
	if t == nil {
		return // an agent of the same name may have it
	}
	var got protocol.Answer
	if sub := r.Data(); len(sub) == 4 {
		got.Nothing, got.Answered = t.holds(int(binary.LittleEndian.Uint32(sub)))
	}
	reply(r, got)
}

// serviceName is the agent's name among NATS's micro-services.
const serviceName = "weir-agent"

// How often an agent publishes, and its time limits.
const (
	beaconLimit    = 5 * time.Second // without a beacon, before it looks for another coordinator
	standingEvery  = 100 * time.Millisecond
	clockEvery     = 100 * time.Millisecond
	tryEvery       = time.Second // between attempts to join
	triesBeforeWhy = 5
)
