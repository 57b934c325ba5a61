package series

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/flock"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// schemaSeries names the format of series.json (docs/formats/result.md).
const schemaSeries = "weir.series/v1"

// mostPlan bounds series.json, in bytes: the largest file of scenarios makes a thousand.
const mostPlan = 64 << 20

// ErrNoPlan is wrapped by the error of ReadPlan where the folder holds no plan.
var ErrNoPlan = errors.New("has no " + result.FileSeries)

// A Plan says which runs a series has. It is written before the first of them begins.
type Plan struct {
	Schema    string            `json:"schema"`
	Weir      string            `json:"weir"`
	StartedAt string            `json:"started_at"` // RFC 3339, wall clock
	Scenarios []PlannedScenario `json:"scenarios"`  // in the order of their file
	Runs      []PlannedRun      `json:"runs"`       // in the order in which they are done
}

// A PlannedScenario is one of the scenarios of a series, resolved.
type PlannedScenario struct {
	Name     string `json:"name"`
	Scenario string `json:"scenario"` // as the scenario.yaml of its runs has it
}

// A PlannedRun is a run of a series.
type PlannedRun struct {
	Dir    string `json:"dir"`              // its folder, below that of the series
	Name   string `json:"name"`             // of the run
	Place  int    `json:"place"`            // of its scenario in Scenarios, from 1
	Repeat int    `json:"repeat,omitempty"` // from 1; 0: its scenario is done once
}

// plan is what a series of these scenarios is to do.
func (s *Series) plan(scenarios []*scenario.Scenario) *Plan {
	p := &Plan{Schema: schemaSeries, Weir: buildinfo.Version(), StartedAt: s.started.Format(time.RFC3339)}
	for _, x := range scenarios {
		p.Scenarios = append(p.Scenarios, PlannedScenario{Name: x.Name, Scenario: string(x.YAML())})
	}
	for _, t := range s.tasks {
		p.Runs = append(p.Runs, PlannedRun{Dir: t.folder, Name: t.scenario.Name, Place: t.place, Repeat: t.repeat})
	}
	return p
}

// ReadPlan reads the plan of the series in the folder dir, which is shown as name. Its error
// wraps ErrNoPlan where there is none.
func ReadPlan(dir, name string) (*Plan, error) {
	b, err := userfile.Read(filepath.Join(dir, result.FileSeries), mostPlan)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %w (the folder of several runs with a plan; weir run --append adds runs to others)", name, ErrNoPlan)
	}
	p := new(Plan)
	if err == nil {
		err = json.Unmarshal(b, p)
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(name, result.FileSeries), err)
	}
	return p, nil
}

// check refuses a plan that this weir did not write, or that names a folder elsewhere.
func (p *Plan) check() error {
	if p.Schema != schemaSeries {
		return fmt.Errorf("its schema is %q (%s)", p.Schema, schemaSeries)
	}
	for i, r := range p.Runs {
		if r.Place < 1 || r.Place > len(p.Scenarios) || r.Repeat < 0 || r.Name == "" || !filepath.IsLocal(r.Dir) || filepath.Base(r.Dir) != r.Dir {
			return fmt.Errorf("runs[%d] is malformed (dir, name, place and repeat of a run)", i)
		}
	}
	return nil
}

// Left returns those of the plan's runs that none of entries did to its end, in their order.
func (p *Plan) Left(entries []result.Entry) []PlannedRun {
	type which struct {
		scenario string // the names of a file's scenarios differ
		repeat   int
	}
	done := map[which]bool{}
	for _, e := range entries {
		if r := &e.Result.Run; !r.Interrupted {
			done[which{r.Scenario(), r.Repeat}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Runs), func(r PlannedRun) bool {
		return done[which{p.Scenarios[r.Place-1].Name, r.Repeat}]
	})
}

// Unfinished counts the runs that a series has left, where dirs is its folder, below root where
// it is relative, and entries are its runs. 0 also where there is no plan that can be read.
func Unfinished(root string, dirs []string, entries []result.Entry) int {
	if len(dirs) != 1 {
		return 0
	}
	p, err := ReadPlan(Options{Dir: root}.Path(dirs[0]), dirs[0])
	if err != nil {
		return 0
	}
	own := slices.DeleteFunc(slices.Clone(entries), func(e result.Entry) bool { return filepath.Dir(e.Dir) != filepath.Clean(dirs[0]) })
	if len(own) == 0 {
		return 0 // the command could not be told from an entry's folder
	}
	return len(p.Left(own))
}

// A Remaining is what a series has left to do: the runs of its plan that were not begun, that gave
// no figures, or that were interrupted.
type Remaining struct {
	dir     string
	plan    *Plan
	entries []result.Entry
	tasks   []task
}

// OpenRemaining reads the plan of the series in the folder dir, which is shown as name, and what
// it did. A run with a file that is cut short or damaged is left, and so is one in a folder
// below those of the runs. Its error wraps ErrNoPlan where the folder holds no plan.
func OpenRemaining(dir, name string) (*Remaining, error) {
	plan, err := ReadPlan(dir, name)
	if err != nil {
		return nil, err
	}
	x := &Remaining{dir: name, plan: plan}
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
			x.entries = append(x.entries, e)
		}
	}
	return x, nil
}

// Resolve returns the scenarios of the runs that are left, each once; none: all are done. File,
// text and overrides of in are not read.
func (x *Remaining) Resolve(in scenario.Inputs) ([]*scenario.Scenario, error) {
	resolved := make([]*scenario.Scenario, len(x.plan.Scenarios))
	var all []*scenario.Scenario
	for _, r := range x.plan.Left(x.entries) {
		of := &x.plan.Scenarios[r.Place-1]
		if resolved[r.Place-1] == nil {
			in.File, in.Text = filepath.Join(x.dir, result.FileSeries+" ("+of.Name+")"), []byte(of.Scenario)
			in.Overrides = []scenario.Override{{Path: "repeat", Value: "1"}}
			one, err := scenario.Resolve(in)
			if err != nil {
				return nil, err
			}
			resolved[r.Place-1] = one[0]
			all = append(all, one[0])
		}
		one := *resolved[r.Place-1]
		one.Name = r.Name
		t := task{scenario: &one, folder: r.Dir, place: r.Place, repeat: r.Repeat}
		if r.Repeat > 0 {
			t.series = of.Name
		}
		x.tasks = append(x.tasks, t)
	}
	return all, nil
}

// claim has the folder of a series to itself until Close: two programs that do its runs would
// disturb each other, and count both. A folder without a plan is not claimed.
func (s *Series) claim() (*Series, error) {
	f, err := userfile.Open(filepath.Join(s.o.Path(s.parent), result.FileSeries))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		if err = flock.Open(f); err == nil {
			s.lock = f
			return s, nil
		}
		_ = f.Close()
	}
	if errors.Is(err, flock.ErrHeld) {
		return nil, &FolderError{fmt.Errorf("%s: another weir does its runs now (wait for its end)", s.parent)}
	}
	return nil, &FolderError{fmt.Errorf("claiming %s: %w", s.parent, err)}
}

// Free returns a name for a folder in dir, which need not exist. One that an interrupted run
// left behind stays: the run is done again beside it, with a number behind its name.
func (o Options) Free(dir, name string) string {
	found := name
	for i := 2; i <= mostSuffix; i++ {
		if _, err := os.Lstat(o.Path(filepath.Join(dir, found))); errors.Is(err, fs.ErrNotExist) {
			break
		}
		found = name + "-" + strconv.Itoa(i)
	}
	return found
}
