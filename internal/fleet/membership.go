package fleet

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/placement"
)

// How often a coordinator publishes, and its time limits.
const (
	beaconEvery = time.Second
	ordersEvery = 100 * time.Millisecond
	linesEvery  = 2                // orders
	jobLimit    = 20 * time.Second // for an agent to take a job
	makeLimit   = 30 * time.Second // to create the stream of reports on a busy disk
)

// Options of a coordinator.
type Options struct {
	Listen  string            // address of its own NATS server; see hub.Options
	Keep    *admission.Keep   // certificate and tokens; nil only with an existing server
	Server  admission.Address // an existing server instead; zero: none
	Dir     string            // for streams, and state for a restart
	Session string            // to resume; "": a new one
	Version string
	Log     *slog.Logger
	Note    func(format string, args ...any) // reports events to the user; nil: no
	Brought bool                             // the user need not start agents
}

// ErrTooFew says that too few agents joined in time.
var ErrTooFew = errors.New("too few agents")

// A Fleet is a coordinator and the agents that joined it.
type Fleet struct {
	o             Options
	limited       *hub.LimitedLog
	hub           *hub.Hub // nil with an existing server
	nc            *nats.Conn
	reports       *nats.Conn // has JetStream; nc itself with an existing server
	js            jetstream.JetStream
	session       string
	authenticator *admission.Authenticator
	clock         *pace.Clock

	cancel context.CancelFunc
	side   sync.WaitGroup

	mu      sync.Mutex
	peers   map[string]*peer
	refused map[string]string // reasons, by agent
	changed chan struct{}     // closed and replaced when an agent joins
}

// A peer is an agent that joined.
type peer struct {
	protocol.About
	heard  time.Time // last message
	missed int       // consecutive presence checks not answered in time
}

// Open creates a coordinator that agents can join. Close ends it.
func Open(ctx context.Context, o Options) (*Fleet, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{o: o, limited: hub.NewLimitedLog(o.Log), session: o.Session, peers: map[string]*peer{}, refused: map[string]string{}, changed: make(chan struct{}), clock: pace.NewClock()}
	if f.session == "" {
		f.session = "s" + random()
	}
	f.authenticator = admission.NewAuthenticator(o.Keep, o.Version, nil)
	if err := f.connect(ctx); err != nil {
		f.disconnect()
		return nil, err
	}
	if err := f.listen(); err != nil {
		f.disconnect()
		return nil, err
	}
	on, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.side.Go(func() { f.beacon(on) })
	return f, nil
}

// random returns a unique text.
func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// connect starts the server, or connects to the existing one.
func (f *Fleet) connect(ctx context.Context) (err error) {
	if f.o.Server.Host != "" {
		self, err := admission.NewSelf()
		if err != nil {
			return err
		}
		if f.nc, err = hub.Dial(ctx, f.o.Server, self, "coordinator", f.o.Log); err != nil {
			return err
		}
		f.reports = f.nc
	} else {
		f.hub, err = hub.Start(ctx, hub.Options{Listen: f.o.Listen, Keep: f.o.Keep, Dir: filepath.Join(f.o.Dir, "streams"), Log: f.o.Log})
		if err != nil {
			return err
		}
		if f.nc, err = f.hub.Dial(ctx, "coordinator", f.o.Log); err != nil {
			return err
		}
		if f.reports, err = f.hub.DialReports(ctx, "coordinator's books", f.o.Log); err != nil {
			return err
		}
	}
	if f.js, err = jetstream.New(f.reports); err != nil {
		return fmt.Errorf("using JetStream: %w", err)
	}
	if f.hub != nil {
		f.clear(ctx, time.Now())
	}
	making, cancel := context.WithTimeout(ctx, makeLimit)
	defer cancel()
	_, err = f.js.CreateOrUpdateStream(making, jetstream.StreamConfig{
		Name: streamPrefix + f.session, Subjects: []string{protocol.ReportSubject(f.session, "*", "*")}, Storage: jetstream.FileStorage,
		Duplicates: 10 * time.Minute, MaxAge: reportsKept, // MaxAge: for coordinators that are never resumed
		Description: "reports of a weir fleet",
	})
	if err != nil {
		return fmt.Errorf("making the stream of reports: %w", err)
	}
	return nil
}

