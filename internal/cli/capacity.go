package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/internal/commandline"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// capacityCommand is `weir capacity`.
type capacityCommand struct {
	File      string       `arg:"" optional:"" help:"Scenario file (default: none, only flags and defaults)."`
	Keys      kong.Plugins `embed:""`
	Option    []string     `sep:"none" placeholder:"NAME=VALUE" group:"System" help:"An option of the driver (weir drivers NAME lists them); may be repeated (default: none)."`
	Address   []string     `sep:"none" placeholder:"ADDRESS" group:"System" help:"Address of a server; may be repeated (default: the driver's, or that of the server that weir starts)."`
	Most      *string      `placeholder:"RATE" help:"Highest rate to probe (default: none; the search continues until a rate does not pass)."`
	Precision *string      `placeholder:"PERCENT" help:"How narrow the interval must be, relative to its lower end (1% to 100%; default: 10%)."`
	Retests   *string      `placeholder:"N" help:"How often each end of the interval is probed again (0 to 10; default: 2)."`
	Probes    *string      `placeholder:"N" help:"Maximum number of probes (1 to 200; default: 40)."`
	Longest   *string      `placeholder:"DURATION" help:"Maximum length of a probe, which ends when its objectives are decided (default: twelve times --measure where that is 10s or more, else --measure)."`
	Curve     *string      `placeholder:"N" help:"Afterwards, measure the latency at N rates, in equal steps up to the capacity (0 to 20; default: 0)."`
	Over      *string      `placeholder:"KEY=N,N,..." help:"Search once for each of several numbers of producers, consumers, partitions, destinations or nodes, such as consumers=1,2,4,8. With four numbers or more, fit the Universal Scalability Law (default: one search)."`
	Target    *string      `placeholder:"RATE" help:"Rate that you need: print how many of --over it takes, up to twice the largest number measured (default: none)."`
	Resume    *string      `placeholder:"DIR" help:"Continue the search in this folder, by its own plan. Leave out the scenario and its flags; --probes allows more probes."`
	Out       *string      `placeholder:"DIR" help:"Folder of the search, which must not exist (default: results/<time>-capacity)."`
	JSON      bool         `name:"json" help:"Print capacity.json on stdout, and everything else on stderr (default: off)."`
	Full      bool         `help:"Print the whole result at the end, not only one screen (default: off)."`
	Quiet     bool         `help:"Print only errors on stderr: no live view (default: off)."`
	NoColor   bool         `help:"Use no colour, and plain lines instead of a live view (default: off)."`

	precedenceFlag `embed:""`
	wireFlag       `embed:""`
	gathering      `embed:""`

	keys *commandline.Keys
}

// Help is what weir capacity --help says before the flags.
func (*capacityCommand) Help() string {
	return "Finds the highest rate that keeps the objectives (--slo), as an interval: a rate that kept them and one that did not. " +
		"Each probe is a run with a result of its own. The first has the rate of the scenario (--rate). " +
		"The rate doubles until a probe fails; then the interval is halved. " +
		"Both ends are probed again in a shuffled order, and the majority counts. A last run confirms the rate that passed.\n\n" +
		"The section search of a scenario file has the same settings as these flags. " +
		"A probe runs until its objectives about percentiles are decided, --longest at most. " +
		"Rates near the limit may stay undecided: the answer then names the rates around them.\n\n" +
		"A probe passes when it keeps every objective, loses nothing, and fails nothing. " +
		"Neither its backlog nor the number of unconfirmed messages may grow; a probe shorter than 10 s shows only fast growth. " +
		"A probe never counts against the system if the generator or its host disturbed it, or if it failed while other programs used the host. " +
		"If weir starts the system, it starts a new one for each probe.\n\n" +
		"Exit codes are those of weir run. They describe the search, not the probes: 4 when no rate passed, 5 when the search ended without an interval.\n\n" +
		"The flags of weir run that describe the scenario and the fleet, such as --driver, --rate and --fleet, work here too: weir run --help=all lists them."
}

