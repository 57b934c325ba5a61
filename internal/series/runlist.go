package series

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// schemaSeries names the format of series.json (docs/formats/result.md).
const schemaSeries = "weir.series/v1"

// mostPlan bounds series.json, in bytes: the largest file of scenarios makes a thousand.
const mostPlan = 64 << 20

// ErrNoPlan is wrapped by ReadRunList's error if the folder holds no plan.
var ErrNoPlan = errors.New("has no " + result.FileSeries)

// A RunList lists the runs of a series. It is written before the first of them begins.
type RunList struct {
	Schema    string            `json:"schema"`
	Weir      string            `json:"weir"`
	StartedAt string            `json:"started_at"` // RFC 3339, wall clock
	Scenarios []PlannedScenario `json:"scenarios"`  // in file order
	Runs      []PlannedRun      `json:"runs"`       // in the order of execution
}

// A PlannedScenario is a resolved scenario of a series.
type PlannedScenario struct {
	Name     string `json:"name"`
	Scenario string `json:"scenario"` // as in the scenario.yaml of its runs
}

// A PlannedRun is a run of a series.
type PlannedRun struct {
	Dir    string `json:"dir"`              // its folder within the series' folder
	Name   string `json:"name"`             // of the run
	Place  int    `json:"place"`            // index of its scenario in Scenarios, from 1
	Repeat int    `json:"repeat,omitempty"` // from 1; 0: not repeated
}

// newRunList lists the runs of a new series.
func newRunList(started time.Time, scenarios []*scenario.Scenario, tasks []*task) *RunList {
	p := &RunList{Schema: schemaSeries, Weir: buildinfo.Version(), StartedAt: started.Format(time.RFC3339)}
	for _, x := range scenarios {
		p.Scenarios = append(p.Scenarios, PlannedScenario{Name: x.Name, Scenario: string(x.YAML())})
	}
	for _, t := range tasks {
		p.Runs = append(p.Runs, PlannedRun{Dir: t.folder, Name: t.scenario.Name, Place: t.place, Repeat: t.repeat})
	}
	return p
}

// ReadRunList reads the plan of the series in the folder dir, shown as name. Its error wraps ErrNoPlan if
// there is none.
func ReadRunList(dir, name string) (*RunList, error) {
	b, err := userfile.Read(filepath.Join(dir, result.FileSeries), mostPlan)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %w (the folder of several runs with a plan; weir run --append adds runs to others)", name, ErrNoPlan)
	}
	p := new(RunList)
	if err == nil {
		err = userfile.JSON(b, schemaSeries, p)
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(name, result.FileSeries), err)
	}
	return p, nil
}

// check refuses a plan that names a folder elsewhere.
func (p *RunList) check() error {
	for i, r := range p.Runs {
		if r.Place < 1 || r.Place > len(p.Scenarios) || r.Repeat < 0 || r.Name == "" || !filepath.IsLocal(r.Dir) || filepath.Base(r.Dir) != r.Dir {
			return fmt.Errorf("runs[%d] is malformed (dir, name, place and repeat of a run)", i)
		}
	}
	return nil
}

// Left returns the planned runs that no entry completed, in order.
func (p *RunList) Left(entries []result.Entry) []PlannedRun {
	type which struct {
		scenario string // unique within a file
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

// Unfinished counts the remaining runs of a series with the folder dirs, relative to root, and the runs
// entries. It is also 0 if no plan can be read.
func Unfinished(root string, dirs []string, entries []result.Entry) int {
	if len(dirs) != 1 {
		return 0
	}
	p, err := ReadRunList(Options{Dir: root}.Path(dirs[0]), dirs[0])
	if err != nil {
		return 0
	}
	own := slices.DeleteFunc(slices.Clone(entries), func(e result.Entry) bool { return filepath.Dir(e.Dir) != filepath.Clean(dirs[0]) })
	if len(own) == 0 {
		return 0 // an entry's folder would not give the command
	}
	return len(p.Left(own))
}
