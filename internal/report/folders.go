package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// Bounds of the search for results below a folder.
const (
	deepest  = 3 // a folder of suites, a suite, a run
	mostRuns = 1000
)

// allowed is what may be reported on.
const allowed = "a folder that weir run wrote, or one that holds such folders"

// Find returns the result folders that dir stands for: dir itself, or in order
// of their names those below it. Folders of runs that never ended are among
// them. The error names dir and says what is allowed.
func Find(dir string) ([]string, error) {
	_, err := result.Open(dir)
	if err == nil {
		return []string{dir}, nil
	}
	switch st, e := os.Stat(dir); {
	case errors.Is(e, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such folder (%s)", dir, allowed)
	case e != nil:
		return nil, fmt.Errorf("%w (%s)", err, allowed)
	case !st.IsDir() && filepath.Base(dir) == result.FileResult:
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
			if st, err := os.Stat(path); err != nil || !st.IsDir() { // a link to a folder is one
				continue
			}
			if _, err := result.Open(path); err == nil {
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
		return nil, fmt.Errorf("%s: %w: it has no %s, and neither has a folder in it (%s)", dir, result.ErrNotResult, result.FileResult, allowed)
	}
	return found, nil
}

// ofPlan reports whether a run that cannot be read, as of a process that was killed, is one of a
// series with a plan, and again whether the series did it again beside its folder. What weir
// run --resume does again bears a number behind the name.
func ofPlan(dir string, err error) (planned, again bool) {
	_, none := os.Stat(filepath.Join(filepath.Dir(dir), result.FileSeries))
	unread := errors.Is(err, result.ErrNotResult) || errors.Is(err, result.ErrTorn) || errors.Is(err, result.ErrMalformed)
	if none != nil || !unread {
		return false, false
	}
	for n := 2; none == nil && !again; n++ {
		beside := fmt.Sprintf("%s-%d", dir, n)
		_, none = os.Stat(beside)
		_, whole := os.Stat(filepath.Join(beside, result.FileResult))
		again = whole == nil
	}
	return true, again
}

// A Loading says what is made of a folder besides reading it.
type Loading struct {
	Drawn  bool          // the run's course is kept, which is all that is drawn of its seconds
	Judged bool          // the verdict is reached again, and shown in place of the stored one
	Window time.Duration // of parts of the run with percentiles of their own; 0: there are none
	Totals bool          // of its samples, which those of one of several repeats have in any case
}

// Load reads what is shown of the folder dir, which is to be named name. A folder with a
// file that is cut short, malformed or newer than this weir is refused; only result.json
// must be there, and missing names which others are not. The seconds of result.json are
// left out but for the first measured one, since there may be very many.
func Load(dir, name string, l Loading) (e Entry, missing []string, err error) {
	saved, err := result.Read(dir)
	switch {
	case errors.Is(err, result.ErrNotResult) && errors.Is(err, fs.ErrNotExist):
		return e, nil, fmt.Errorf("%s: %w: it has no %s, which weir writes when a run ends; this one was killed, or still runs (the folder of a run that ended)",
			dir, result.ErrNotResult, result.FileResult)
	case err != nil:
		return e, nil, explain(err)
	}
	e = Entry{Dir: name, Result: saved.Result}
	if l.Judged {
		review := judge.Again(e.Result)
		e.Review, e.Result.Verdict = &review, review.Verdict
	}
	intervals := e.Result.Intervals
	e.Result.Intervals = measuredFirst(intervals) // the others are the most of it
	has := func(file string) bool {
		if slices.Contains(saved.Files, file) {
			return true
		}
		missing = append(missing, file)
		return false
	}
	if has(result.FileIntervals) && (l.Totals || e.Result.Run.Series != "") {
		if e.Totals, err = saved.Totals(); err != nil {
			return e, nil, explain(err)
		}
	}
	if l.Window > 0 && slices.Contains(saved.Files, result.FileIntervals) {
		if e.Windows, err = windowed(dir, l.Window, firstSecond(e.Result)); err != nil {
			return e, nil, explain(err)
		}
	}
	if has(result.FileScenario) {
		if e.Scenario, err = readScenario(filepath.Join(dir, result.FileScenario)); err != nil {
			return e, nil, err
		}
	}
	if has(result.FileEnvironment) {
		env, err := saved.Environment()
		if err != nil {
			return e, nil, explain(err)
		}
		e.Around = *env
	}
	if has(result.FileEvents) {
		events := 0
		for _, err := range saved.Events() {
			if err != nil {
				return e, nil, explain(err)
			}
			events++
		}
		if events != saved.Result.Events {
			return e, nil, fmt.Errorf("%s: %w: it holds another number of events, %d, than result.json counts, %d (the folder as the run left it)",
				filepath.Join(dir, result.FileEvents), result.ErrMalformed, events, saved.Result.Events)
		}
	}
	if l.Drawn {
		if e.Course, err = NewCourse(e.Result, intervals, dir); err != nil {
			return e, nil, explain(err)
		}
	}
	return e, missing, nil
}

// longestScenario bounds a resolved scenario that is read to be compared.
const longestScenario = 4 << 20

func readScenario(path string) ([]byte, error) {
	b, err := userfile.Read(path, longestScenario)
	switch {
	case errors.Is(err, userfile.ErrNotRegular), errors.Is(err, userfile.ErrTooLong):
		return nil, fmt.Errorf("%s: %w: it is not a regular file of at most %d MiB (the folder as the run left it)", path, result.ErrNotResult, longestScenario>>20)
	case err != nil:
		return nil, fmt.Errorf("read result folder: %w", err)
	}
	return b, nil
}

// explain adds to what is wrong with a file what is allowed.
func explain(err error) error {
	switch {
	case errors.Is(err, result.ErrNewer):
		return fmt.Errorf("%w (a weir at least as new as the one that wrote it)", err)
	case errors.Is(err, result.ErrTorn), errors.Is(err, result.ErrMalformed):
		return fmt.Errorf("%w (the folder as the run left it)", err)
	case errors.Is(err, result.ErrNotResult):
		return fmt.Errorf("%w (%s)", err, allowed)
	}
	return err
}

// Remains says, a line each, what is left of a run that has no result.json:
// until when it was recorded, how many samples of what, and how it is run again.
// It returns nil for any other folder, and calls nothing a figure: a run that
// did not end has no verdict.
func Remains(dir string) []string {
	saved, err := result.Open(dir)
	if err != nil || slices.Contains(saved.Files, result.FileResult) {
		return nil
	}
	var lines []string
	if slices.Contains(saved.Files, result.FileIntervals) {
		lines = append(lines, recorded(filepath.Join(dir, result.FileIntervals)))
	}
	if slices.Contains(saved.Files, result.FileEvents) {
		events, torn := 0, ""
		for _, err := range saved.Events() {
			switch {
			case errors.Is(err, result.ErrTorn):
				torn = ", the last line is torn"
			case err != nil:
				torn = ", then: " + err.Error()
			default:
				events++
			}
		}
		lines = append(lines, result.FileEvents+": "+Counted(events, "event", "events")+torn)
	}
	if slices.Contains(saved.Files, result.FileScenario) {
		lines = append(lines, "scenario.yaml: weir run "+filepath.Join(dir, result.FileScenario)+" repeats the run")
	}
	return lines
}

// recorded says what an interval log holds.
func recorded(path string) string {
	f, err := userfile.Open(path)
	if errors.Is(err, userfile.ErrNotRegular) {
		return result.FileIntervals + ": not a regular file"
	}
	if err != nil {
		return result.FileIntervals + ": " + err.Error()
	}
	defer func() { _ = f.Close() }()
	var until int64
	var tags []string
	samples := map[string]uint64{}
	n, log := 0, result.NewLogReader(f)
	end := ""
	for {
		l, err := log.Next()
		if err != nil {
			if errors.Is(err, result.ErrTorn) {
				end = ", the last line is torn"
			} else if !errors.Is(err, io.EOF) {
				end = ", then: " + err.Error()
			}
			break
		}
		n++
		until = max(until, l.To)
		if !slices.Contains(tags, l.Tag) {
			tags = append(tags, l.Tag)
		}
		samples[l.Tag] += l.Counts.Total()
	}
	text := fmt.Sprintf("%s: %s lines, until %s of the run", result.FileIntervals, Count(uint64(n)), Span(time.Duration(until).Round(100*time.Millisecond)))
	slices.Sort(tags)
	var parts []string
	for _, tag := range tags {
		if strings.HasPrefix(tag, "send.response.") || strings.HasPrefix(tag, "e2e.response.") || strings.HasPrefix(tag, "rtt.response.") {
			parts = append(parts, tag+" "+Count(samples[tag]))
		}
	}
	if len(parts) == 0 { // a closed loop
		for _, tag := range tags {
			if strings.Contains(tag, ".service.") {
				parts = append(parts, tag+" "+Count(samples[tag]))
			}
		}
	}
	if len(parts) > 0 {
		text += ", samples: " + strings.Join(parts, ", ")
	}
	return text + end
}
