package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A series is the runs that one command does, one after another: one, or
// several in a folder each below a common one.
type series struct {
	command *runCommand
	env     *env
	started time.Time
	parent  string // of several; as the user is shown it
	folder  *result.Folder
	made    bool // weir made the folder results
	tasks   []task

	codes   []Code
	entries []report.Entry

	fleet    *fleet.Fleet     // that does the runs; nil: this process
	pairOf   []*guard.Process // its agents, where they are of this host and of this series
	leftover string           // a folder that goes with them
	paused   *fleet.Paused    // the run, where it was begun by another coordinator
}

// A task is one run of a series.
type task struct {
	scenario *scenario.Scenario
	folder   string // its name in the parent folder; "" for the only one
	series   string // name of the scenario that it is a repeat of; "" where it is done once
	repeat   int    // from 1
}

// plan lays out the runs, each as often as it shall be repeated, and makes the
// folder that several have in common.
func (c *runCommand) plan(e *env, runs []*scenario.Scenario) (*series, error) {
	s := &series{command: c, env: e, started: time.Now().UTC()}
	if len(runs) == 1 && runs[0].Repeat <= 1 {
		s.tasks = []task{{scenario: runs[0]}}
		return s, nil
	}
	for _, x := range order(runs) {
		r := runs[x.run]
		one := *r
		one.Repeat = 1
		t := task{scenario: &one}
		if r.Repeat > 1 {
			one.Name = numbered(r.Name, x.repeat)
			t.series, t.repeat = r.Name, x.repeat
		}
		s.tasks = append(s.tasks, t)
	}
	digits := max(2, len(fmt.Sprint(len(s.tasks))))
	for i := range s.tasks {
		s.tasks[i].folder = fmt.Sprintf("%0*d-%s", digits, i+1, s.tasks[i].scenario.Name)
	}
	name := runs[0].Name
	if len(runs) > 1 {
		name = suiteName(c.File)
	}
	var err error
	s.parent, s.folder, err = s.create(name)
	return s, err
}

// A turn is one run of a series: the how-many-th of which scenario.
type turn struct{ run, repeat int }

// order is that in which scenarios are run. Without repeats it is the file's.
// With them each round has every scenario that is still to be done once, in an
// order of its own: what changes on the host while a series runs, its heat, its
// disk, its neighbours, then meets all scenarios alike, and none always follows
// the same other. The order follows from the first scenario's seed.
func order(runs []*scenario.Scenario) []turn {
	rounds := 0
	for _, r := range runs {
		rounds = max(rounds, r.Repeat, 1)
	}
	dice := mathrand.New(mathrand.NewPCG(runs[0].Seed, uint64(len(runs))))
	var out []turn
	for n := range rounds {
		var round []turn
		for i, r := range runs {
			if n < max(1, r.Repeat) {
				round = append(round, turn{i, n + 1})
			}
		}
		if rounds > 1 {
			dice.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		}
		out = append(out, round...)
	}
	return out
}

// longestName is that of a scenario's name.
const longestName = 100

// numbered is the name of the n-th repeat.
func numbered(name string, n int) string {
	suffix := fmt.Sprintf("-r%d", n)
	return name[:min(len(name), longestName-len(suffix))] + suffix
}

// suiteName is the name of several runs: that of their file.
func suiteName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name, "-."); name == "" || file == "" {
		return "runs"
	}
	return name[:min(len(name), longestName)]
}

// results is the folder below which folders without a name of their own are.
const results = "results"

// mostSuffix is how many runs of one name within one second get a folder each.
const mostSuffix = 99

