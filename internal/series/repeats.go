package series

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// Repeats is the plan of scenarios with their repeats: new ones (Repeat), beside earlier runs of theirs
// (Append), or the remaining ones of a series (Resume).
type Repeats struct {
	// More is called with the runs that have figures when all runs are done, and before the first run if
	// there are earlier ones. If it returns true, each scenario runs once more, in shuffled order. nil: no
	// more. Not for a single run.
	More func([]result.Entry) bool

	file      string // source of the scenarios, names their common folder; "": none
	scenarios []*scenario.Scenario
	tasks     []*task
	begun     int            // tasks begun
	entries   []result.Entry // runs with figures, in order
	written   []result.Entry // entries completely written to their folders
	planned   *RunList       // stored in the folder; nil: none

	dir    string // folder with earlier runs; "": a new one
	before earlier
	names  []string // scenarios of earlier runs, in the order of the file, or else of their first runs
}

// earlier counts the runs before those of a plan.
type earlier struct {
	digits  int            // in the numbers that their folders begin with
	number  int            // the highest of these
	repeats map[string]int // highest repeat of each scenario, by name
}

// Repeat plans new runs of at least one scenario. file is their source; "": no file.
func Repeat(file string, scenarios ...*scenario.Scenario) *Repeats {
	p := &Repeats{file: file, scenarios: scenarios}
	if p.tasks = tasks(scenarios, earlier{}); p.single() {
		p.tasks = []*task{{scenario: scenarios[0]}}
	}
	return p
}

// Append plans more runs in the folder dir, shown as name. Resolve then creates them. It refuses the folder
// of a single run, and one with a run that cannot be read.
func Append(dir, name string) (*Repeats, error) {
	found, err := result.Find(dir)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 && found[0] == dir {
		return nil, fmt.Errorf("%s holds a single run (a folder of several runs, which --repeat, matrix or scenarios make)", name)
	}
	p := &Repeats{dir: name, before: earlier{digits: 2, repeats: map[string]int{}}}
	for _, f := range found {
		inside, err := filepath.Rel(dir, f)
		if err != nil {
			return nil, err
		}
		digits := result.FolderNumber(inside)
		if digits == "" || filepath.Dir(inside) != "." {
			return nil, fmt.Errorf("%s: %s is not the folder of one of several runs (a folder that weir run made for several)", name, inside)
		}
		number, err := strconv.Atoi(digits)
		if err != nil {
			return nil, err
		}
		p.before.number, p.before.digits = max(p.before.number, number), max(p.before.digits, len(digits))
		e, _, err := result.Load(f, filepath.Join(name, inside), result.Loading{Totals: true})
		switch {
		case errors.Is(err, result.ErrNotResult):
			continue // killed: its number stays taken
		case err != nil:
			return nil, err
		case len(e.Scenario) == 0:
			return nil, fmt.Errorf("%s has no %s", e.Dir, result.FileScenario)
		}
		of := e.Result.Run.Scenario()
		if _, known := p.before.repeats[of]; !known {
			p.names = append(p.names, of)
		}
		p.before.repeats[of] = max(p.before.repeats[of], e.Result.Run.Repeat, 1)
		p.entries = append(p.entries, e)
	}
	if len(p.entries) == 0 {
		return nil, errors.New(name + " holds no run")
	}
	slices.SortStableFunc(p.names, func(a, b string) int { return p.first(a).Result.Run.Place - p.first(b).Result.Run.Place })
	p.planned, _ = ReadRunList(dir, name) // older versions have none
	return p, nil
}

// first returns the first run of a scenario.
func (p *Repeats) first(name string) result.Entry {
	return p.entries[slices.IndexFunc(p.entries, func(e result.Entry) bool { return e.Result.Run.Scenario() == name })]
}

