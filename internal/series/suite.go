package series

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/suite"
	"github.com/weirmq/weir/result"
)

// A Suite is a suite that is run.
type Suite struct {
	folder
	Scenarios []*scenario.Scenario                // of all its runs, in their order
	Report    *suite.Report                       // what it came to so far
	Draw      func(*suite.Report) ([]byte, error) // draws its page; nil: none is written
	suite     *suite.Suite
	items     []suite.Item
}

// A Row is a run of a suite that has ended.
type Row struct {
	*Outcome
	// Line is the run in the table of the suite; nil: it was interrupted, and is not there.
	Line *suite.Line
}

// NewSuite plans the runs of a choice of a suite. It refuses what cannot be run, and touches
// nothing. Its Out is the folder, as of Options; in is as of suite.Plan.
func NewSuite(o Options, in scenario.Inputs, of *suite.Suite, c suite.Choice) (*Suite, error) {
	x := &Suite{folder: folder{o: o}, suite: of}
	if err := x.plan(in, c); err != nil {
		return nil, err
	}
	x.Report = of.Begin(c, len(x.items))
	x.Report.Weir, x.Report.StartedAt = buildinfo.Version(), time.Now().UTC().Format(time.RFC3339)
	return x, nil
}

// ResumeSuite goes on with the suite in the folder Out, which ReadSuite gave, by its own plan:
// a KeptError where the folder does not let it.
func ResumeSuite(o Options, in scenario.Inputs, was *suite.Report) (*Suite, error) {
	x := &Suite{folder: folder{o: o, resumed: true}, Report: was}
	if scale := x.Report.Scale; !(scale > 0 && scale <= 1) {
		return nil, &KeptError{fmt.Errorf("%s: its scale is out of bounds", filepath.Join(o.Out, suite.FileReport))}
	}
	name := filepath.Join(o.Out, suite.File)
	var err error
	if x.suite, err = suite.Open(name, o.Path(name)); err != nil {
		return nil, &KeptError{err}
	}
	return x, x.plan(in, suite.Choice{Drivers: x.Report.Drivers, Rows: x.Report.Chosen, Scale: x.Report.Scale})
}

// ReadSuite reads what the suite in a folder came to, and returns the bytes of its file,
// too. A relative folder is below root.
func ReadSuite(root, dir string) (*suite.Report, []byte, error) {
	return read(root, dir, suite.FileReport, "suite", suite.MostBytes, suite.ParseReport)
}

func (x *Suite) plan(in scenario.Inputs, c suite.Choice) (err error) {
	if x.items, err = x.suite.Plan(in, c); err != nil {
		return err
	}
	for _, i := range x.items {
		x.Scenarios = append(x.Scenarios, i.Scenario)
	}
	return Fits(x.o.Fleet, x.Scenarios)
}

// Done counts the runs with figures.
func (x *Suite) Done() (n int) {
	for i := range x.items {
		if x.Report.Done(&x.items[i]) {
			n++
		}
	}
	return n
}

// Begin makes the folder of a new suite, and writes its plan. Its error is a
// FolderError, or wraps ErrWriting.
func (x *Suite) Begin() error {
	if x.resumed {
		return nil
	}
	if err := x.create(x.suite.Name, suite.File, x.suite.Text); err != nil {
		return err
	}
	return x.store()
}

// store writes suite.json and the page.
func (x *Suite) store() error {
	if err := x.document(suite.FileReport, x.Report); err != nil {
		return err
	}
	if x.Draw == nil {
		return nil
	}
	page, err := x.Draw(x.Report)
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrWriting, result.FileReport, err)
	}
	return x.write(result.FileReport, page)
}

// All does the runs that have no figures yet, and yields each with its line of the table. A
// run that fails does not keep the others from being done. Runs end by stop, which may be
// nil, and by ctx as those of a Series do. Begin must have been called.
func (x *Suite) All(ctx context.Context, stop <-chan struct{}) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for n := range x.items {
			item := &x.items[n]
			if x.Report.Done(item) {
				continue
			}
			if over(ctx, stop) {
				return
			}
			out, dir := x.do(ctx, stop, item.Scenario, item.Name(), n+1, len(x.items), item.Percentiles())
			line := x.line(item, out, dir)
			if line != nil {
				x.Report.Add(item, *line)
				x.err = x.store()
			}
			if !yield(&Row{out, line}) || line == nil || x.err != nil {
				return
			}
		}
	}
}

// line is what a run in a folder came to; nil where it is left to be done again.
func (x *Suite) line(item *suite.Item, o *Outcome, dir string) *suite.Line {
	var l suite.Line
	switch {
	case o.Interrupted():
		return nil
	case o.Result == nil:
		l = item.Failed(strings.ReplaceAll(o.Err.Error(), "\n", "; "))
	default:
		l = item.Measured(o.Result, &o.Entry.Environment, dir, x.Report.Scale)
		var told []string
		for _, err := range o.Wrong() {
			told = append(told, err.Error())
		}
		l.Why = strings.Join(told, "; ")
	}
	return &l
}
