package series

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/result"
)

// A Suite is the plan of a suite: its runs without figures. A failed run does not prevent the others.
type Suite struct {
	Report    *suite.Report // the results so far
	scenarios []*scenario.Scenario
	suite     *suite.Suite
	items     []suite.Item
	running   int // index of the current item
	resumed   bool
}

// NewSuite plans the runs chosen from a suite. It refuses what cannot be run, and has no side effects. in
// is as for suite.Plan.
func NewSuite(in scenario.Inputs, of *suite.Suite, c suite.Choice) (*Suite, error) {
	x := &Suite{suite: of, running: -1}
	if err := x.resolve(in, c); err != nil {
		return nil, err
	}
	x.Report = of.Begin(c, len(x.items))
	x.Report.Weir, x.Report.StartedAt = buildinfo.Version(), time.Now().UTC().Format(time.RFC3339)
	return x, nil
}

// ResumeSuite resumes the suite in the folder o.Out, which ReadSuite returned, by its own plan. A KeptError
// says why it cannot.
func ResumeSuite(o Options, in scenario.Inputs, was *suite.Report) (*Suite, error) {
	x := &Suite{Report: was, running: -1, resumed: true}
	if scale := x.Report.Scale; !(scale > 0 && scale <= 1) {
		return nil, &KeptError{fmt.Errorf("%s: its scale is out of bounds", filepath.Join(o.Out, suite.FileReport))}
	}
	name := filepath.Join(o.Out, suite.File)
	var err error
	if x.suite, err = suite.Open(name, o.Path(name)); err != nil {
		return nil, &KeptError{err}
	}
	return x, x.resolve(in, suite.Choice{Drivers: x.Report.Drivers, Rows: x.Report.Chosen, Scale: x.Report.Scale})
}

// ReadSuite reads the results of the suite in a folder, and also returns the bytes of its file. A relative
// folder is below root.
func ReadSuite(root, dir string) (*suite.Report, []byte, error) {
	return read(root, dir, suite.FileReport, "suite", suite.MostBytes, suite.ParseReport)
}

// resolve creates the runs.
func (x *Suite) resolve(in scenario.Inputs, c suite.Choice) (err error) {
	if x.items, err = x.suite.Plan(in, c); err != nil {
		return err
	}
	for _, i := range x.items {
		x.scenarios = append(x.scenarios, i.Scenario)
	}
	return Fits(nil, x.scenarios)
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

// Scenarios returns the scenarios of all runs, in order.
func (x *Suite) Scenarios() []*scenario.Scenario { return x.scenarios }

// begin makes the folder of a new suite, and writes its plan.
func (x *Suite) begin(in *Series) error {
	if x.resumed {
		in.reopen(in.o.Out)
		return nil
	}
	err := in.makeFolder(x.suite.Name)
	if err == nil {
		err = in.write(suite.File, x.suite.Text)
	}
	if err == nil {
		err = x.store(in)
	}
	return err
}

// store writes suite.json and the page.
func (x *Suite) store(in *Series) error {
	if err := in.document(suite.FileReport, x.Report); err != nil {
		return err
	}
	if in.o.Pages == nil {
		return nil
	}
	page, err := in.o.Pages.Suite(x.Report)
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrWriting, result.FileReport, err)
	}
	return in.write(result.FileReport, page)
}

// next returns the next run that has no figures.
func (x *Suite) next() (*task, error) {
	for x.running++; x.running < len(x.items); x.running++ {
		if item := &x.items[x.running]; !x.Report.Done(item) {
			return &task{scenario: item.Scenario, folder: item.Name(), number: x.running + 1, of: len(x.items), percentiles: item.Percentiles()}, nil
		}
	}
	return nil, nil
}

// add handles a finished run. An interrupted one remains to be done, and ends the suite.
func (x *Suite) add(in *Series, o *Outcome) (counts bool, err error) {
	item := &x.items[x.running]
	var l suite.Line
	switch {
	case o.Interrupted():
		return false, nil
	case o.Result == nil:
		l = item.Failed(strings.ReplaceAll(o.Err.Error(), "\n", "; "))
	default:
		l = item.Measured(o.Result, &o.Entry.Environment, filepath.Base(o.Dir), x.Report.Scale)
		var wrong []string
		for _, err := range o.Wrong() {
			wrong = append(wrong, err.Error())
		}
		l.Why = strings.Join(wrong, "; ")
	}
	o.Line = &l
	x.Report.Add(item, l)
	return true, x.store(in)
}
