package series

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Options control where and how runs are executed. With the zero value this process executes them in the
// working directory, without an observer.
type Options struct {
	Dir   string // base of relative paths; "": the working directory
	Out   string // result folder, which must not exist; "": results/<time>-<name>
	Host  Host   // starts systems and child processes
	FIFO  bool   // real-time priority for pacers of this host, if allowed; see engine.Config.FIFO
	Wire  Wire   // whether kernel instants are recorded on this host
	Fleet *Fleet // executes the runs; nil: this process, or two with placement split

	Files map[string][]byte // read by the scenarios, by absolute path; for a fleet only
	// Percentiles are stored besides the usual ones, in percent, and shown in report.html; nil: those with
	// enough samples.
	Percentiles []float64
	Pages       Pages // draws report.html; nil: not written

	// Exit is called with a run's figures before they are written, and returns the exit code to store; nil:
	// none.
	Exit func(*Outcome) *result.Exit

	// Observe is called when a run begins, and returns its observer; nil: none.
	Observe func(Run) Observer
	// Note reports what concerns more than one run: waiting for agents, possible lack of memory. nil: not
	// reported.
	Note func(format string, args ...any)
}

// Pages renders the HTML pages of results.
type Pages interface {
	// Run draws a run in the folder dir, whose files but the page have been written. The Result of e has
	// all its intervals.
	Run(e result.Entry, dir string, percentiles []float64) ([]byte, error)
	// Runs draws several runs with figures; rest of the planned ones did not complete.
	Runs(entries []result.Entry, rest int) ([]byte, error)
	// Suite draws the table of a suite.
	Suite(r *suite.Report) ([]byte, error)
}

// A Host has what is needed to start processes on this host.
type Host struct {
	Self string                           // path of weir's own binary, for child processes
	Env  func(name string) (string, bool) // environment of this process
	Log  *slog.Logger                     // nil: no logging

	// AgentArgs returns the arguments with which Self joins a split run at a URL as the named agent. fifo
	// asks for real-time priority of its pacers. nil: no split runs.
	AgentArgs func(url, name string, fifo bool) []string
}

// A Plan lists a series' runs and stores their results: Repeats, a Search or a Suite. A series uses a plan
// once.
type Plan interface {
	// Scenarios returns the scenarios of the runs, each once.
	Scenarios() []*scenario.Scenario
	// begin makes the folder of a series, or opens that of a resumed one.
	begin(*Series) error
	// next returns the next run; nil: there is none.
	next() (*task, error)
	// add stores the outcome of a run. counts is false if the series ends with it.
	add(*Series, *Outcome) (counts bool, err error)
}

// A task is one run of a series.
type task struct {
	scenario    *scenario.Scenario
	folder      string    // in the common folder; "" for a single run
	series      string    // name of the repeated scenario; "" if not repeated
	repeat      int       // from 1
	place       int       // index of its scenario in Repeats, from 1; 0 for a single run
	number, of  int       // number of the run, from 1, and the total; of is 0 if unknown
	percentiles []float64 // nil: those of Options
}

// A Series executes runs one after another: one, or several with a folder each in a common folder. It is
// not safe for concurrent use.
type Series struct {
	o       Options
	plan    Plan
	started time.Time
	parent  string // common folder as shown; "": a single run
	folder  *result.Folder
	fresh   bool     // this series created the common folder
	made    bool     // this series created the folder results
	lock    *os.File // on the list of runs; nil: none
	err     error

	fleet    *fleet.Fleet     // executes the runs; nil: this process
	pairOf   []*guard.Process // its agents, if this series started them on this host
	leftover string           // a folder to remove with them
}

// New makes the common folder of several runs, or opens that of a resumed plan. Its error is a FolderError,
// or wraps ErrWriting. The caller must call Close.
func New(o Options, p Plan) (*Series, error) {
	if o.Host.Log == nil {
		o.Host.Log = slog.New(slog.DiscardHandler)
	}
	if o.Host.Env == nil {
		o.Host.Env = os.LookupEnv
	}
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	if o.Observe == nil {
		o.Observe = func(Run) Observer { return silent{} }
	}
	if err := enough(o.Fleet, p.Scenarios()); err != nil {
		return nil, err
	}
	s := &Series{o: o, plan: p, started: time.Now().UTC()}
	if err := p.begin(s); err != nil {
		s.tidy()
		return nil, err
	}
	return s, nil
}

// silent is the default observer, which ignores everything.
type silent struct{}

func (silent) Doing(string)                {}
func (silent) Note(string, ...any)         {}
func (silent) Event(int64, string, string) {}
func (silent) Interval(*measure.Interval)  {}
func (silent) Complain(error)              {}
func (silent) Done()                       {}

// Dir returns the common folder of several runs, as shown; "" for a single run, which has its own.
func (s *Series) Dir() string { return s.parent }

// Err says why All ended early if it was not stopped: a file of the series could not be written, which
// wraps ErrWriting, or a run could not be prepared.
func (s *Series) Err() error { return s.err }