// listen subscribes to agents' requests.
func (f *Fleet) listen() error {
	for subject, handle := range map[string]nats.MsgHandler{
		protocol.DoorSubject(f.session, "*", "challenge"): f.challenge,
		protocol.DoorSubject(f.session, "*", "join"):      f.admit,
		protocol.ClockSubject(f.session):                  f.time,
		protocol.RosterSubject:                            f.says,
	} {
		if _, err := f.nc.Subscribe(subject, handle); err != nil {
			return fmt.Errorf("listening for agents: %w", err)
		}
	}
	return nil
}

// time answers a clock query with the times of arrival and answer, on the host's monotonic clock.
func (f *Fleet) time(m *nats.Msg) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(f.clock.Monotonic()))
	if !protocol.Answerable(m.Reply) {
		return
	}
	binary.LittleEndian.PutUint64(b[8:], uint64(f.clock.Monotonic()))
	_ = m.Respond(b[:]) // the asker retries
}

// answer answers a request if its reply subject is acceptable.
func (f *Fleet) answer(m *nats.Msg, a protocol.Answer) {
	if protocol.Answerable(m.Reply) {
		_ = m.Respond(protocol.Encode(a)) // the asker retries
	}
}

func (f *Fleet) challenge(m *nats.Msg) {
	var c protocol.Challenge
	var a protocol.Answer
	err := protocol.Decode(m.Data, protocol.SmallSize, &c)
	if err == nil {
		a.Nonce, err = f.authenticator.Challenge(c.Agent)
	}
	if err != nil {
		f.limited.Warn("challenge refused", f.knocks(m), "why", err)
		a.Error = err.Error()
	}
	f.answer(m, a)
}

func (f *Fleet) admit(m *nats.Msg) {
	var a protocol.Answer
	if name, err := f.enter(f.knocks(m), m.Data); err != nil {
		f.limited.Warn("join refused", f.knocks(m), "why", err)
		a.Error = err.Error()
		f.mu.Lock()
		if len(f.refused) < 64 {
			f.refused[name] = err.Error()
		}
		f.mu.Unlock()
	}
	f.answer(m, a)
}

// knocks returns the instance that asks to join.
func (f *Fleet) knocks(m *nats.Msg) string {
	instance, _, _ := strings.Cut(m.Subject[len(protocol.DoorSubject(f.session, "", ""))-1:], ".")
	return instance
}

// enter admits an agent that asks to join, or refuses it. The hub prevents agents from asking in another's
// name, so the key is the agent's own.
func (f *Fleet) enter(instance string, data []byte) (name string, err error) {
	j, err := admission.Decode(data)
	if err != nil {
		return "?", err
	}
	if err := f.authenticator.Admit(j); err != nil {
		return j.Agent, err
	}
	p := &peer{heard: time.Now()}
	if err := protocol.Decode(j.About, admission.AboutSize, &p.About); err != nil {
		return j.Agent, err
	}
	p.Name, p.Labels, p.Version = j.Agent, j.Labels, j.Version
	if err := p.Check(); err != nil {
		return j.Agent, err
	}
	if p.Instance != instance || !admission.CheckKey(p.Key) {
		return j.Agent, fmt.Errorf("%w: agent %s joins under another identity, or has no key", protocol.ErrMalformed, p.Name)
	}
	f.mu.Lock()
	before := f.peers[p.Name]
	f.mu.Unlock()
	if before != nil && before.Instance != p.Instance {
		if f.there(before) {
			return j.Agent, fmt.Errorf("an agent on %[2]s already has the name %[1]s (give each a --name of its own)", p.Name, before.Host)
		}
	}
	f.mu.Lock()
	f.peers[p.Name] = p
	delete(f.refused, p.Name)
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	f.o.Log.Info("agent joined", "agent", p.Name, "host", p.Host)
	return j.Agent, nil
}

// missedLimit is how many consecutive queries, of a second each, an agent may miss before its place is
// free: a busy host, or one that was suspended, answers some seconds late.
const missedLimit = 5

