package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/live"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A measurement is one run from its folder to its result.
type measurement struct {
	env      *env
	scenario *scenario.Scenario
	folder   *result.Folder
	dir      string
	which    string // names it among several; "" for the only one
	started  time.Time
	view     *live.View
	early    *judge.Early  // ends the run; nil: nothing does
	enough   chan struct{} // closed by it
	strict   bool          // an undecided objective counts as missed in the exit code
	session  uint64        // messages of a user's session, for report.html; 0: not asked for
	entry    report.Entry  // what its page shows, when it is written

	running   *broker.Running      // the system, where weir started it
	installed *broker.Installation // what was started, with start: process
	servers   *host.ServerMeter    // of its processes; nil: none, or the host does not tell
	clock     *pace.Clock          // the meter's

	fleet   *fleet.Fleet      // that does the run; nil: this process
	agents  int               // how many of it
	chosen  []string          // the names of these, once they are
	startOn string            // the agent on whose host the system is started; "": here, or nowhere
	there   *fleet.System     // what was started there
	files   map[string][]byte // that the scenario read, by path
	done    *fleet.Done       // what the fleet's run came to
	config  engine.Config     // of that

	paused *fleet.Paused // the run, where it was begun by another coordinator
	fifo   bool          // lanes of this host shall take precedence

	procs       int             // of the Go scheduler during the run
	slices      judge.Slices    // of the measured samples
	parts       measure.Seconds // what has come of the open second
	told        sync.Once
	unwritten   bool // told of it; read when the engine has returned
	id          string
	run         uint32
	calibration pace.Calibration
	cost        judge.Cost

	mu        sync.Mutex
	epoch     int64 // on the host's monotonic clock; 0 before it is known
	ended     bool  // the system that weir started is being ended
	died      []death
	intervals []result.Interval
	seconds   []judge.Second
}

// begin writes what is known before the first message, so that a run that is
// killed leaves behind what it was. lanes is how many there will be.
func (m *measurement) begin(ctx context.Context, lanes int) {
	m.procs = runtime.NumCPU() + lanes // as the engine sets it for the run
	m.keep(m.folder.WriteScenario(m.scenario.YAML()))
	m.keep(m.folder.WriteEnvironment(m.environment(ctx, nil)))
}

// keep tells of the first error of the result folder when it happens. The
// folder keeps every one, which are told at the end.
func (m *measurement) keep(err error) {
	if err != nil {
		m.told.Do(func() {
			m.unwritten = true
			m.complain(fmt.Errorf("%w; the run goes on", err))
		})
	}
}

// abandon leaves no folder behind where nothing was measured and nothing
// happened that could be read in it.
func (m *measurement) abandon() {
	if m.folder.Events() > 0 {
		_ = m.folder.Close() // the run's own error is the one to tell
		return
	}
	dir := m.env.path(m.dir)
	for _, name := range []string{result.FileScenario, result.FileEnvironment} {
		_ = os.Remove(filepath.Join(dir, name)) // ours, of begin
	}
	_ = os.Remove(dir) // empty, or it stays
}

// start starts intervals.hlog.
func (m *measurement) start(epoch pace.Epoch) {
	m.procs = runtime.GOMAXPROCS(0) // what is in force now
	m.mu.Lock()
	m.epoch = epoch.MonotonicNS
	m.mu.Unlock()
	m.keep(m.folder.StartIntervals(epoch.Wall, weirVersion()))
}

// event takes the engine's.
func (m *measurement) event(ev engine.Event) {
	if ev.Kind == "phase" {
		m.servers.Mark()
	}
	m.view.Event(ev.At, ev.Kind, ev.Text)
	m.keep(m.folder.AppendEvent(result.Event{TNS: ev.At, Kind: ev.Kind, Text: ev.Text}))
}

