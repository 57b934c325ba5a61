package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// compareCommand is `weir compare`.
type compareCommand struct {
	Sides          []string `arg:"" name:"side" help:"Two or more sides; the first is the base. With --by, one is enough. A side is the folder of a series, folders of runs with commas between them, or a pattern in quotes."`
	FailOn         *string  `placeholder:"WHAT" help:"regression: exit with 4 when a figure is worse (default: exit with 0, or with 2 when the sides cannot be compared)."`
	Strict         bool     `help:"With --fail-on: exit with 4 also where a figure is neither worse nor shown to be no worse."`
	Figure         []string `placeholder:"FIGURE" sep:"none" help:"Compare only this figure, such as e2e.p99, received.rate or lost; may be repeated. With --fail-on only these decide (default: all that the runs have)."`
	Alpha          *string  `placeholder:"ALPHA" help:"Accepted chance of a wrong claim, for each group of figures (default: 0.05)."`
	Band           *string  `placeholder:"PERCENT" help:"Treat a change that is certainly smaller as no change; 0 turns this off (default: 5%)."`
	By             *string  `placeholder:"KEY" help:"Group the runs of one or more folders into sides by this key of their scenarios, such as system.options.storage. The base has the value that comes first in the scenario file."`
	AllowDifferent bool     `help:"Compare although the runs differ in guarantee, size, rate, mode or topology."`
	Full           bool     `help:"Print all figures and the values of each run, not only the answer. Files, Markdown and HTML always have them."`
	layout.Output
}

// Help is what kong adds to the verb's help.
func (compareCommand) Help() string {
	return "Shows how the runs of the other sides differ from those of the base, and with what certainty. One run is one observation: a side needs four runs, and " +
		"with six a difference in any percentile can show. weir run --repeat 6 makes a series. A side is a folder, such as results/base; several folders, as in " +
		"r/1,r/2,r/3,r/4; or a pattern, as in 'r/base-*'. INVALID and interrupted runs are left out. " +
		"The exit code is 2 when the sides cannot be compared, else 0. With --fail-on regression it is 4 when a figure is worse, and 2 when there are too few runs to show one. " +
		"--strict makes it 4 also where a change is undecided. " +
		"--figure e2e.p99 selects the figures that count."
}

// The defaults of a comparison.
const (
	defaultAlpha = 0.05
	defaultBand  = 0.05
)

// run ends at the first signal.
func (c *compareCommand) run(ctx context.Context, e *env) Code {
	return e.interruptible(ctx, func() Code { return c.compare(e) })
}

// compare reads every folder before it writes anything.
func (c *compareCommand) compare(e *env) Code {
	o, err := c.options()
	if err := errors.Join(err, c.Check(e.outlet(), "a comparison")); err != nil {
		e.complainEach(err)
		return Usage
	}
	sides, ok := c.read(e)
	if !ok {
		return Usage
	}
	found, err := compare.Compare(sides, o)
	if err != nil {
		c.refuse(e, sides, o.Alpha, err)
		return Usage
	}
	found.Weir = buildinfo.Version()
	if code := e.printed("the comparison", c.print(e, found)); code != OK {
		return code
	}
	return c.code(e, found)
}

// options parses the flags and joins all errors.
func (c *compareCommand) options() (compare.Options, error) {
	o := compare.Options{Alpha: defaultAlpha, Band: defaultBand, AllowDifferent: c.AllowDifferent, Figures: c.Figure}
	var errs []error
	if c.Alpha != nil {
		v, err := level(*c.Alpha)
		o.Alpha, errs = v, append(errs, err)
	}
	if c.Band != nil {
		var ok bool
		if o.Band, ok = quantity.Share(*c.Band); !ok {
			errs = append(errs, fmt.Errorf("--band: %q is not a percentage (0 for no band, or below 100 such as 5%%)", *c.Band))
		}
	}
	if c.FailOn != nil && *c.FailOn != "regression" {
		errs = append(errs, fmt.Errorf("--fail-on: %q is not known (regression)", *c.FailOn))
	}
	if c.Strict && c.FailOn == nil {
		errs = append(errs, errors.New("--strict: makes --fail-on stricter (add --fail-on regression)"))
	}
	return o, errors.Join(errs...)
}

