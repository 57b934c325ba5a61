package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/measure"
)

// An Entry is a run among others, with the contents of its folder. What is unknown is empty.
type Entry struct {
	Dir         string // its folder, as it should be displayed
	Result      *Result
	Scenario    []byte                     // its scenario.yaml
	Environment Environment                // its environment.json
	Totals      map[string]*measure.Counts // samples of the measured window by the tags of intervals.hlog
}

// Bounds of the search for results below a folder.
const (
	deepest  = 3 // a folder of suites, a suite, a run
	mostRuns = 1000
)

// allowed describes what can be reported on.
const allowed = "a folder that weir run wrote, or one that holds such folders"

// Find returns the result folders that dir stands for: dir itself, or those below it, sorted by
// name. They include folders of runs that never ended. The error names dir and says what is
// allowed.
func Find(dir string) ([]string, error) {
	_, err := Open(dir)
	if err == nil {
		return []string{dir}, nil
	}
	switch st, e := os.Stat(dir); {
	case errors.Is(e, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such folder (%s)", dir, allowed)
	case e != nil:
		return nil, fmt.Errorf("%w (%s)", err, allowed)
	case !st.IsDir() && filepath.Base(dir) == FileResult:
		return nil, fmt.Errorf("%w (its folder, %s)", err, filepath.Dir(dir))
	case !st.IsDir():
		return nil, fmt.Errorf("%w (%s)", err, allowed)
	}
	var found []string
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		children, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("looking for results: %w", err)
		}
		for _, c := range children {
			path := filepath.Join(dir, c.Name())
			if st, err := os.Stat(path); err != nil || !st.IsDir() { // follows links to folders
				continue
			}
			if _, err := Open(path); err == nil {
				if len(found) == mostRuns {
					return fmt.Errorf("%s holds more than %d runs (name some of them)", dir, mostRuns)
				}
				found = append(found, path)
			} else if depth < deepest {
				if err := walk(path, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	switch walkErr := walk(dir, 1); {
	case walkErr != nil:
		return nil, walkErr
	case len(found) == 0:
		return nil, fmt.Errorf("%s: %w: it has no %s, and neither has a folder in it (%s)", dir, ErrNotResult, FileResult, allowed)
	}
	return found, nil
}

// A Loading selects the memory-intensive parts that Load reads.
type Loading struct {
	Seconds bool // all Intervals of result.json, of which there may be very many; else only the first measured one
	Totals  bool // the samples, which are always read for one of several repeats
}

// Load reads the folder dir, to be displayed as name. It rejects a folder with a file that is
// truncated, malformed or newer than this weir. Only result.json is required: missing names the
// other files that are absent.
func Load(dir, name string, l Loading) (e Entry, missing []string, err error) {
	saved, err := Read(dir)
	switch {
	case errors.Is(err, ErrNotResult) && errors.Is(err, fs.ErrNotExist):
		return e, nil, fmt.Errorf("%s: %w: it has no %s, which weir writes when a run ends; this one was killed, or still runs (the folder of a run that ended)",
			dir, ErrNotResult, FileResult)
	case err != nil:
		return e, nil, Explain(err)
	}
	e = Entry{Dir: name, Result: saved.Result}
	if !l.Seconds {
		e.Result.Intervals = MeasuredFirst(e.Result.Intervals)
	}
	has := func(file string) bool {
		if slices.Contains(saved.Files, file) {
			return true
		}
		missing = append(missing, file)
		return false
	}
	if has(FileIntervals) && (l.Totals || e.Result.Run.Series != "") {
		if e.Totals, err = saved.Totals(); err != nil {
			return e, nil, Explain(err)
		}
	}
	if has(FileScenario) {
		if e.Scenario, err = readScenario(filepath.Join(dir, FileScenario)); err != nil {
			return e, nil, err
		}
	}
	if has(FileEnvironment) {
		env, err := saved.Environment()
		if err != nil {
			return e, nil, Explain(err)
		}
		e.Environment = *env
	}
	if has(FileEvents) {
		events := 0
		for _, err := range saved.Events() {
			if err != nil {
				return e, nil, Explain(err)
			}
			events++
		}
		if events != saved.Result.Events {
			return e, nil, fmt.Errorf("%s: %w: it holds another number of events, %d, than result.json counts, %d (the folder as the run left it)",
				filepath.Join(dir, FileEvents), ErrMalformed, events, saved.Result.Events)
		}
	}
	return e, missing, nil
}

// MeasuredFirst returns the second at which the measured window begins, the only one that results
// of older versions need.
func MeasuredFirst(all []Interval) []Interval {
	if i := slices.IndexFunc(all, func(x Interval) bool { return x.Phase == "measure" }); i >= 0 {
		return slices.Clone(all[i : i+1])
	}
	return nil
}

// folderOfSeveral matches the name of the folder of one of several runs.
var folderOfSeveral = regexp.MustCompile(`^([0-9]+)-`)

// FolderNumber returns the digits with which the folder of one of several runs begins, "03" of
// results/x/03-name; "" for the folder of a single run.
func FolderNumber(dir string) string {
	if m := folderOfSeveral.FindStringSubmatch(filepath.Base(dir)); m != nil {
		return m[1]
	}
	return ""
}

// longestScenario bounds a resolved scenario that is read for comparison.
const longestScenario = 4 << 20

func readScenario(path string) ([]byte, error) {
	b, err := userfile.Read(path, longestScenario)
	switch {
	case errors.Is(err, userfile.ErrNotRegular), errors.Is(err, userfile.ErrTooLong):
		return nil, fmt.Errorf("%s: %w: it is not a regular file of at most %d MiB (the folder as the run left it)", path, ErrNotResult, longestScenario>>20)
	case err != nil:
		return nil, fmt.Errorf("read result folder: %w", err)
	}
	return b, nil
}

// Explain adds to an error in a file what is allowed.
func Explain(err error) error {
	switch {
	case errors.Is(err, ErrNewer):
		return fmt.Errorf("%w (a weir at least as new as the one that wrote it)", err)
	case errors.Is(err, ErrTorn), errors.Is(err, ErrMalformed):
		return fmt.Errorf("%w (the folder as the run left it)", err)
	case errors.Is(err, ErrNotResult):
		return fmt.Errorf("%w (%s)", err, allowed)
	}
	return err
}