// interval takes the engine's, which may be a part of a second.
func (m *measurement) interval(iv *measure.Interval) {
	m.slices.Add(iv)
	if second := m.parts.Add(iv); second != nil {
		m.second(second)
	}
	if m.early != nil && m.early.Add(iv) {
		m.early = nil
		m.event(engine.Event{At: iv.To, Kind: "decided", Text: "every objective about a percentile is decided: the run ends"})
		close(m.enough)
	}
}

// second takes a second of the run: a line for each distribution, an entry for
// result.json, the view.
func (m *measurement) second(iv *measure.Interval) {
	phase := m.phase((iv.From + iv.To) / 2)
	m.mu.Lock()
	m.intervals = append(m.intervals, judge.Interval(iv, phase, m.scenario.Load.Closed))
	m.seconds = append(m.seconds, judge.SecondOf(iv))
	m.mu.Unlock()
	m.keep(m.folder.AppendInterval(iv))
	m.view.Interval(iv)
}

// phase names the part of the run that an instant lies in, as planned.
func (m *measurement) phase(at int64) string {
	end := int64(m.scenario.Length())
	switch {
	case at < int64(m.scenario.WarmUp):
		return "warmup"
	case end == 0 || at < end:
		return "measure"
	}
	return "drain"
}

// compose makes the result of what the engine gave, and the exit code that it
// deserves.
func (m *measurement) compose(raw *engine.Raw) (*result.Result, Code) {
	if rest := m.parts.Rest(); rest != nil {
		m.second(rest)
	}
	s := m.scenario
	seconds := float64(raw.To-raw.From) / 1e9
	facts := raw.Facts
	options := map[string]any{}
	for k, v := range s.System.Settings() {
		options[k] = v
	}
	r := &result.Result{
		Schema: result.Schema,
		Run: result.Run{
			ID: m.id, Name: s.Name, StartedAt: m.started.Format(time.RFC3339Nano),
			Epoch:    result.Epoch{Wall: raw.Epoch.Wall.UTC().Format(time.RFC3339Nano), MonotonicNS: raw.Epoch.MonotonicNS, BootID: raw.Epoch.BootID},
			MeasureS: seconds, HorizonS: judge.Horizon(seconds), Weir: weirVersion(), Interrupted: raw.Interrupted, Seed: s.Seed, Loop: result.LoopOpen, Mode: s.Mode.String(),
		},
		System: result.System{
			Driver: s.System.Definition.Name, Client: client(s.System.Definition), ClientPath: clientPath(s.System.Config),
			Server:    result.Server{Name: facts.Name, Version: facts.Version, Nodes: facts.Nodes},
			Guarantee: facts.Confirms.Guarantee.String(), Copies: facts.Confirms.Copies.String(), Stable: facts.Confirms.Stable.String(),
			Options: options,
		},
		Messages:    raw.Measured,
		MessagesAll: raw.All,
		Throughput:  throughput(raw, seconds),
		Latency:     latency(raw, m.scenario.Objectives),
		Intervals:   m.intervals,
		Host:        m.host(raw),
		Servers:     m.used(raw),
		Events:      m.folder.Events() + len(raw.Errors),

		Subscriptions: raw.Shares,
	}
	if raw.Closed {
		r.Run.Loop = result.LoopClosed
	}
	if raw.Gone != nil {
		r.Run.Gone = &result.Gone{FromNS: raw.GoneFrom, Why: raw.Gone.Error()}
	}
	m.correlate(raw, &r.Latency)
	m.fleetOf(raw, r)
	r.Verdict = judge.Verdict(m.evidence(raw, r))
	for _, o := range m.scenario.Objectives {
		r.Verdict.SLO = append(r.Verdict.SLO, o.Judge(r))
	}
	return r, worst(m.codes(raw, r)...)
}

