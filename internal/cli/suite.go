package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/layout"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/runs"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/suite"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// suiteCommand is `weir suite`.
type suiteCommand struct {
	List suiteList `cmd:"" help:"List the suites that weir has."`
	Show suiteShow `cmd:"" help:"Show the rows of a suite, or the table of one that was run."`
	Run  suiteRun  `cmd:"" help:"Run a suite: every row against every system."`
}

// suiteHelp is common to the verbs.
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
	Name    string `arg:"" placeholder:"SUITE" help:"A suite, its file, or the folder of one that was run."`
	JSON    bool   `name:"json" help:"Of a folder: print suite.json on stdout."`
	NoColor bool   `help:"No colour."`
}

// Help is shown below the verb's flags' heading.
func (*suiteShow) Help() string { return suiteHelp }

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
	Quiet   bool    `help:"Nothing on stderr but errors: no live view (default: off)."`
	NoColor bool    `help:"No colour, and plain lines instead of a live view (default: off)."`
	Require *string `placeholder:"VERDICT" help:"The least verdict of each run with which weir exits with 0, valid or suspect, as for weir run (default: suspect)."`
}

// Help is shown below the verb's flags' heading.
func (*suiteRun) Help() string {
	return suiteHelp + " Each run has a result folder of its own in that of the suite, and suite.json has the table. " +
		"After Ctrl-C, --resume goes on. Before the first run weir checks that it can start or reach every system.\n\n" +
		"Exit codes are those of weir run. The worst of all runs counts."
}

// files of a suite's folder, beside those of its runs.
const (
	fileSuite     = "suite.yaml"
	fileSuiteJSON = "suite.json"
	mostSuite     = 16 << 20 // bytes of suite.json
)

// suite reads one by its name, or from a file.
func (e *env) suite(name string) (*suite.Suite, error) {
	ext := strings.ToLower(filepath.Ext(name))
	if ext != ".yaml" && ext != ".yml" {
		s, err := suite.Named(name)
		if err != nil {
			return nil, fmt.Errorf("weir suite: %w", err)
		}
		return s, nil
	}
	b, err := userfile.Read(e.path(name), scenario.MaxFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("weir suite: %s: there is no such file (%s, or the path of a file)", name, strings.Join(suite.Names(), ", "))
		}
		return nil, fmt.Errorf("reading the suite: %w", err)
	}
	return suite.Parse(name, b)
}

// run lists.
func (c *suiteList) run(_ context.Context, e *env) Code {
	p := new(layout.Page)
	t := layout.Listing("suite", "rows", "systems", "article")
	for _, name := range suite.Names() {
		s, err := suite.Named(name)
		if err != nil {
			e.complain(err)
			return Failed
		}
		t.Row(s.Name, strconv.Itoa(len(s.Rows)), strconv.Itoa(len(s.Systems)), s.Title)
	}
	p.Table(t)
	p.Gap()
	p.Say("weir suite show NAME lists the rows of one")
	if err := e.show(p, c.NoColor); err != nil {
		return Failed // there is no reader to tell
	}
	return OK
}

// run shows a suite, or the table of a folder.
func (c *suiteShow) run(_ context.Context, e *env) Code {
	var p *layout.Page
	if _, err := os.Stat(e.path(filepath.Join(c.Name, fileSuiteJSON))); err == nil {
		r, b, err := e.suiteReport(c.Name)
		if err != nil {
			e.complain(err)
			return Usage
		}
		if c.JSON {
			if _, err := e.Stdout.Write(b); err != nil {
				return Failed // there is no reader to tell
			}
			return OK
		}
		p = r.Page()
	} else {
		if c.JSON {
			e.complain(errors.New("--json: is for the folder of a suite that was run (leave it out)"))
			return Usage
		}
		s, err := e.suite(c.Name)
		if err != nil {
			faulty(e, err)
			return Usage
		}
		p = s.Page()
	}
	if err := e.show(p, c.NoColor); err != nil {
		return Failed // there is no reader to tell
	}
	return OK
}

// suiteReport reads the suite.json of a folder.
func (e *env) suiteReport(dir string) (*suite.Report, []byte, error) {
	r := new(suite.Report)
	b, err := e.kept(dir, fileSuiteJSON, "suite", mostSuite, r, suite.Schema)
	return r, b, err
}

// An experiment is a suite on its way.
type experiment struct {
	study
	command *suiteRun
	suite   *suite.Suite
	items   []suite.Item
	report  *suite.Report
}

