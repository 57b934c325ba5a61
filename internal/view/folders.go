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

// Load reads what is shown of the folder dir as result.Load does.
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
	e.Result.Intervals = result.MeasuredFirst(seconds) // the others are the most of it
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
		lines = append(lines, result.FileEvents+": "+quantity.Counted(events, "event", "events")+torn)
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