// codes are the exit codes that apply to a run with figures.
func (m *measurement) codes(raw *engine.Raw, r *result.Result) []Code {
	var codes []Code
	if raw.Interrupted {
		codes = append(codes, Interrupted)
	}
	if err := m.books(raw); err != nil {
		m.complain(err)
		codes = append(codes, Failed)
	}
	if raw.Gone != nil {
		m.complain(raw.Gone)
		codes = append(codes, Unreachable)
	}
	if raw.Failed != "" {
		m.complain(fmt.Errorf("the run ended at once: %s", raw.Failed))
		codes = append(codes, Invalid)
	}
	if raw.Damaged > 0 || broken(raw.All, m.scenario.System.Definition.Capabilities) {
		codes = append(codes, Lost)
	}
	if slices.ContainsFunc(r.Verdict.Checks, func(c result.Check) bool { return c.Name == judge.CheckFailed && c.Status == result.Suspect }) {
		codes = append(codes, Refused)
	}
	if r.Verdict.Status == result.Invalid {
		codes = append(codes, Invalid)
	}
	if slices.ContainsFunc(r.Verdict.SLO, func(s result.SLO) bool {
		return s.Outcome() == result.Fail || m.strict && s.Outcome() == result.Undecided
	}) {
		codes = append(codes, Missed)
	}
	return codes
}

// throughput is the rates of the window; what is received has one of its own where
// a backlog is drained, where nothing is sent, and where a closed loop sends a
// count. Nothing is offered in a closed loop.
func throughput(raw *engine.Raw, seconds float64) result.Throughput {
	if seconds <= 0 {
		return result.Throughput{}
	}
	per := func(n uint64) float64 { return float64(n) / seconds }
	w := raw.Snapshot.Window
	t := result.Throughput{
		SentPerS: per(w.Sent), ConfirmedPerS: per(w.Confirmed), SentBytesPerS: per(w.SentBytes), ReceiveS: seconds,
	}
	received, bytes := per(w.Received), per(w.ReceivedBytes)
	t.ReceivedPerS, t.ReceivedBytesPerS = &received, &bytes
	if raw.All.Scheduled > 0 {
		t.SendS = seconds
	}
	if !raw.Closed {
		t.OfferedPerS = per(raw.Measured.Scheduled)
	}
	if d := cmp.Or(raw.Drained, raw.Receiving); d != nil {
		t.ReceivedPerS, t.ReceivedBytesPerS, t.ReceiveS = nil, nil, max(0, float64(d.To-d.From)/1e9)
		if messages, bytes, known := d.PerSecond(); known {
			t.ReceivedPerS, t.ReceivedBytesPerS = &messages, &bytes
		}
	}
	return t
}

// latency is the distributions of the measured phase, with the percentiles that
// the objectives ask for.
func latency(raw *engine.Raw, objectives []judge.Objective) result.Latency {
	also := map[string][]float64{}
	for _, o := range objectives {
		if p, ok := o.Percentile(); ok {
			name, _ := o.Latency()
			also[name] = append(also[name], p)
		}
	}
	d := func(k measure.Kind) *result.Dist {
		name, _, _ := strings.Cut(k.String(), ".")
		return judge.Distribution(&raw.Snapshot.Kinds[k][measure.Measure], &raw.Censored[k][measure.Measure], also[name]...)
	}
	return result.Latency{
		Send: result.Send{
			Response: d(measure.SendResponse), OnTime: d(measure.SendOnTime), Service: d(measure.SendService),
			Lateness: d(measure.SendLateness), HeldUp: d(measure.SendHeldUp), Blocked: d(measure.SendBlocked), Failed: d(measure.SendFailed),
		},
		E2E:    result.Pair{Response: d(measure.E2EResponse), OnTime: d(measure.E2EOnTime), Service: d(measure.E2EService)},
		RTT:    result.Pair{Response: d(measure.RTTResponse), OnTime: d(measure.RTTOnTime), Service: d(measure.RTTService)},
		Settle: d(measure.Settle),
	}
}