// Resume plans the remaining runs of the series in the folder dir, shown as name: those that did not begin,
// gave no figures, or were interrupted. Resolve then creates them. Runs with a truncated or damaged file
// remain too, and so do runs in nested folders. Its error wraps ErrNoPlan if the folder has no list of
// runs.
func Resume(dir, name string) (*Repeats, error) {
	planned, err := ReadRunList(dir, name)
	if err != nil {
		return nil, err
	}
	p := &Repeats{dir: name, planned: planned}
	found, err := result.Find(dir)
	if err != nil && !errors.Is(err, result.ErrNotResult) {
		return nil, err
	}
	for _, f := range found {
		inside, err := filepath.Rel(dir, f)
		if err != nil {
			return nil, err
		}
		if filepath.Dir(inside) != "." {
			continue
		}
		e, _, err := result.Load(f, filepath.Join(name, inside), result.Loading{Totals: true})
		switch {
		case errors.Is(err, result.ErrNotResult), errors.Is(err, result.ErrTorn), errors.Is(err, result.ErrMalformed):
		case err != nil:
			return nil, err
		default:
			p.entries = append(p.entries, e)
		}
	}
	return p, nil
}

// Resolve creates the runs of a plan from Append or Resume, from the stored scenarios. Afterwards Scenarios
// has each scenario once, or none if Resume found nothing left. It ignores file, text and overrides of in.
// With Append, each scenario runs as often as repeat says.
func (p *Repeats) Resolve(in scenario.Inputs, repeat scenario.Override) error {
	p.written = slices.Clone(p.entries)
	if p.names == nil {
		return p.resolveLeft(in)
	}
	for _, name := range p.names {
		e := p.first(name)
		in.File, in.Text = filepath.Join(e.Dir, result.FileScenario), e.Scenario
		in.Overrides = []scenario.Override{repeat, {Path: "name", Value: name}}
		one, err := scenario.Resolve(in)
		if err != nil {
			return err
		}
		p.scenarios = append(p.scenarios, one...)
	}
	return nil
}

// resolveLeft creates the remaining runs of the stored list.
func (p *Repeats) resolveLeft(in scenario.Inputs) error {
	resolved := make([]*scenario.Scenario, len(p.planned.Scenarios))
	for _, r := range p.planned.Left(p.entries) {
		of := &p.planned.Scenarios[r.Place-1]
		if resolved[r.Place-1] == nil {
			in.File, in.Text = filepath.Join(p.dir, result.FileSeries+" ("+of.Name+")"), []byte(of.Scenario)
			in.Overrides = []scenario.Override{{Path: "repeat", Value: "1"}}
			one, err := scenario.Resolve(in)
			if err != nil {
				return err
			}
			resolved[r.Place-1] = one[0]
			p.scenarios = append(p.scenarios, one[0])
		}
		one := *resolved[r.Place-1]
		one.Name = r.Name
		t := &task{scenario: &one, folder: r.Dir, place: r.Place, repeat: r.Repeat}
		if r.Repeat > 0 {
			t.series = of.Name
		}
		p.tasks = append(p.tasks, t)
	}
	return nil
}

// Scenarios returns the scenarios of the runs, each once.
func (p *Repeats) Scenarios() []*scenario.Scenario { return p.scenarios }

// Entries returns the runs with figures so far, in order, for an overview.
func (p *Repeats) Entries() []result.Entry { return p.entries }

// Left returns the folders of the runs not begun, if there are several runs.
func (p *Repeats) Left() []string {
	var names []string
	for _, t := range p.tasks[p.begun:] {
		names = append(names, t.folder)
	}
	return names
}

// Rest counts the runs of the stored list that did not complete, or could not be written. It is 0 without a
// list: for a single run, and in folders of older versions.
func (p *Repeats) Rest() int {
	if p.planned == nil {
		return 0
	}
	return len(p.planned.Left(p.written))
}

// single reports whether there is one run, without a common folder.
func (p *Repeats) single() bool {
	return p.dir == "" && len(p.scenarios) == 1 && p.scenarios[0].Repeat <= 1
}

