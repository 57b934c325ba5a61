package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// suiteCommand is `weir suite`.
type suiteCommand struct {
	List suiteList `cmd:"" help:"List the suites that weir has."`
	Show suiteShow `cmd:"" help:"Show the rows of a suite, or the table of one that was run."`
	Run  suiteRun  `cmd:"" help:"Run a suite: every row against every system."`
}

// suiteHelp is shared by the verbs.
const suiteHelp = "A suite repeats the experiments of an article. It holds their parameters as data, and the figures that the article printed. " +
	"A suite of yours is a YAML file: name its path, which ends in .yaml."

// suiteList is `weir suite list`.
type suiteList struct {
	NoColor bool `help:"No colour."`
}

// Help is shown below the verb's flags' heading.
func (*suiteList) Help() string { return suiteHelp }

// suiteShow is `weir suite show`.
type suiteShow struct {
	Name string `arg:"" placeholder:"SUITE" help:"A suite, its file, or the folder of one that was run."`

	layout.Output
}

// Help is shown below the verb's flags' heading.
func (*suiteShow) Help() string {
	return suiteHelp + " --json, --markdown, --html and -o are for the folder of a suite that was run. " +
		"weir serve DIR --publish OUT --markdown writes the page of each suite below DIR in Markdown, with pictures."
}

// suiteRun is `weir suite run`.
type suiteRun struct {
	Name    string  `arg:"" optional:"" placeholder:"SUITE" help:"A suite that weir suite list names, or its file."`
	Drivers *string `placeholder:"DRIVERS" help:"Only these drivers or systems of the suite, separated by commas; drivers that the suite does not have can be named, too (default: the suite's)."`
	Rows    *string `placeholder:"NAMES" help:"Only these rows, separated by commas (default: all)."`
	Scale   string  `default:"1" placeholder:"SCALE" help:"Shortens times and counts of messages by this factor, above 0 and at most 1. Every table says so (1)."`
	Out     *string `short:"o" placeholder:"DIR" help:"Folder of the suite, which must not exist (default: results/<time>-<name>)."`
	Resume  *string `placeholder:"DIR" help:"Go on with the suite in this folder, by its own plan. Leave out the name and the other flags."`
	Explain bool    `help:"Print the scenario of each run. Run nothing (default: off)."`
	JSON    bool    `name:"json" help:"Print suite.json on stdout, and everything else on stderr (default: off)."`
	Full    bool    `help:"At the end print the whole table, not only one screen (default: off)."`
	Quiet   bool    `help:"Nothing on stderr but errors: no live view (default: off)."`
	NoColor bool    `help:"No colour, and plain lines instead of a live view (default: off)."`
	Require *string `placeholder:"VERDICT" help:"Minimum verdict of each run for exit code 0, valid or suspect, as for weir run (default: suspect)."`

	precedenceFlag `embed:""`
}

// Help is shown below the verb's flags' heading.
func (*suiteRun) Help() string {
	return suiteHelp + " Each run has a result folder of its own in that of the suite, and suite.json has the table. " +
		"After Ctrl-C, --resume continues. Before the first run weir checks that it can start or reach every system.\n\n" +
		"Exit codes are those of weir run. The worst of all runs counts."
}

// suite loads a suite by its name, or from a file.
func (e *env) suite(name string) (*suite.Suite, error) {
	s, err := suite.Open(name, e.path(name))
	if err != nil {
		return nil, fmt.Errorf("weir suite: %w", err)
	}
	return s, nil
}

// run lists.
func (c *suiteList) run(_ context.Context, e *env) Code {
	p, err := view.Suites()
	if err != nil {
		return e.failed(err)
	}
	return unheard(e.show(p, c.NoColor))
}

// run shows a suite, or the table of a folder.
func (c *suiteShow) run(_ context.Context, e *env) Code {
	if err := c.Check(e.outlet(), "a suite"); err != nil {
		return e.refused(err)
	}
	if _, err := os.Stat(e.path(filepath.Join(c.Name, suite.FileReport))); err == nil {
		r, b, err := series.ReadSuite(e.Dir, c.Name)
		if err != nil {
			return e.refused(err)
		}
		x := view.SuiteReport{Report: r}
		return e.printed("the suite", c.Write(e.outlet(), layout.Document{
			JSON: json.RawMessage(b), HTML: x.HTML, Show: func(p *layout.Page) { p.Append(x.Page()) },
		}))
	}
	if c.JSON || c.Markdown || c.HTML || c.Out != nil {
		return e.refused(fmt.Errorf("--json, --markdown, --html and --out: %s has no %s (they are for the folder of a suite that was run)", c.Name, suite.FileReport))
	}
	s, err := e.suite(c.Name)
	if err != nil {
		return e.refused(err)
	}
	return unheard(e.show(view.SuitePlan(s), c.NoColor))
}

