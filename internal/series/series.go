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
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/suite"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Options say where and how runs are done. The zero value has this process do them below
// the working folder, and has no observer.
type Options struct {
	Dir   string // the folder from which relative paths go; "": the process's working folder
	Out   string // the result's folder, which must not exist; "": results/<time>-<name>
	Host  Host   // on which systems are started, and processes of a run
	FIFO  bool   // lanes of this host take precedence, where they may; see engine.Config.FIFO
	Fleet *Fleet // that does the runs; nil: this process, or the two of placement split

	Files map[string][]byte // that the scenarios read, by absolute path; for a fleet only
	// Percentiles are stored besides the usual ones, in percent, and are those that
	// report.html shows; nil: those with samples enough.
	Percentiles []float64
	Pages       Pages // draws report.html; nil: it is not written

	// Exit is called with a run that has figures, before they are written, and returns
	// what is kept of the exit code that it deserves. nil: nothing is.
	Exit func(*Outcome) *result.Exit

	// Observe is called when a run begins, and returns its observer; nil: none.
	Observe func(Run) Observer
	// Note tells of what concerns more than one run: agents that are waited for, memory
	// that may not do. nil: not wanted.
	Note func(format string, args ...any)
}

// Pages draws the pages of results for browsers.
type Pages interface {
	// Run draws a run in the folder dir, of which all files but the page are written. The
	// Result of e has all its intervals.
	Run(e result.Entry, dir string, percentiles []float64) ([]byte, error)
	// Runs draws several runs with figures; rest of those that were planned were not done to
	// their end.
	Runs(entries []result.Entry, rest int) ([]byte, error)
	// Suite draws the table of a suite.
	Suite(r *suite.Report) ([]byte, error)
}

// A Host is what starting processes on this one takes.
type Host struct {
	Self string                           // path of weir's own binary, which child processes are
	Env  func(name string) (string, bool) // of this process
	Log  *slog.Logger                     // nil: nothing is logged

	// AgentArgs returns the arguments of Self in a process that joins at a URL as the agent
	// of that name, for a split run. Where fifo, its lanes take precedence. nil: no run is
	// split.
	AgentArgs func(url, name string, fifo bool) []string
}

// A Plan says which runs a series has, and keeps what they come to: Repeats, a Search or a
// Suite. A series uses a plan once.
type Plan interface {
	// Scenarios returns those of the runs, each once.
	Scenarios() []*scenario.Scenario
	// begin makes the folder of a series, or opens the one that it goes on in.
	begin(*Series) error
	// next returns the run that follows; nil: none does.
	next() (*task, error)
	// add takes what a run came to, and stores it. counts is false where the series ends with it.
	add(*Series, *Outcome) (counts bool, err error)
}

// A task is one run of a series.
type task struct {
	scenario    *scenario.Scenario
	folder      string    // its name in the common folder; "" for the only one
	series      string    // name of the scenario that it is a repeat of; "" where it is done once
	repeat      int       // from 1
	place       int       // of the scenario among those of Repeats, from 1; 0 of a single run
	number, of  int       // of the run, from 1, and how many there are; of is 0 where that is not known
	percentiles []float64 // nil: those of Options
}

// A Series is runs that are done one after another: one, or several in a folder each
// below a common one. One goroutine uses it.
type Series struct {
	o       Options
	plan    Plan
	started time.Time
	parent  string // the common folder, as it is shown; "": there is a single run
	folder  *result.Folder
	fresh   bool     // this series made the common folder
	made    bool     // this series made the folder results
	lock    *os.File // on the list of runs; nil: there is none
	err     error

	fleet    *fleet.Fleet     // that does the runs; nil: this process
	pairOf   []*guard.Process // its agents, where they are of this host and of this series
	leftover string           // a folder that goes with them
}

// New makes the folder that several runs have in common, or opens the one that a plan goes on
// in. Its error is a FolderError, or wraps ErrWriting. Close must be called.
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

// silent is the observer where none is given: it ignores everything.
type silent struct{}

func (silent) Doing(string)                {}
func (silent) Note(string, ...any)         {}
func (silent) Event(int64, string, string) {}
func (silent) Interval(*measure.Interval)  {}
func (silent) Complain(error)              {}
func (silent) Done()                       {}

// Dir returns the folder that several runs have in common, as it is to be shown; "" of
// a single run, which has its own.
func (s *Series) Dir() string { return s.parent }

// Err says why All ended before its end, where it was not stopped: a file of the series could
// not be written, which wraps ErrWriting, or a run could not be laid out.
func (s *Series) Err() error { return s.err }

// All does the runs in their order, and yields what each came to. When stop, which may
// be nil, is closed, the run that goes on is offered no further message and drains;
// when ctx ends, it ends at once; in both cases what was measured is written, and no
// further run begins.
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
				o.Result.Intervals = nil // the most of it, and an overview does not need it
			}
			if !more || !counts || s.err != nil || latch.Closed(stop) || ctx.Err() != nil {
				return
			}
		}
	}
}

// WritePage writes the page of several runs with figures into the folder that they
// have in common.
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

// Close ends the fleet, where there is one, and leaves no folder behind in which
// nothing is. Its error is of processes of the series that did not end.
func (s *Series) Close() error {
	if s.lock != nil {
		_ = s.lock.Close() // nothing was written to it
	}
	s.tidy()
	return s.disband()
}

// do does a run.
func (s *Series) do(ctx context.Context, stop <-chan struct{}, t *task) *Outcome {
	o := &Outcome{Run: Run{Scenario: t.scenario, Number: t.number, Of: t.of, Several: t.place > 0, Series: t.series, Repeat: t.repeat}}
	m := newMeasurement(&measurement{
		host: &s.o.Host, note: s.o.Note, scenario: t.scenario, started: time.Now().UTC(), fifo: s.o.FIFO, pages: s.o.Pages,
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
		return o
	}
	m.dir = s.o.Path(o.Dir)
	m.observer = s.o.Observe(o.Run)
	raw, err := m.measure(ctx, stop)
	m.observer.Done()
	o.Err = err
	if raw == nil {
		m.abandon()
		return o
	}
	o.Result = m.compose(raw)
	o.Result.Run.Series, o.Result.Run.Repeat, o.Result.Run.Place = t.series, t.repeat, t.place
	o.Undone = errors.Join(undone(o.Result), m.team.untold(), m.link.broke)
	o.Books, o.Gone, o.Failed = judge.Books(o.Result), raw.Gone, raw.Failed
	all := raw.All
	if len(o.Result.Lost().Receivers) > 0 { // what a consumer that died had not settled comes again, and late
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
	return o
}

// totals are the samples of the measured window by the tags of intervals.hlog.
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