// begin makes the common folder of several runs, with their list.
func (p *Repeats) begin(s *Series) error {
	switch {
	case p.single():
		return nil
	case p.dir != "":
		if p.names != nil && p.More == nil { // else ask More first
			p.tasks = tasks(p.scenarios, p.before)
		}
		s.reopen(p.dir)
		return s.claim()
	}
	name := p.scenarios[0].Name
	if len(p.scenarios) > 1 {
		name = suiteName(p.file)
	}
	if err := s.makeFolder(name); err != nil {
		return err
	}
	p.planned = newRunList(s.started, p.scenarios, p.tasks)
	if err := s.folder.WriteSeries(p.planned); err != nil {
		return &FolderError{err}
	}
	return s.claim()
}

// next returns the next run, from a further round if More asks for one.
func (p *Repeats) next() (*task, error) {
	if p.begun == len(p.tasks) {
		if p.single() || p.More == nil || !p.More(p.entries) {
			return nil, nil
		}
		p.tasks = append(p.tasks, p.round()...)
	}
	t := p.tasks[p.begun]
	p.begun++
	t.number, t.of = p.begun, len(p.tasks)
	return t, nil
}

// add handles a finished run. A failed run does not prevent the others.
func (p *Repeats) add(_ *Series, o *Outcome) (counts bool, err error) {
	if o.Result != nil {
		p.entries = append(p.entries, o.Entry)
		if o.Written == nil {
			p.written = append(p.written, o.Entry)
		}
	}
	return true, nil
}

// tasks assigns scenarios, each with its repeats, to folders. Numbers and repeats continue those before.
func tasks(scenarios []*scenario.Scenario, before earlier) []*task {
	var all []*task
	for _, x := range order(scenarios, before.number) {
		s := scenarios[x.run]
		one := *s
		one.Repeat = 1
		t := &task{scenario: &one, place: x.run + 1}
		if had := before.repeats[s.Name]; s.Repeat > 1 || had > 0 {
			t.series, t.repeat = s.Name, had+x.repeat
			one.Name = numbered(s.Name, t.repeat)
		}
		all = append(all, t)
	}
	digits := cmp.Or(before.digits, max(2, len(fmt.Sprint(len(all)))))
	for i, t := range all {
		t.folder = fmt.Sprintf("%0*d-%s", digits, before.number+i+1, t.scenario.Name)
	}
	return all
}

// round adds one run of each scenario after the runs so far.
func (p *Repeats) round() []*task {
	before := earlier{digits: p.before.digits, number: p.before.number + len(p.tasks), repeats: map[string]int{}}
	maps.Copy(before.repeats, p.before.repeats)
	if before.digits == 0 {
		before.digits = len(result.FolderNumber(p.tasks[0].folder))
	}
	once := make([]*scenario.Scenario, len(p.scenarios))
	for i, s := range p.scenarios {
		one := *s
		one.Repeat, once[i] = 1, &one
		for _, t := range p.tasks {
			if t.place == i+1 {
				before.repeats[s.Name]++
			}
		}
	}
	return tasks(once, before)
}

// A turn is one run of a series: a scenario, and its repeat.
type turn struct{ run, repeat int }

// order is the order of the runs. Without repeats it is the file's. With repeats each round runs every
// remaining scenario once, shuffled: changes on the host during a series (heat, disk, neighbours) then
// affect all scenarios alike, and none always follows the same other. The same holds if there were earlier
// runs. The order is determined by the first scenario's seed and the number of earlier runs.
func order(runs []*scenario.Scenario, earlier int) []turn {
	rounds := 0
	for _, r := range runs {
		rounds = max(rounds, r.Repeat, 1)
	}
	dice := mathrand.New(mathrand.NewPCG(runs[0].Seed, uint64(len(runs)+earlier)))
	var out []turn
	for n := range rounds {
		var round []turn
		for i, r := range runs {
			if n < max(1, r.Repeat) {
				round = append(round, turn{i, n + 1})
			}
		}
		if rounds > 1 || earlier > 0 {
			dice.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		}
		out = append(out, round...)
	}
	return out
}

// longestName is the longest name of a scenario.
const longestName = 100

// numbered is the name of the n-th repeat.
func numbered(name string, n int) string {
	suffix := fmt.Sprintf("-r%d", n)
	return name[:min(len(name), longestName-len(suffix))] + suffix
}

// suiteName names several runs after their file.
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
