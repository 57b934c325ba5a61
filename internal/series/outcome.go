package series

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A Run is one run of a series.
type Run struct {
	Scenario *scenario.Scenario
	Number   int    // of the run, from 1
	Of       int    // number of runs in the series
	Several  bool   // its folder is in a common one
	Dir      string // result folder, as in Options.Out and the working directory
	Series   string // name of the repeated scenario; "" if not repeated
	Repeat   int    // from 1; 0 if not repeated
}

// Among names a run among several; "" for a single run.
func (r *Run) Among() string {
	if !r.Several {
		return ""
	}
	return fmt.Sprintf("run %d of %d, %s", r.Number, r.Of, r.Scenario.Name)
}

// An Observer observes one run. Its methods may be called from any goroutine, and must not block for long:
// Event and Interval delay the run.
type Observer interface {
	// Doing reports the activity before the first message: "connecting".
	Doing(what string)
	// Note reports what should stay visible above later output.
	Note(format string, args ...any)
	// Event reports an event at an instant, in ns since the epoch; 0 before the epoch. Its kinds are the
	// engine's.
	Event(at int64, kind, text string)
	// Interval reports what happened since the last one; iv must not be used after the return.
	Interval(iv *measure.Interval)
	// Complain reports an error that does not end the run.
	Complain(err error)
	// Done reports that measuring has ended, and that a system started by weir has stopped. Only Complain
	// is called after it.
	Done()
}

// An Outcome is the result of a run.
type Outcome struct {
	Run
	// Result is the content of result.json; nil if the run gave no figures. Its Intervals are valid only
	// until the next run begins.
	Result *result.Result
	// Err says why there are no figures: a FolderError if the result folder could not be made,
	// context.Canceled if the run was stopped before the first message, else what kept it from beginning.
	// With figures it is a fault of the driver (engine.ErrContract), or nil.
	Err error

	Accounting error  // message accounting does not balance
	Gone       error  // the system was gone for good before the end
	Undone     error  // a fault could not be done, or not be undone
	Failed     string // why the run was aborted; "" if it was not
	Broken     bool   // messages were lost, or had outcomes the driver rules out
	Written    error  // files that could not be written, one error per line; nil: none

	Probed *capacity.Probed // for a Search: its finding on the rate; nil: the run does not count
	Line   *suite.Line      // for a Suite: the run's line in the table; nil: interrupted, no line

	// Entry is the run as reports show it among others, with the samples of each distribution if it is one
	// of several repeats.
	Entry result.Entry
}

// Interrupted reports whether the run was stopped early, or before the first message.
func (o *Outcome) Interrupted() bool {
	if o.Result == nil {
		return errors.Is(o.Err, context.Canceled)
	}
	return o.Result.Run.Interrupted
}

// Wrong lists the errors to report with a run's figures.
func (o *Outcome) Wrong() []error {
	var all []error
	for _, err := range []error{o.Err, o.Accounting, o.Undone, o.Gone} {
		if err != nil {
			all = append(all, err)
		}
	}
	if o.Failed != "" {
		all = append(all, fmt.Errorf("the run ended at once: %s", o.Failed))
	}
	if o.Written != nil {
		for line := range strings.SplitSeq(o.Written.Error(), "\n") {
			all = append(all, fmt.Errorf("writing the result: %s", line))
		}
	}
	return all
}

// A FolderError says that a result folder could not be made. It wraps result.ErrExists, fs.ErrPermission
// and the like.
type FolderError struct{ Err error }

// Error returns the text of the wrapped error.
func (e *FolderError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *FolderError) Unwrap() error { return e.Err }

// broken reports whether m, of the whole run, contains what the driver rules out. Loss, corruption and
// misrouting always count. Reordering does not with order per key, since a stream holds many keys.
func broken(m result.Messages, can driver.Capabilities) bool {
	return m.Lost > 0 || m.Corrupted > 0 || m.Misrouted > 0 ||
		m.Duplicated > 0 && can.Delivery != driver.AtLeastOnce ||
		m.Reordered > 0 && can.Ordering >= driver.PerPartition
}
