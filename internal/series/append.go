package series

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// An Earlier is a folder with runs that more of the same are to be added to.
type Earlier struct {
	dir     string
	entries []result.Entry // in the order of their folders
	digits  int            // of the numbers with which their folders begin
	number  int            // the highest of these
	repeats map[string]int // the highest of each scenario's, by its name
	names   []string       // of the scenarios, in the order of the file, or else of their first runs
}

// OpenEarlier reads what is below the folder dir, which is shown as name. It refuses the
// folder of a single run, and one with a run that cannot be read.
func OpenEarlier(dir, name string) (*Earlier, error) {
	found, err := result.Find(dir)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 && found[0] == dir {
		return nil, fmt.Errorf("%s holds a single run (a folder of several runs, which --repeat, matrix or scenarios make)", name)
	}
	x := &Earlier{dir: name, digits: 2, repeats: map[string]int{}}
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
		x.number, x.digits = max(x.number, number), max(x.digits, len(digits))
		e, _, err := result.Load(f, filepath.Join(name, inside), result.Loading{Totals: true})
		switch {
		case errors.Is(err, result.ErrNotResult):
			continue // it was killed, and its number stays taken
		case err != nil:
			return nil, err
		case len(e.Scenario) == 0:
			return nil, fmt.Errorf("%s has no %s", e.Dir, result.FileScenario)
		}
		of := e.Result.Run.Scenario()
		if _, known := x.repeats[of]; !known {
			x.names = append(x.names, of)
		}
		x.repeats[of] = max(x.repeats[of], e.Result.Run.Repeat, 1)
		x.entries = append(x.entries, e)
	}
	if len(x.entries) == 0 {
		return nil, errors.New(name + " holds no run")
	}
	slices.SortStableFunc(x.names, func(a, b string) int { return x.first(a).Result.Run.Place - x.first(b).Result.Run.Place })
	return x, nil
}

// first returns the first run of a scenario.
func (x *Earlier) first(name string) result.Entry {
	return x.entries[slices.IndexFunc(x.entries, func(e result.Entry) bool { return e.Result.Run.Scenario() == name })]
}

// Resolve returns each scenario of the runs once, as it is stored. Each is to be done as often
// as repeat says. File, text and overrides of in are not read.
func (x *Earlier) Resolve(in scenario.Inputs, repeat scenario.Override) ([]*scenario.Scenario, error) {
	var all []*scenario.Scenario
	for _, name := range x.names {
		e := x.first(name)
		in.File, in.Text = filepath.Join(e.Dir, result.FileScenario), e.Scenario
		in.Overrides = []scenario.Override{repeat, {Path: "name", Value: name}}
		one, err := scenario.Resolve(in)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}
