package series

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/suite"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A Run is one of a series.
type Run struct {
	Scenario *scenario.Scenario
	Number   int    // of the run, from 1
	Of       int    // how many runs the series has
	Several  bool   // its folder is one of several in a common one
	Dir      string // of the result, as Options.Out and the working folder give it
	Series   string // name of the scenario that it is a repeat of; "" where it is done once
	Repeat   int    // which repeat, from 1; 0 where it is done once
}

// Among names a run among several; "" where it is the only one.
func (r *Run) Among() string {
	if !r.Several {
		return ""
	}
	return fmt.Sprintf("run %d of %d, %s", r.Number, r.Of, r.Scenario.Name)
}

// An Observer is told how one run goes. Its methods may be called from any goroutine,
// and must not block for long: Event and Interval hold up the run.
type Observer interface {
	// Doing says what goes on before the first message: "connecting".
	Doing(what string)
	// Note says what a reader should see, and find again above what comes later.
	Note(format string, args ...any)
	// Event tells of something that happened at an instant, in ns since the epoch; 0
	// before there is one. The kinds are the engine's.
	Event(at int64, kind, text string)
	// Interval tells what happened since the last one; it is the caller's again on
	// return.
	Interval(iv *measure.Interval)
	// Complain tells of an error that does not end the run.
	Complain(err error)
	// Done says that nothing is measured any more and that the system is ended, where
	// it was started. After it only Complain is called.
	Done()
}

// An Outcome is what a run came to.
type Outcome struct {
	Run
	// Result is what result.json holds; nil where the run gave no figures. Its
	// Intervals are the caller's only until the next run begins.
	Result *result.Result
	// Err says why there are no figures: a FolderError where the result's folder could
	// not be made, otherwise what kept the run from beginning, or context.Canceled where
	// it was stopped before the first message. With figures it is what the driver did
	// wrong (engine.ErrContract), or nil.
	Err error

	Books   error  // the books of the run do not balance
	Gone    error  // the system was gone for good before the run's end
	Undone  error  // a fault of the scenario could not be done, or not be undone
	Failed  string // the run ended at once, because; "" it did not
	Broken  bool   // messages were lost, or worse than the driver declares became of them
	Written error  // files of the folder could not be written: one error a line; nil: all are there

	Probed *capacity.Probed // of a Search: what the run says of its rate; nil: the run does not count
	Line   *suite.Line      // of a Suite: the run in its table; nil: it was interrupted, and is not there

	// Entry is the run as reports show it among others, with the samples of each
	// distribution where the run is one of several repeats.
	Entry result.Entry
}

// Interrupted reports whether the run was stopped before its end, or before the first message.
func (o *Outcome) Interrupted() bool {
	if o.Result == nil {
		return errors.Is(o.Err, context.Canceled)
	}
	return o.Result.Run.Interrupted
}

// Wrong lists what is to be told of a run with figures, beside them.
func (o *Outcome) Wrong() []error {
	var all []error
	for _, err := range []error{o.Err, o.Books, o.Undone, o.Gone} {
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

// A FolderError says that the folder of a result could not be made. It wraps
// result.ErrExists, fs.ErrPermission and the like.
type FolderError struct{ Err error }

// Error returns the text of the error that it wraps.
func (e *FolderError) Error() string { return e.Err.Error() }

// Unwrap returns what it wraps.
func (e *FolderError) Unwrap() error { return e.Err }

// broken reports whether the whole run m saw what the driver says cannot
// happen. Loss, corruption and misrouting always count. Reordering does not where order is
// per key: a stream holds many keys.
func broken(m result.Messages, can driver.Capabilities) bool {
	return m.Lost > 0 || m.Corrupted > 0 || m.Misrouted > 0 ||
		m.Duplicated > 0 && can.Delivery != driver.AtLeastOnce ||
		m.Reordered > 0 && can.Ordering >= driver.PerPartition
}