// left reports whether an agent's connection has ended: the server knows that nothing listens for it.
func (f *Fleet) left(instance string) bool {
	return errors.Is(f.knock(instance), nats.ErrNoResponders)
}

// knock asks an agent for a sign of life.
func (f *Fleet) knock(instance string) error {
	_, err := f.nc.Request(protocol.AskSubject(instance, "clock"), nil, time.Second)
	return err
}

// there reports whether an agent keeps its place: one that left does not, a silent one until missedLimit.
func (f *Fleet) there(p *peer) bool {
	err := f.knock(p.Instance)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		p.missed = 0
	case errors.Is(err, nats.ErrNoResponders):
		return false
	default:
		p.missed++
	}
	return p.missed < missedLimit
}

// beacon announces the coordinator until ctx ends.
func (f *Fleet) beacon(ctx context.Context) {
	hostname, _ := os.Hostname() // "" if it has none
	b := protocol.Encode(protocol.Beacon{Session: f.session, Version: f.o.Version, Host: hostname})
	tick := time.NewTicker(beaconEvery)
	defer tick.Stop()
	for {
		_ = f.nc.Publish(protocol.BeaconSubject, b) // the next one repeats it
		f.limited.Tick()
		if f.hub != nil {
			f.hub.Tick()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// JoinURL is where agents of this host and user join (see admission.Address.IsOwn) or, with an existing
// server, everyone with its credentials; "" if neither applies.
func (f *Fleet) JoinURL() string {
	if f.hub == nil {
		return f.o.Server.String()
	}
	if own, ok := f.hub.OwnURL(); ok {
		return own.String()
	}
	return ""
}

// invitation says how agents join.
func (f *Fleet) invitation() string {
	const elsewhere = "the URL that weir fleet token prints"
	switch url := f.JoinURL(); {
	case f.hub == nil:
		return url
	case url == "":
		return "URL, of " + elsewhere
	default:
		return url + " (of this user on this host; else with " + elsewhere + ")"
	}
}

// A Want says which agents a coordinator waits for.
type Want struct {
	Agents     int              // number that execute a run
	StartOn    string           // the agent that starts the system on its host; "": none
	Placements []placement.Spec // of the runs; nil: one that names no agent
}

// carries reports whether an agent may have a part of a run: any may, except that the agent that starts the
// system needs to be named by the placement.
func carries(a protocol.About, startOn string, p placement.Spec) bool {
	return a.Name != startOn || p.Names(placement.Agent{Name: a.Name, Labels: a.Labels})
}

// of counts the agents that can take part in every run, and reports whether all includes the agent that
// starts the system.
func (w *Want) of(all []protocol.About) (can int, starter bool) {
	placements := w.Placements
	if placements == nil {
		placements = make([]placement.Spec, 1)
	}
	starter = w.StartOn == ""
	for _, a := range all {
		starter = starter || a.Name == w.StartOn
		if !slices.ContainsFunc(placements, func(p placement.Spec) bool { return !carries(a, w.StartOn, p) }) {
			can++
		}
	}
	return can, starter
}

// beside describes the state of the agent that starts the system.
func (w *Want) beside(starter bool) string {
	switch {
	case w.StartOn == "":
		return ""
	case starter:
		return ", and " + w.StartOn + " to start the system there"
	}
	return ", and not " + w.StartOn + ", where the system is to be started"
}

// Await waits up to most for the wanted number of agents, and for the one that is to start the system on
// its host.
func (f *Fleet) Await(ctx context.Context, w Want, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	said := ""
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		have, starter := w.of(f.Agents())
		if have >= w.Agents && starter {
			return nil
		}
		have = min(have, w.Agents)
		state := fmt.Sprintf("%d of %d agents have joined%s%s", have, w.Agents, w.beside(starter), f.names())
		if state != said && f.o.Note != nil {
			said = state
			if !f.o.Brought {
				state += "; agents join with: weir agent --join " + f.invitation()
			}
			f.o.Note("%s", state)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("stopped before enough agents joined: %w", ctx.Err())
			}
			hint := ""
			if starter && w.StartOn != "" {
				hint = fmt.Sprintf("; %s takes part where a list of the placement names it", w.StartOn)
			}
			return fmt.Errorf("%w: %d of %d joined within %v%s%s%s", ErrTooFew, have, w.Agents, most, w.beside(starter), f.whyNot(), hint)
		}
	}
}

// names lists who joined.
func (f *Fleet) names() string {
	var all []string
	for _, p := range f.Agents() {
		all = append(all, p.Name+" on "+p.Host)
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// whyNot lists the agents that joined, that were refused, and that belong to another coordinator.
func (f *Fleet) whyNot() string {
	text := f.names()
	f.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(f.refused)) {
		text += fmt.Sprintf("; %s was refused: %s", name, f.refused[name])
	}
	f.mu.Unlock()
	all, err := survey.Agents(f.nc, time.Second)
	if err != nil {
		return text
	}
	for _, a := range all {
		switch {
		case !buildinfo.Same(a.Version, f.o.Version):
			text += fmt.Sprintf("; %s on %s runs weir %s, the coordinator weir %s", a.Name, a.Host, a.Version, f.o.Version)
		case a.Session != "" && a.Session != f.session:
			text += fmt.Sprintf("; %s on %s belongs to another coordinator", a.Name, a.Host)
			if a.Busy != "" {
				text += " and is busy with its run " + a.Busy
			}
		}
	}
	return text
}

// Agents returns the agents that joined, sorted by name.
func (f *Fleet) Agents() []protocol.About {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []protocol.About
	for _, p := range f.peers {
		all = append(all, p.About)
	}
	slices.SortFunc(all, func(a, b protocol.About) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// RollCall drops the agents that left or do not answer, and returns their names.
func (f *Fleet) RollCall() (gone []string) {
	f.mu.Lock()
	peers := maps.Clone(f.peers)
	f.mu.Unlock()
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, p := range peers {
		all.Go(func() {
			err := f.knock(p.Instance)
			for n := 1; err != nil && !errors.Is(err, nats.ErrNoResponders) && n < missedLimit; n++ {
				err = f.knock(p.Instance)
			}
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			gone = append(gone, name)
		})
	}
	all.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range gone {
		if f.peers[name] == peers[name] { // none has come back meanwhile
			delete(f.peers, name)
		}
	}
	slices.Sort(gone)
	return gone
}

// Choose returns the names of n agents that joined: first those that the placement names, then by name.
// startOn, which starts the system on its host, is chosen only if the placement names it.
func (f *Fleet) Choose(n int, p placement.Spec, startOn string) []string {
	all := slices.DeleteFunc(f.Agents(), func(a protocol.About) bool { return !carries(a, startOn, p) })
	wanted := func(a protocol.About) int {
		if p.Names(placement.Agent{Name: a.Name, Labels: a.Labels}) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b protocol.About) int { return wanted(a) - wanted(b) })
	var names []string
	for _, a := range all[:min(n, len(all))] {
		names = append(names, a.Name)
	}
	return names
}

// Close ends the coordinator. Agents look for another one.
func (f *Fleet) Close() {
	f.cancel()
	f.side.Wait()
	f.limited.End()
	ctx, cancel := context.WithTimeout(context.Background(), protocol.AskLimit)
	defer cancel()
	if err := f.js.DeleteStream(ctx, streamPrefix+f.session); err != nil {
		f.o.Log.Warn("the stream of reports could not be removed", "why", err)
	}
	f.disconnect()
	if f.hub == nil {
		return
	}
	// The server removes a stream's files in the background, and may have ended before that.
	left, _ := filepath.Glob(filepath.Join(f.o.Dir, "streams", "jetstream", "*", "streams", "."+streamPrefix+f.session)) // the pattern is sound
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			f.o.Log.Warn("the stream of reports could not be removed", "why", err)
		}
	}
}

// full reports whether storing the agents' reports met a full disk here. For an existing server this is
// unknown.
func (f *Fleet) full() bool { return f.hub != nil && f.hub.Full() }

func (f *Fleet) disconnect() {
	for _, nc := range []*nats.Conn{f.nc, f.reports} {
		if nc != nil {
			nc.Close()
		}
	}
	if f.hub != nil {
		f.hub.Close()
	}
}