// run searches.
func (c *capacityCommand) run(ctx context.Context, e *env) (code Code) {
	ctx, h := e.halt(ctx)
	defer h.cancel()
	e.quieten(c.Quiet)
	r := &runCommand{
		File: c.File, Option: c.Option, Address: c.Address, keys: c.keys, parties: parties{gathering: c.gathering}, read: map[string][]byte{},
		quiet: c.Quiet, noColor: c.NoColor, json: c.JSON, require: result.Suspect, precedenceFlag: c.precedenceFlag,
	}
	var err error
	if r.wire, err = c.wireFlag.asked(); err != nil {
		return e.refused(err)
	}
	if err := r.byHosts(e); err != nil {
		return e.refused(err)
	}
	c.gathering = r.gathering
	o := r.doing(e, h)
	p, err := c.prepare(e, r, &o)
	if err != nil {
		return e.refused(err)
	}
	if err := series.Fits(o.Fleet, p.Scenarios()); err != nil {
		return e.fail(err)
	}
	if c.On == nil {
		if code := e.obtainable(ctx, p.Scenarios()); code != OK {
			return code
		}
	}
	if code := e.enter(ctx, p.Scenarios(), nil, c.gathering); code != OK {
		return code
	}
	if err := precedence(c.FIFO); err != nil {
		return e.refused(err)
	}
	s, err := series.New(o, p)
	if err != nil {
		return e.notBegun("search", c.Out, err)
	}
	defer e.close(s)
	down, code := c.bring(ctx, e, c.Quiet)
	if code != OK {
		return code
	}
	defer func() { code = worst(code, down()) }()
	if code := e.gather(ctx, s); code != OK {
		return code
	}
	if code = c.search(ctx, e, r, s, p.Report, h); code != OK && len(p.Report.Probes) == 0 {
		return code // nothing was searched
	}
	came := view.NewSearch(s.Dir(), p.Report, p.Scenarios()[0].Measure)
	show := func(w io.Writer) error {
		return came.Screen().Write(w, view.MostAnswer, e.width(c.JSON), false)
	}
	if c.Full {
		show = func(w io.Writer) error {
			page := new(layout.Page)
			came.Write(page)
			_, err := io.WriteString(w, layout.Terminal(e.width(c.JSON), false).Page(page))
			return err
		}
	}
	if code = e.came(c.JSON, c.Quiet, p.Report, show, code); code != OK {
		return code
	}
	switch a := p.Report.Answer; {
	case a.Stop == capacity.NonePassed:
		return Missed
	case a.Stop == capacity.OutOfTries || a.Stop == capacity.Doubtful || a.PassPerS == 0:
		if !c.Quiet {
			e.say("weir: exit code %d: the search ended without an interval", Invalid)
		}
		return Invalid
	}
	return OK
}

// search executes the runs of a search. The code is OK if it completed.
func (c *capacityCommand) search(ctx context.Context, e *env, r *runCommand, s *series.Series, found *capacity.Report, h *halting) Code {
	code := OK
	for o := range s.All(ctx, h.stop) {
		switch deserved := r.heard(e, o, "probe "+filepath.Base(o.Dir)); {
		case o.Probed == nil:
			code = deserved
		case !c.Quiet:
			e.say("%s", view.ProbeLine(found, o.Probed))
		}
		if h.asked(ctx) {
			code = worst(code, Interrupted)
			break
		}
	}
	if err := s.Err(); err != nil {
		code = worst(code, e.notBegun("search", nil, err))
	}
	return code
}

// prepare plans the search, or resumes the one in a folder, and sets its folder and fleet. It has no side
// effects.
func (c *capacityCommand) prepare(e *env, r *runCommand, o *series.Options) (p *series.Search, err error) {
	switch {
	case c.Resume != nil:
		o.Out = *c.Resume
		p, err = c.resume(e, r, *o)
	case c.File == "-":
		err = errors.New("weir capacity: a search continues with its file, so that cannot come from standard input (a scenario file)")
	case c.Out != nil && *c.Out == "":
		err = errEmptyOut
	default:
		if c.Out != nil {
			o.Out = *c.Out
		}
		var in scenario.Inputs
		if in, err = r.input(e); err == nil {
			in.Overrides = append(in.Overrides, c.asked()...)
			p, err = series.NewSearch(in)
		}
	}
	if errors.Is(err, series.ErrSeveral) {
		err = fmt.Errorf("weir capacity: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if err := r.checkFleet(e, p.Scenarios()); err != nil {
		return nil, err
	}
	if err := r.splits(p.Scenarios()); err != nil {
		return nil, err
	}
	o.Fleet, err = r.fleetOf(e) // open a meeting place only for a search that can run
	return p, err
}

// resume resumes the search in a folder.
func (c *capacityCommand) resume(e *env, r *runCommand, o series.Options) (*series.Search, error) {
	others := *c
	others.Probes = nil
	if c.File != "" || c.Out != nil || len(others.asked()) > 0 || len(c.Option)+len(c.Address)+len(c.keys.Overrides()) > 0 {
		return nil, errors.New("--resume: continues what the folder says (leave out the scenario and all its flags but --probes)")
	}
	was, err := series.ReadSearch(e.Dir, *c.Resume)
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	in, err := r.inputs(e)
	if err != nil {
		return nil, err
	}
	in.Overrides = c.asked()
	p, err := series.ResumeSearch(o, in, was)
	return p, resumed(err)
}

// asked returns the search flags as keys of a scenario's search section.
func (c *capacityCommand) asked() []scenario.Override {
	var all []scenario.Override
	for _, x := range []struct {
		value *string
		name  string
	}{{c.Most, "most"}, {c.Precision, "precision"}, {c.Retests, "retests"}, {c.Probes, "probes"}, {c.Longest, "longest"}, {c.Curve, "curve"}, {c.Target, "target"}} {
		if x.value != nil {
			all = append(all, scenario.Override{Flag: "--" + x.name, Path: "search." + x.name, Value: *x.value})
		}
	}
	if c.Over != nil {
		value := *c.Over
		if key, numbers, two := strings.Cut(value, "="); two {
			value = "{" + key + ": [" + numbers + "]}"
		}
		all = append(all, scenario.Override{Flag: "--over", Path: "search.over", Value: value})
	}
	return all
}