// create makes a folder: the one asked for, which must not exist, or
// results/<time>-name, or results/<time>-name-2, -3 and so on where that exists.
func (s *series) create(name string) (dir string, folder *result.Folder, err error) {
	e := s.env
	if out := s.command.Out; out != nil {
		if folder, err = result.Create(e.path(*out)); errors.Is(err, result.ErrExists) {
			err = fmt.Errorf("--out: %s %w (a folder that does not exist yet)", *out, result.ErrExists)
		}
		return *out, folder, err
	}
	if _, err := os.Stat(e.path(results)); errors.Is(err, os.ErrNotExist) {
		s.made = true
	}
	name = s.started.Format("20060102T150405Z") + "-" + name
	for n := 1; n <= mostSuffix; n++ {
		dir = filepath.Join(results, name)
		if n > 1 {
			dir += fmt.Sprintf("-%d", n)
		}
		if folder, err = result.Create(e.path(dir)); !errors.Is(err, result.ErrExists) {
			break
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (--out DIR names another folder)", err)
	}
	return dir, folder, err
}

// run does the runs in their order. One that fails does not keep the others from
// being done; what is wrong with the scenario, and a signal, do.
func (s *series) run(ctx context.Context) Code {
	defer s.disband()
	if err := s.muster(ctx); err != nil {
		s.leave()
		s.env.complain(fmt.Errorf("gathering the fleet: %w", err))
		return codeOfFleet(err)
	}
	for i := range s.tasks {
		code := s.do(ctx, i)
		s.codes = append(s.codes, code)
		if s.stopped(ctx) {
			code = Interrupted
			s.codes = append(s.codes, code)
		}
		if code == Usage || code == Interrupted {
			s.undone(i + 1)
			break
		}
	}
	s.leave()
	if s.parent != "" && len(s.entries) > 0 {
		if err := s.page(); err != nil {
			s.env.complain(fmt.Errorf("writing the results: %w", err))
			s.codes = append(s.codes, Failed)
		}
		if err := s.overview(); err != nil {
			s.env.complain(fmt.Errorf("showing the results: %w", err))
			s.codes = append(s.codes, Failed)
		}
	}
	return worst(s.codes...)
}

// stopped reports whether several runs are to end between two of them.
func (s *series) stopped(ctx context.Context) bool {
	if s.parent == "" {
		return false
	}
	select {
	case _, ok := <-s.env.Signals: // nil: never
		return ok
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// undone names the runs from the i-th on.
func (s *series) undone(i int) {
	if i >= len(s.tasks) {
		return
	}
	var names []string
	for _, t := range s.tasks[i:] {
		names = append(names, t.folder)
	}
	s.env.say("weir: not done: %s", strings.Join(names, ", "))
}

// leave leaves no folder behind in which nothing is. The parent's are empty, or
// they stay.
func (s *series) leave() {
	if s.parent != "" {
		_ = os.Remove(s.env.path(s.parent))
	}
	if s.made {
		_ = os.Remove(s.env.path(results))
	}
}

// which names the i-th run among several.
func (s *series) which(i int) string {
	if s.parent == "" {
		return ""
	}
	return fmt.Sprintf("run %d of %d, %s", i+1, len(s.tasks), s.tasks[i].scenario.Name)
}

// do does the i-th run.
func (s *series) do(ctx context.Context, i int) Code {
	c, e, t := s.command, s.env, s.tasks[i]
	m := &measurement{env: e, scenario: t.scenario, which: s.which(i), started: time.Now().UTC(), strict: c.strict, session: session(c.Session), fleet: s.fleet, agents: s.agents(), files: c.read, paused: s.paused, fifo: c.FIFO}
	if c.On != nil {
		m.startOn = *c.On
	} else if s.paused != nil {
		m.startOn = s.paused.StartOn
	}
	var err error
	if s.parent == "" {
		m.dir, m.folder, err = s.create(t.scenario.Name)
	} else {
		m.dir = filepath.Join(s.parent, t.folder)
		m.folder, err = result.Create(e.path(m.dir))
	}
	if err != nil {
		m.complain(err)
		if s.parent != "" { // it could be made a moment ago
			return Failed
		}
		return Usage
	}
	var hide func()
	m.view, hide = c.view(e, t.scenario, m.which)
	defer hide()
	raw, err := m.measure(ctx)
	hide()
	if raw == nil {
		m.abandon()
		m.refuse(err)
		return codeOf(err)
	}
	var codes []Code
	if err != nil {
		m.complain(err)
		codes = append(codes, Failed)
	}
	r, code := m.compose(raw)
	r.Run.Series, r.Run.Repeat = t.series, t.repeat
	codes = append(codes, code)
	whole := true
	if err := m.write(ctx, raw, r); err != nil {
		whole = false
		for line := range strings.SplitSeq(err.Error(), "\n") {
			m.complain(fmt.Errorf("writing the result: %s", line))
		}
		codes = append(codes, Failed)
	}
	if err := s.show(m, r, whole); err != nil {
		m.complain(fmt.Errorf("showing the result: %w", err))
		codes = append(codes, Failed)
	}
	r.Intervals = nil // the most of it, and the overview does not need it
	entry := m.entry
	entry.Dir = m.dir
	if t.series != "" {
		entry.Totals = totals(raw)
	}
	s.entries = append(s.entries, entry)
	return worst(codes...)
}

// totals are the samples of the measured window by the tags of intervals.hlog.
func totals(raw *engine.Raw) map[string]*measure.Counts {
	out := map[string]*measure.Counts{}
	for k := range measure.NumKinds {
		if c := &raw.Snapshot.Kinds[k][measure.Measure]; c.Total() > 0 {
			out[result.Tag(k, measure.Measure)] = c
		}
		if c := &raw.Censored[k][measure.Measure]; c.Total() > 0 {
			out[result.CensoredTag(k, measure.Measure)] = c
		}
	}
	return out
}

// show prints what a run gave: the table of a single one, a line for one of
// several, result.json where it is asked for.
func (s *series) show(m *measurement, r *result.Result, whole bool) error {
	c, e := s.command, s.env
	table := e.Stdout
	if c.json {
		b, err := result.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := e.Stdout.Write(b); err != nil {
			return err
		}
		table = e.Stderr
	}
	switch {
	case s.parent != "":
		if !c.quiet {
			e.say("%s: %s, written to %s", m.which, strings.ToUpper(string(r.Verdict.Status)), m.dir)
		}
		return nil
	case c.json && c.quiet:
		return nil
	}
	o := s.options()
	o.Dir, o.Partly = m.dir, !whole
	return report.Text(table, r, o)
}

// overview prints what several runs gave.
func (s *series) overview() error {
	c, e := s.command, s.env
	w := e.Stdout
	if c.json {
		w = e.Stderr
	}
	if c.json && c.quiet || len(s.entries) == 0 {
		return nil
	}
	if err := report.Overview(w, s.entries, s.options()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nwritten to %s, a folder for each run (weir report shows one)\n", s.parent)
	return err
}

// checkSession refuses a session without messages.
func checkSession(n *uint64) error {
	if n != nil && *n == 0 {
		return errors.New("--session: is 0 messages (1 or more, or leave it out)")
	}
	return nil
}

// session is a flag's value; 0 where it is not given.
func session(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// options are how tables are shown.
func (s *series) options() report.Options {
	c, e := s.command, s.env
	return report.Options{Colour: e.color(c.noColor, c.json), Width: e.width(c.json), Session: session(c.Session)}
}