// refuse reports what makes the sides incomparable, and what would help.
func (c *compareCommand) refuse(e *env, sides []compare.Side, alpha float64, err error) {
	for _, err := range parts(err) {
		if errors.Is(err, compare.ErrFigure) {
			err = fmt.Errorf("--figure: %w", err)
		}
		if errors.Is(err, compare.ErrDifferent) {
			err = fmt.Errorf("%w (the same on all sides, or --allow-different)", err)
		}
		e.complain(err)
	}
	asked := view.Asked{Given: c.Sides, Alpha: alpha, Appends: e.appends, Flags: c.flags()}
	if c.By != nil {
		asked.By = *c.By
	}
	for _, line := range asked.Advice(sides, err) {
		e.say("%s", line)
	}
}

// flags returns the flags to compare the same sides again.
func (c *compareCommand) flags() (flags string) {
	if c.Alpha != nil {
		flags += " --alpha " + view.Quoted(*c.Alpha)
	}
	if c.AllowDifferent {
		flags += " --allow-different"
	}
	return flags
}

// appends reports whether weir run --append takes a folder.
func (e *env) appends(dir string) bool {
	_, err := series.Append(e.path(dir), dir)
	return err == nil
}

// print writes the comparison in the requested format.
func (c *compareCommand) print(e *env, found *compare.Comparison) error {
	parting := view.Parting{Given: c.Sides, Flags: c.flags(), Course: func(dir string) *view.Course {
		x, _, err := view.Load(e.path(dir), dir, view.Loading{Drawn: true})
		if err != nil {
			return nil // only its picture is missing: its figures were read
		}
		return x.Course
	}}
	if c.By != nil {
		parting.By = *c.By
	}
	if c.Out != nil {
		parting.Link = view.LinksFrom(*c.Out, e.path)
	}
	var screen func(io.Writer) error
	if !c.Full {
		screen = func(w io.Writer) error {
			return view.ComparisonScreen(found, parting).Write(w, view.MostAnswer, e.width(false), e.color(c.NoColor, false))
		}
	}
	return c.Write(e.outlet(), layout.Document{
		Title: "Comparison", JSON: found,
		HTML:     func(w io.Writer) error { return view.ComparisonHTML(w, found, c.Full, parting) },
		Show:     func(p *layout.Page) { view.Comparison(p, found, c.Full) },
		Conclude: func(p *layout.Page) { view.Conclusion(p, found, parting) },
		Screen:   screen,
	})
}

// code is the exit code. A gate that nothing could have closed is not a gate.
func (c *compareCommand) code(e *env, found *compare.Comparison) Code {
	if c.FailOn == nil {
		return OK
	}
	all := found.Tally()
	worse, undecided, open := all.Worse, all.NeedsRuns, all.NothingShown
	switch {
	case worse > 0:
		e.say("weir: regression: %s worse", quantity.Counted(worse, "figure is", "figures are"))
		return Missed
	case undecided > 0:
		return e.because(Usage, fmt.Errorf("--fail-on: no regression could be shown in %s, whatever the runs say (%s a side)",
			quantity.Counted(undecided, "figure", "figures"), quantity.Counted(found.MoreRuns(), "more run", "more runs")))
	case c.Strict && open > 0:
		e.say("weir: undecided: %s neither worse nor shown to be no worse; more runs decide (weir run --append DIR --repeat N)", quantity.Counted(open, "figure is", "figures are"))
		return Missed
	}
	return OK
}

// read reads the runs of all sides. It reports all errors; ok is then false.
func (c *compareCommand) read(e *env) (sides []compare.Side, ok bool) {
	ok = true
	for _, given := range c.Sides {
		side, err := e.place().Side(given, result.Loading{Totals: true})
		e.complainEach(err)
		ok = ok && err == nil
		sides = append(sides, side)
	}
	if !ok {
		return nil, false
	}
	if len(sides) < 2 && c.By == nil {
		e.complain(fmt.Errorf("compare: only one side (two or more: the base, and what is compared with it; or --by KEY, which parts the runs of a matrix)%s", view.Asked{Given: c.Sides}.PartedBy(sides)))
		return nil, false
	}
	if c.By == nil {
		return sides, true
	}
	var all []compare.Run
	for _, s := range sides {
		all = append(all, s.Runs...)
	}
	sides, err := compare.By(all, *c.By)
	if err != nil {
		e.complain(fmt.Errorf("--by: %w", err))
		return nil, false
	}
	return sides, true
}