// All executes the runs in order, and yields their outcomes. When stop, which may be nil, is closed, the
// current run sends no further message and drains; when ctx ends, it ends at once. In both cases what was
// measured is written, and no further run begins.
func (s *Series) All(ctx context.Context, stop <-chan struct{}) iter.Seq[*Outcome] {
	return func(yield func(*Outcome) bool) {
		for {
			var t *task
			if t, s.err = s.plan.next(); t == nil {
				return
			}
			o := s.do(ctx, stop, t)
			var counts bool
			counts, s.err = s.plan.add(s, o)
			more := yield(o)
			if o.Result != nil {
				o.Result.Intervals = nil // they are most of it, and overviews do not need them
			}
			if !more || !counts || s.err != nil || latch.Closed(stop) || ctx.Err() != nil {
				return
			}
		}
	}
}

// WritePage writes the page of several runs with figures into their common folder.
func (s *Series) WritePage(p *Repeats) error {
	if s.o.Pages == nil {
		return nil
	}
	page, err := s.o.Pages.Runs(p.Entries(), p.Rest())
	if err != nil {
		return err
	}
	return s.folder.WriteReport(page)
}

// Close ends the fleet, if any, and removes empty folders. Its error reports processes of the series that
// did not end.
func (s *Series) Close() error {
	if s.lock != nil {
		_ = s.lock.Close() // nothing was written to it
	}
	s.tidy()
	return s.disband()
}

// mostLost is how often a run is started again because an agent was lost before its measured window.
const mostLost = 5

// do executes a run, from its beginning again if an agent is lost before the measured window.
func (s *Series) do(ctx context.Context, stop <-chan struct{}, t *task) (o *Outcome) {
	var lost []string
	for {
		o = &Outcome{Run: Run{Scenario: t.scenario, Number: t.number, Of: t.of, Several: t.place > 0, Series: t.series, Repeat: t.repeat}}
		if o.Err = s.ensureAgents(ctx, stop); o.Err != nil {
			return o
		}
		s.attempt(ctx, stop, t, o, lost)
		if !errors.Is(o.Err, coordinator.ErrLost) || len(lost) == mostLost || latch.Closed(stop) || ctx.Err() != nil {
			return o
		}
		lost = append(lost, o.Err.Error())
		s.o.Note("%v; the run begins again", o.Err)
		if o.Err = os.RemoveAll(s.o.Path(o.Dir)); o.Err != nil { // nothing was measured
			return o
		}
	}
}

// attempt executes a run. lost says why earlier attempts were called off.
func (s *Series) attempt(ctx context.Context, stop <-chan struct{}, t *task, o *Outcome, lost []string) {
	m := newMeasurement(&measurement{
		host: &s.o.Host, note: s.o.Note, scenario: t.scenario, started: time.Now().UTC(), fifo: s.o.FIFO, wire: s.o.Wire, pages: s.o.Pages,
		percentiles: s.o.Percentiles, team: team{agents: s.agents(), files: s.o.Files},
	})
	if t.percentiles != nil {
		m.percentiles = t.percentiles
	}
	if s.o.Fleet != nil || split(t.scenario) {
		m.team.fleet = s.fleet
	}
	if f := s.o.Fleet; f != nil {
		m.team.startOn, m.team.paused = f.StartOn, f.Paused
		if f.Paused != nil {
			m.team.startOn = f.Paused.StartOn
		}
	}
	if s.parent == "" {
		o.Dir, m.folder, o.Err = s.create(t.scenario.Name)
	} else {
		o.Dir = filepath.Join(s.parent, s.free(t.folder))
		if m.folder, o.Err = result.Create(s.o.Path(o.Dir)); o.Err != nil {
			o.Err = &FolderError{o.Err}
		}
	}
	if o.Err != nil {
		return
	}
	m.dir = s.o.Path(o.Dir)
	m.observer = s.o.Observe(o.Run)
	for _, why := range lost {
		m.event(engine.Event{Kind: "agent-lost", Text: why + "; the run began again"})
	}
	raw, err := m.measure(ctx, stop)
	m.observer.Done()
	o.Err = err
	if raw == nil {
		m.abandon()
		return
	}
	o.Result = m.compose(raw)
	o.Result.Run.Series, o.Result.Run.Repeat, o.Result.Run.Place = t.series, t.repeat, t.place
	o.Undone = errors.Join(undone(o.Result), m.team.unreported(), m.link.broke)
	o.Accounting, o.Gone, o.Failed = judge.Accounting(o.Result), raw.Gone, raw.Failed
	all := raw.All
	if len(o.Result.Lost().Receivers) > 0 { // messages a dead consumer had not acked are redelivered, late
		all.Duplicated, all.Reordered = 0, 0
	}
	o.Broken = raw.Damaged > 0 || broken(all, t.scenario.System.Definition.Capabilities)
	if s.o.Exit != nil {
		o.Result.Exit = s.o.Exit(o)
	}
	m.entry = result.Entry{Dir: o.Dir, Result: o.Result, Scenario: t.scenario.YAML()}
	o.Written = m.write(ctx, raw, o.Result)
	o.Entry = m.entry
	if t.series != "" {
		o.Entry.Totals = totals(raw)
	}
}

// totals returns the samples of the measured window by their tags in intervals.hlog.
func totals(raw *engine.Raw) map[string]*measure.Counts {
	out := map[string]*measure.Counts{}
	for k := range measure.NumKinds {
		if c := &raw.Snapshot.Kinds[k][measure.Measure]; c.Total() > 0 {
			out[result.Tag(k, measure.Measure)] = c
		}
		if c := &raw.Censored[k][measure.Measure].Ages; c.Total() > 0 {
			out[result.CensoredTag(k, measure.Measure)] = c
		}
	}
	return out
}