// host is what this process and its host did in the run; of a fleet only what is a
// sum over all of it, since its agents have the rest each for itself.
func (m *measurement) host(raw *engine.Raw) result.Host {
	h := result.Host{
		Lanes: raw.Lanes, LaneWaits: raw.LaneWaits,
		LedgerEvicted: raw.Evicted, SlotsAbandoned: raw.Abandoned, BacklogMax: raw.Backlog, DrainNeedsNS: max(raw.DrainNeeds, 0), ListenedNS: int64(raw.Listened),
	}
	if m.done == nil {
		h.Usage, h.Calibration, h.Hiccups = &raw.Host, &m.calibration, hiccups(&raw.Hiccups)
	}
	return h
}

// write fills the folder. Every error names its file; what could be written
// stays; the weightiest goes first, for a disk that is almost full.
func (m *measurement) write(ctx context.Context, raw *engine.Raw, r *result.Result) error {
	f := m.folder
	for k := range measure.NumKinds {
		for p := range measure.NumPhases {
			_ = f.AppendCensored(k, p, 0, raw.Ended, &raw.Censored[k][p]) // this and the following are kept by the folder
		}
	}
	for _, x := range raw.Errors {
		_ = f.AppendEvent(result.Event{TNS: raw.Ended, Kind: "error", Text: x.Class + ": " + x.Text, Count: x.Count})
	}
	r.Events = f.Events()
	_ = f.WriteResult(r)
	_ = f.WriteScenario(m.scenario.YAML())
	env := m.environment(ctx, raw)
	_ = f.WriteEnvironment(env)
	for k := range measure.NumKinds {
		if c := &raw.Snapshot.Kinds[k][measure.Measure]; c.Total() > 0 {
			_ = f.WriteHGRM(k, c, raw.Censored[k][measure.Measure].Total())
		}
	}
	m.page(r, env) // last: it is of what is written
	return f.Close()
}

// environment is what is known of where the run takes place; raw is nil before
// it did, when the system is not connected yet.
func (m *measurement) environment(ctx context.Context, raw *engine.Raw) *result.Environment {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	facts := host.Environment(ctx)
	facts.GOMAXPROCS = m.procs
	def := m.scenario.System.Definition
	env := &result.Environment{
		Schema: result.SchemaEnvironment,
		Weir:   result.Build{Version: weirVersion(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH},
		Hosts:  m.hosts(facts),
		Clock:  result.Clock{Calibration: m.calibration},
		System: result.EnvironmentSystem{Driver: def.Name, Client: client(def)},
	}
	switch {
	case m.running != nil:
		env.System.Started = startedBy(m.scenario, m.running, m.installed)
	case m.there != nil:
		env.System.Started = m.there.Started
	}
	if raw != nil {
		env.Clock.EpochErrorNS = &raw.Epoch.ErrorNS
		env.System.Server = result.Server{Name: raw.Facts.Name, Version: raw.Facts.Version, Nodes: raw.Facts.Nodes}
		env.System.Settings = raw.Facts.Settings
	}
	return env
}

// startedSystem is what is known of the system that weir started.
func startedBy(s *scenario.Scenario, running *broker.Running, installed *broker.Installation) *result.Started {
	x := &result.Started{By: s.System.Start.String()}
	if installed != nil {
		x.Recipe, x.Source, x.Version = installed.Name, installed.Source, installed.Version
	}
	x.Processes = processesOf(s, running)
	return x
}

// processesOf are those of a system that weir started, as they were then.
func processesOf(s *scenario.Scenario, running *broker.Running) []result.Process {
	if len(running.Processes) == 0 {
		return []result.Process{{Name: s.System.Definition.Name, Node: 1, Pids: running.Pids}}
	}
	var all []result.Process
	for _, p := range running.Processes {
		all = append(all, result.Process{Name: p.Name, Node: p.Node, Pids: p.Pids})
	}
	return all
}
