package series

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Options say where and how runs are done. The zero value has this process do them below
// the working folder, and has no observer.
type Options struct {
	Dir   string // the folder from which relative paths go; "": the process's working folder
	Out   string // the result's folder, which must not exist; "": results/<time>-<name>
	File  string // that the scenarios are from, by which the folder of several is named; "": none
	Host  Host   // on which systems are started, and processes of a run
	FIFO  bool   // lanes of this host take precedence, where they may; see engine.Config.FIFO
	Fleet *Fleet // that does the runs; nil: this process, or the two of placement split
	// Earlier is the folder that gets the runs, beside those that it has; nil: a new one.
	// The scenarios are its own.
	Earlier *Earlier
	// Remaining is what a series that did not do all its runs is to do now, in its folder; nil: a
	// new one. Its Resolve was called, and gave the scenarios.
	Rest  *Remaining
	Words Words // for what is told of a run

	// More is called when all runs are done, with those that have figures, and before the
	// first run where Earlier has some. If it returns true, each scenario is done again,
	// in an order of its own. nil: none is. Not for a single run.
	More func([]result.Entry) bool

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

// Words say, in the words of the program that has runs done, what its user can do about
// what a run tells. A word that is "" is left out.
type Words struct {
	Precedence   string // what asks that lanes take precedence: "--fifo"
	LessInFlight string // has fewer messages in flight: "set --in-flight lower"
	Resume       string // resumes a run, before its id: "weir run --resume"
	Bind         string // has an agent's servers listen to other hosts
	// Key is how the user sets a key of a scenario: "--rate" for load.rate. nil: by its path.
	Key func(path string) string
}

// A Series is runs that are done one after another: one, or several in a folder each
// below a common one. One goroutine uses it.
type Series struct {
	o       Options
	started time.Time
	parent  string // the common folder, as it is shown; "": there is a single run
	folder  *result.Folder
	made    bool           // this series made the folder results
	planned *Plan          // that is stored in the folder; nil: none is
	lock    *os.File       // on the plan; nil: there is none
	written []result.Entry // those of entries that are whole in their folders
	tasks   []task
	next    int // of the tasks
	entries []result.Entry

	scenarios []*scenario.Scenario // that the tasks are of

	fleet    *fleet.Fleet     // that does the runs; nil: this process
	pairOf   []*guard.Process // its agents, where they are of this host and of this series
	leftover string           // a folder that goes with them
}

// New lays out the runs of scenarios, at least one, each as often as it is to be
// repeated, and makes the folder that several have in common: a FolderError where it
// cannot. Close must be called.
func New(o Options, scenarios ...*scenario.Scenario) (*Series, error) {
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
	if err := enough(o.Fleet, scenarios); err != nil {
		return nil, err
	}
	s := &Series{o: o, started: time.Now().UTC(), scenarios: scenarios}
	if x := o.Rest; x != nil {
		s.parent, s.tasks, s.planned = x.dir, x.tasks, x.plan
		s.entries, s.written, s.folder = slices.Clone(x.entries), slices.Clone(x.entries), result.Reopen(o.Path(x.dir))
		return s.claim()
	}
	if s.o.More == nil || o.Earlier == nil {
		s.tasks = tasks(scenarios, o.Earlier)
	}
	if x := o.Earlier; x != nil {
		s.parent, s.folder = x.dir, result.Reopen(s.o.Path(x.dir))
		s.entries, s.written = slices.Clone(x.entries), slices.Clone(x.entries)
		s.planned, _ = ReadPlan(s.o.Path(x.dir), x.dir) // of an older version there is none
		return s.claim()
	}
	if s.tasks[0].folder == "" {
		return s, nil
	}
	name := scenarios[0].Name
	if len(scenarios) > 1 {
		name = suiteName(o.File)
	}
	var err error
	if s.parent, s.folder, err = s.create(name); err != nil {
		return nil, err
	}
	s.planned = s.plan(scenarios)
	if err := s.folder.WriteSeries(s.planned); err != nil {
		s.tidy()
		return nil, &FolderError{err}
	}
	return s.claim()
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

// Entries returns the runs with figures so far, in their order, for an overview.
func (s *Series) Entries() []result.Entry { return s.entries }

// Left returns the names of the folders of the runs that are not begun, of several.
func (s *Series) Left() []string {
	var names []string
	for _, t := range s.tasks[s.next:] {
		names = append(names, t.folder)
	}
	return names
}

// Remaining counts the runs of the plan that were not done to their end, or could not be written. It
// is 0 where there is no plan: of a single run, and in folders of older versions.
func (s *Series) Rest() int {
	if s.planned == nil {
		return 0
	}
	return len(s.planned.Left(s.written))
}

// All does the runs in their order, and yields what each came to. When stop, which may
// be nil, is closed, the run that goes on is offered no further message and drains;
// when ctx ends, it ends at once; in both cases what was measured is written, and no
// further run begins. A run that fails does not keep the others from being done.
func (s *Series) All(ctx context.Context, stop <-chan struct{}) iter.Seq[*Outcome] {
	return func(yield func(*Outcome) bool) {
		for s.next < len(s.tasks) || s.goesOn() {
			o := s.do(ctx, stop, s.next)
			s.next++
			if o.Result != nil {
				s.entries = append(s.entries, o.Entry)
				if o.Written == nil {
					s.written = append(s.written, o.Entry)
				}
			}
			more := yield(o)
			if o.Result != nil {
				o.Result.Intervals = nil // the most of it, and an overview does not need it
			}
			if !more || latch.Closed(stop) || ctx.Err() != nil {
				return
			}
		}
	}
}

// goesOn lays out another round where it is asked for, and reports whether there is one.
func (s *Series) goesOn() bool {
	if s.parent == "" || s.o.More == nil || !s.o.More(s.entries) {
		return false
	}
	s.tasks = append(s.tasks, round(s.scenarios, s.o.Earlier, s.tasks)...)
	return true
}

// WritePage writes the page of several runs with figures into the folder that they
// have in common.
func (s *Series) WritePage() error {
	if s.o.Pages == nil {
		return nil
	}
	page, err := s.o.Pages.Runs(s.entries, s.Rest())
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

// tidy removes folders in which no run left anything.
func (s *Series) tidy() {
	if s.parent != "" {
		dir := s.o.Path(s.parent)
		if files, err := os.ReadDir(dir); err == nil && len(files) == 1 && s.o.Rest == nil {
			_ = os.Remove(filepath.Join(dir, result.FileSeries))
		}
		_ = os.Remove(dir)
	}
	if s.made {
		_ = os.Remove(s.o.Path(results))
	}
}

// Path makes a path of the caller's absolute.
func (o Options) Path(p string) string {
	if filepath.IsAbs(p) || o.Dir == "" {
		return p
	}
	return filepath.Join(o.Dir, p)
}

// Create makes the folder that runs have in common where no series does: Out, or
// results/<time>-name. It returns the folder as it is to be shown, or a FolderError.
func (o Options) Create(name string) (dir string, err error) {
	dir, _, err = (&Series{o: o, started: time.Now().UTC()}).create(name)
	return dir, err
}

// One does a single run in the folder Out, as New, Gather, All and Close do.
func (o Options) One(ctx context.Context, stop <-chan struct{}, what *scenario.Scenario) *Outcome {
	out := &Outcome{Run: Run{Scenario: what, Number: 1, Of: 1, Dir: o.Out}}
	s, err := New(o, what)
	if err != nil {
		out.Err = err
		return out
	}
	defer func() {
		if err := s.Close(); err != nil {
			s.o.Note("%v", err)
		}
	}()
	if err := s.Gather(ctx); err != nil {
		out.Err = fmt.Errorf("gathering the fleet: %w", err)
		return out
	}
	for out = range s.All(ctx, stop) { // of a scenario that is repeated, the last counts
	}
	return out
}

// results is the folder below which folders without a name of their own are.
const results = "results"

// mostSuffix is how many runs of one name within one second get a folder each.
const mostSuffix = 99

// create makes a folder: the one asked for, which must not exist, or
// results/<time>-name, or results/<time>-name-2, -3 and so on where that exists.
func (s *Series) create(name string) (dir string, folder *result.Folder, err error) {
	if dir = s.o.Out; dir != "" {
		if folder, err = result.Create(s.o.Path(dir)); err != nil {
			err = &FolderError{err}
		}
		return dir, folder, err
	}
	if _, err := os.Stat(s.o.Path(results)); errors.Is(err, fs.ErrNotExist) {
		s.made = true
	}
	name = s.started.Format("20060102T150405Z") + "-" + name
	for n := 1; n <= mostSuffix; n++ {
		dir = filepath.Join(results, name)
		if n > 1 {
			dir += fmt.Sprintf("-%d", n)
		}
		if folder, err = result.Create(s.o.Path(dir)); !errors.Is(err, result.ErrExists) {
			break
		}
	}
	if err != nil {
		err = &FolderError{err}
	}
	return dir, folder, err
}

// do does the i-th run.
func (s *Series) do(ctx context.Context, stop <-chan struct{}, i int) *Outcome {
	t := s.tasks[i]
	o := &Outcome{Run: Run{Scenario: t.scenario, Number: i + 1, Of: len(s.tasks), Several: s.parent != "", Series: t.series, Repeat: t.repeat}}
	m := &measurement{host: &s.o.Host, words: &s.o.Words, note: s.o.Note, scenario: t.scenario, started: time.Now().UTC(), pages: s.o.Pages, percentiles: s.o.Percentiles, fleet: s.fleet, agents: s.agents(), files: s.o.Files, fifo: s.o.FIFO}
	if f := s.o.Fleet; f != nil {
		m.startOn, m.paused = f.StartOn, f.Paused
		if f.Paused != nil {
			m.startOn = f.Paused.StartOn
		}
	}
	if s.parent == "" {
		o.Dir, m.folder, o.Err = s.create(t.scenario.Name)
	} else {
		o.Dir = filepath.Join(s.parent, s.o.Free(s.parent, t.folder))
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
	o.Undone = errors.Join(undone(o.Result), m.untold(), m.broke)
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
