package view

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// ofPlan reports whether an unreadable run, such as one of a killed process, belongs to a series with a
// plan, and again whether the series repeated it beside its folder. weir run --resume adds a number to the
// name of a repeated run.
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

// A Loading says what to derive from a folder besides its result.
type Loading struct {
	Drawn  bool          // keep the run's course, all that is drawn of its seconds
	Judged bool          // judge again, and show that verdict in place of the stored one
	Window time.Duration // length of windows with percentiles of their own; 0: none
	Totals bool          // load its sample totals; repeats always have them
}

// Load reads what is shown of the folder dir, as result.Load does.
func Load(dir, name string, l Loading) (e Entry, missing []string, err error) {
	loaded, missing, err := result.Load(dir, name, result.Loading{Seconds: l.Drawn || l.Judged, Totals: l.Totals})
	if err != nil {
		return e, nil, err
	}
	e.Entry = loaded
	if l.Judged {
		review := judge.Again(e.Result)
		e.Review, e.Result.Verdict = &review, review.Verdict
	}
	seconds := e.Result.Intervals
	e.Result.Intervals = result.MeasuredFirst(seconds) // the rest are most of it
	if l.Window > 0 && !slices.Contains(missing, result.FileIntervals) {
		if e.Windows, err = windowed(dir, l.Window, firstSecond(e.Result)); err != nil {
			return e, nil, result.Explain(err)
		}
	}
	if l.Drawn {
		if e.Course, err = NewCourse(e.Result, seconds, dir); err != nil {
			return e, nil, result.Explain(err)
		}
	}
	return e, missing, nil
}

// Remains describes, a line each, what is left of a run that has no result.json: until when it was
// recorded, how many samples, and how to repeat it. It returns nil for any other folder, and shows no
// figures: a run that did not end has no verdict.
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
		lines = append(lines, result.FileEvents+": "+quantity.Counted(events, "event", "events")+torn)
	}
	if slices.Contains(saved.Files, result.FileScenario) {
		lines = append(lines, "scenario.yaml: weir run "+filepath.Join(dir, result.FileScenario)+" repeats the run")
	}
	return lines
}

// recorded describes the contents of an interval log.
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
	text := fmt.Sprintf("%s: %s lines, until %s of the run", result.FileIntervals, quantity.Count(uint64(n)), quantity.Span(time.Duration(until).Round(100*time.Millisecond)))
	slices.Sort(tags)
	var parts []string
	for _, tag := range tags {
		if strings.HasPrefix(tag, "send.response.") || strings.HasPrefix(tag, "e2e.response.") || strings.HasPrefix(tag, "rtt.response.") {
			parts = append(parts, tag+" "+quantity.Count(samples[tag]))
		}
	}
	if len(parts) == 0 { // a closed loop
		for _, tag := range tags {
			if strings.Contains(tag, ".service.") {
				parts = append(parts, tag+" "+quantity.Count(samples[tag]))
			}
		}
	}
	if len(parts) > 0 {
		text += ", samples: " + strings.Join(parts, ", ")
	}
	return text + end
}