// run runs a suite.
func (c *suiteRun) run(ctx context.Context, e *env) Code {
	x := &experiment{command: c, study: study{env: e, kind: "suite", quiet: c.Quiet, noColor: c.NoColor, json: c.JSON}}
	var err error
	if x.require, err = e.requirement(c.Require); err != nil {
		e.complain(err)
		return Usage
	}
	if err := x.prepare(); err != nil {
		faulty(e, err)
		return Usage
	}
	var all []*scenario.Scenario
	for _, i := range x.items {
		all = append(all, i.Scenario)
	}
	if c.Explain {
		return explain(e, all)
	}
	if code := e.enter(ctx, all, nil, gathering{}); code != OK {
		if code == Usage {
			e.say("weir: --rows runs other rows without it (weir suite show %s lists them)", report.Quoted(c.Name))
		}
		return code
	}
	if code := e.obtainable(ctx, all); code != OK {
		e.say("weir: --drivers runs the suite without a system (weir suite show %s lists them)", report.Quoted(c.Name))
		return code
	}
	if err := x.begin(); err != nil {
		e.complain(err)
		return Usage
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := &halting{signals: e.Signals, stop: make(chan struct{}), cancel: cancel}
	var codes []Code
	for n := range x.items {
		item := &x.items[n]
		if x.report.Done(item) {
			continue
		}
		if !c.Quiet {
			e.say("run %d of %d: %s", n+1, len(x.items), item.Name())
		}
		code := x.measure(ctx, stop, item)
		codes = append(codes, code)
		if err := x.store(); err != nil {
			e.complain(err)
			codes = append(codes, Failed)
			break
		}
		if stop.asked(ctx) {
			codes = append(codes, Interrupted)
		}
		if slices.Contains(codes, Interrupted) {
			e.say("weir: %d of %d runs are done; weir suite run --resume %s goes on", x.done(), len(x.items), x.dir)
			break
		}
	}
	if err := x.conclude(); err != nil {
		e.complain(fmt.Errorf("showing the result: %w", err))
		codes = append(codes, Failed)
	}
	return worst(codes...)
}

// done counts the runs with figures.
func (x *experiment) done() (n int) {
	for i := range x.items {
		if x.report.Done(&x.items[i]) {
			n++
		}
	}
	return n
}

// prepare reads and checks what is asked for. It touches nothing.
func (x *experiment) prepare() error {
	c := x.command
	scale, err := scaleOf(c.Scale)
	choice := suite.Choice{Drivers: chosen(c.Drivers), Rows: chosen(c.Rows), Scale: scale}
	switch {
	case err != nil:
		return err
	case c.Resume != nil && (c.Name != "" || c.Drivers != nil || c.Rows != nil || c.Out != nil || scale != 1):
		return errors.New("--resume: goes on with what the folder says (leave out the name, --drivers, --rows, --scale and --out)")
	case c.Resume != nil:
		if x.report, _, err = x.suiteReport(*c.Resume); err != nil {
			return fmt.Errorf("--resume: %w", err)
		}
		x.dir, choice = *c.Resume, suite.Choice{Drivers: x.report.Drivers, Rows: x.report.Chosen, Scale: x.report.Scale}
		if !(choice.Scale > 0 && choice.Scale <= 1) {
			return fmt.Errorf("--resume: %s: its scale is out of bounds", filepath.Join(x.dir, fileSuiteJSON))
		}
		if x.suite, err = x.env.suite(filepath.Join(x.dir, fileSuite)); err != nil {
			return err
		}
	case c.Name == "":
		return fmt.Errorf("weir suite run: which suite? (%s, or the path of a file)", strings.Join(suite.Names(), ", "))
	default:
		if x.suite, err = x.env.suite(c.Name); err != nil {
			return err
		}
	}
	dir, err := filepath.Abs(x.Dir)
	if err != nil {
		return fmt.Errorf("finding the working folder: %w", err)
	}
	if x.items, err = x.suite.Plan((&runCommand{}).inputs(x.env, dir), choice); err != nil {
		return err
	}
	for _, i := range x.items {
		if err := runs.Fits(i.Scenario); err != nil {
			return fmt.Errorf("%s: %w", i.Name(), err)
		}
	}
	if x.report == nil {
		x.report = x.suite.Begin(choice, len(x.items))
		x.report.Weir, x.report.StartedAt = buildinfo.Version(), time.Now().UTC().Format(time.RFC3339)
	}
	return nil
}

// chosen are the words of a flag; nil where it is not given.
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

// scaleOf reads --scale.
func scaleOf(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(v >= 0.0001 && v <= 1) {
		return 0, fmt.Errorf("--scale: %q does not fit (0.0001 to 1, such as 0.1)", text)
	}
	return v, nil
}

// begin makes the folder of a suite, unless it goes on in one.
func (x *experiment) begin() error {
	if x.dir != "" {
		return nil
	}
	if err := x.create(x.command.Out, x.suite.Name); err != nil {
		return err
	}
	if err := x.keep(fileSuite, x.suite.Text); err != nil {
		return err
	}
	return x.store()
}

// store writes suite.json and the page: each whole, or as it was before.
func (x *experiment) store() error {
	if err := x.document(fileSuiteJSON, x.report); err != nil {
		return err
	}
	var page bytes.Buffer
	html := layout.HTML{Title: "suite " + x.suite.Name, Schema: result.SchemaReport, Footer: "This page is a picture of suite.json. The folder of each run has a page of its own."}
	if err := html.Write(&page, x.report.Drawn()); err != nil {
		return fmt.Errorf("writing %s: %w", result.FileReport, err)
	}
	return x.keep(result.FileReport, page.Bytes())
}

// measure does one run, and adds what it came to. One that was interrupted is left to be
// done again: its folder stays.
func (x *experiment) measure(ctx context.Context, stop *halting, item *suite.Item) Code {
	name := x.free(item.Name())
	out, codes := x.once(ctx, stop, item.Scenario, name, item.Percentiles())
	switch {
	case out == nil:
		return worst(codes...)
	case out.Result == nil:
		code := worst(codes...)
		if code != Interrupted {
			x.report.Add(item, item.Failed(strings.ReplaceAll(out.Err.Error(), "\n", "; ")))
		}
		return code
	}
	var told []string
	for _, err := range wrong(out) {
		x.complain(fmt.Errorf("%s: %w", name, err))
		told = append(told, err.Error())
	}
	if out.Result.Run.Interrupted {
		return worst(append(codes, Interrupted)...)
	}
	line := item.Measured(out.Result, &out.Entry.Around, name, x.report.Scale)
	line.Why = strings.Join(told, "; ")
	x.report.Add(item, line)
	if !x.command.Quiet {
		x.say("%s: %s", name, strings.ToUpper(line.Verdict))
	}
	code := worst(codes...)
	if says := disturbed(code, &out.Result.Verdict); says != "" {
		x.complain(fmt.Errorf("%s: %s", name, says))
	}
	return code
}

// conclude prints the table.
func (x *experiment) conclude() error {
	return x.answer(x.report, func() string {
		return fmt.Sprintf("%s\n%swritten to %s, with a folder for each run\n", x.text(x.noColor).Page(x.report.Page()), x.ends(), x.dir)
	})
}

// ends says what the runs came to, and which command helps most after them.
func (x *experiment) ends() string {
	counts, doubted := map[string]int{}, map[string]string{} // by verdict: how many, and the first's folder
	for _, l := range x.report.Rows {
		if l.Verdict == "" {
			continue
		}
		if counts[l.Verdict]++; counts[l.Verdict] == 1 {
			doubted[l.Verdict] = filepath.Join(x.dir, l.Dir)
		}
	}
	var says []string
	command := "weir suite show " + report.Quoted(x.dir)
	if x.report.Scale != 1 && x.command.Name != "" {
		command = "weir suite run " + report.Quoted(x.command.Name) + "  # as long as the article's runs"
	}
	for _, v := range []result.Status{result.Valid, result.Suspect, result.Invalid} {
		word := string(v)
		if counts[word] == 0 {
			continue
		}
		says = append(says, fmt.Sprintf("%d %s", counts[word], strings.ToUpper(word)))
		if v != result.Valid {
			command = "weir report " + report.Quoted(doubted[word]) + "  # says why"
		}
	}
	if len(x.report.Rows) < x.report.Planned {
		command = "weir suite run --resume " + report.Quoted(x.dir) + "  # does the rest"
	}
	return fmt.Sprintf("%-12s%s\n%-12s%s\n", "runs", cmp.Or(strings.Join(says, ", "), "none with figures"), "next", command)
}