// run runs a suite.
func (c *suiteRun) run(ctx context.Context, e *env) Code {
	ctx, h := e.halt(ctx)
	defer h.cancel()
	e.quieten(c.Quiet)
	r := &runCommand{quiet: c.Quiet, noColor: c.NoColor, json: c.JSON, precedenceFlag: c.precedenceFlag}
	o := r.doing(e, h)
	o.Observe = func(run series.Run) series.Observer {
		if !c.Quiet {
			e.say("run %d of %d: %s", run.Number, run.Of, run.Scenario.Name)
		}
		return r.observe(e, h, run)
	}
	x, err := c.prepare(e, r, &o)
	if err != nil {
		return e.refused(err)
	}
	all := x.Scenarios()
	if c.Explain {
		return explain(e, all)
	}
	if code := e.enter(ctx, all, nil, gathering{}); code != OK {
		if code == Usage {
			e.say("weir: --rows runs other rows without it (weir suite show %s lists them)", view.Quoted(c.Name))
		}
		return code
	}
	if code := e.obtainable(ctx, all); code != OK {
		e.say("weir: --drivers runs the suite without a system (weir suite show %s lists them)", view.Quoted(c.Name))
		return code
	}
	if err := precedence(c.FIFO); err != nil {
		return e.refused(err)
	}
	s, err := series.New(o, x)
	if err != nil {
		return e.notBegun("suite", c.Out, err)
	}
	defer e.close(s)
	if code := e.gather(ctx, s); code != OK {
		return code
	}
	code := c.measure(ctx, e, r, s, x, h)
	report := view.SuiteReport{Report: x.Report}
	show := func(w io.Writer) error {
		return report.Screen(s.Dir(), c.Name).Write(w, view.MostAnswer, e.width(c.JSON), e.color(c.NoColor, c.JSON))
	}
	if c.Full {
		show = func(w io.Writer) error {
			p := report.Page()
			p.Gap()
			report.Ends(p, s.Dir(), c.Name)
			_, err := io.WriteString(w, e.text(c.NoColor).Page(p))
			return err
		}
	}
	return e.came(c.JSON, c.Quiet, x.Report, show, code)
}

// measure executes the runs of a suite.
func (c *suiteRun) measure(ctx context.Context, e *env, r *runCommand, s *series.Series, x *series.Suite, h *halting) Code {
	var codes []Code
	for row := range s.All(ctx, h.stop) {
		name := filepath.Base(row.Dir)
		code := r.heard(e, row, name)
		codes = append(codes, code)
		if row.Line != nil && row.Result != nil {
			if !c.Quiet {
				e.say("%s: %s", name, strings.ToUpper(row.Line.Verdict))
			}
			if says := disturbed(code, &row.Result.Verdict); says != "" {
				e.complain(fmt.Errorf("%s: %s", name, says))
			}
		}
		if h.asked(ctx) {
			codes = append(codes, Interrupted)
		}
		if slices.Contains(codes, Interrupted) {
			e.say("weir: %d of %d runs are done; weir suite run --resume %s continues", x.Done(), len(x.Scenarios()), s.Dir())
			break
		}
	}
	if err := s.Err(); err != nil {
		codes = append(codes, e.notBegun("suite", nil, err))
	}
	return worst(codes...)
}

// prepare plans the suite, or resumes the one in a folder. It has no side effects.
func (c *suiteRun) prepare(e *env, r *runCommand, o *series.Options) (x *series.Suite, err error) {
	if r.require, err = e.requirement(c.Require); err != nil {
		return nil, err
	}
	choice := suite.Choice{Drivers: chosen(c.Drivers), Rows: chosen(c.Rows)}
	if choice.Scale, err = suite.ParseScale(c.Scale); err != nil {
		return nil, fmt.Errorf("--scale: %w", err)
	}
	in, err := r.inputs(e)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Resume != nil && (c.Name != "" || c.Drivers != nil || c.Rows != nil || c.Out != nil || choice.Scale != 1):
		return nil, errors.New("--resume: continues what the folder says (leave out the name, --drivers, --rows, --scale and --out)")
	case c.Resume != nil:
		was, _, err := series.ReadSuite(e.Dir, *c.Resume)
		if err != nil {
			return nil, fmt.Errorf("--resume: %w", err)
		}
		o.Out = *c.Resume
		x, err := series.ResumeSuite(*o, in, was)
		return x, resumed(err)
	case c.Name == "":
		return nil, fmt.Errorf("weir suite run: which suite? (%s, or the path of a file)", strings.Join(suite.Names(), ", "))
	case c.Out != nil && *c.Out == "":
		return nil, errEmptyOut
	case c.Out != nil:
		o.Out = *c.Out
	}
	named, err := e.suite(c.Name)
	if err != nil {
		return nil, err
	}
	x, err = series.NewSuite(in, named, choice)
	if wrong := (*suite.ChoiceError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("--%w", wrong)
	}
	return x, err
}

// chosen splits a flag's value into words; nil if not given.
func chosen(text *string) []string {
	if text == nil {
		return nil
	}
	var all []string
	for word := range strings.SplitSeq(*text, ",") {
		all = append(all, strings.TrimSpace(word))
	}
	return all
}
