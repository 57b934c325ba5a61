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
	Option    []string     `sep:"none" placeholder:"NAME=VALUE" group:"System" help:"One of the driver's own options, which weir drivers NAME lists; may be repeated (none)."`
	Address   []string     `sep:"none" placeholder:"ADDRESS" group:"System" help:"Where the system is; may be repeated (default: the driver's, or where weir starts it)."`
	Most      *string      `placeholder:"RATE" help:"The highest rate to probe (default: none; the search goes on until a rate does not pass)."`
	Precision *string      `placeholder:"PERCENT" help:"How narrow the interval must be, relative to its lower end (1% to 100%; default: 10%)."`
	Retests   *string      `placeholder:"N" help:"How often each end of the interval is probed again (0 to 10; default: 2)."`
	Probes    *string      `placeholder:"N" help:"At most so many probes (1 to 200; default: 40)."`
	Longest   *string      `placeholder:"DURATION" help:"A probe goes on until its objectives are decided, up to this long (default: twelve times --measure where that is 10s or more, else --measure)."`
	Curve     *string      `placeholder:"N" help:"Afterwards, measure the latency at N even parts of the capacity (0 to 20; default: 0)."`
	Over      *string      `placeholder:"KEY=N,N,..." help:"A search for each of several numbers of producers, consumers, partitions, destinations or nodes, such as consumers=1,2,4,8. From four numbers on, fits the Universal Scalability Law (default: one search)."`
	Target    *string      `placeholder:"RATE" help:"A rate that you need: says how many it takes, up to twice what was measured (default: none)."`
	Resume    *string      `placeholder:"DIR" help:"Go on with the search in this folder, by its own plan. Leave out the scenario and its flags; --probes allows more probes."`
	Out       *string      `placeholder:"DIR" help:"Folder of the search, which must not exist (default: results/<time>-capacity)."`
	JSON      bool         `name:"json" help:"Print capacity.json on stdout, and everything else on stderr (default: off)."`
	Full      bool         `help:"At the end print all that the search came to, not only one screen (default: off)."`
	Quiet     bool         `help:"Nothing on stderr but errors: no live view (default: off)."`
	NoColor   bool         `help:"No colour, and plain lines instead of a live view (default: off)."`

	precedenceFlag `embed:""`
	wireFlag       `embed:""`
	gathering      `embed:""`

	keys *commandline.Keys
}

// Help is what weir capacity --help says before the flags.
func (*capacityCommand) Help() string {
	return "Finds the highest rate that keeps the objectives (--slo), as an interval: a rate that kept them and one that did not. " +
		"Each probe is a run with a result of its own. The first has the rate of the scenario (--rate). " +
		"The rate doubles until a probe does not pass, and then the interval is halved. " +
		"Both ends are probed again in a shuffled order, and the majority counts. A last run confirms the rate that passed.\n\n" +
		"The section search of a scenario file says the same as the flags of a search. " +
		"A probe goes on until its objectives about percentiles are decided, up to --longest. " +
		"Rates near the limit may stay undecided: the answer then names the rates around them.\n\n" +
		"A probe passes when it keeps every objective, loses nothing, and fails nothing. " +
		"Neither its backlog nor what is not yet confirmed may grow; in probes under 10 s only fast growth can be seen. " +
		"A probe that the generator or its host spoilt never counts against the system, nor does one that missed something while other programs used the host. " +
		"A system that weir starts is started anew for each probe.\n\n" +
		"Exit codes are those of weir run. They describe the search, not the probes: 4 when no rate passed, 5 when the search ended without an interval.\n\n" +
		"The flags of weir run that describe the scenario and the fleet, such as --driver, --rate and --fleet, work, too: weir run --help=all lists them."
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
	code = c.search(ctx, e, r, s, p.Report, h)
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
		err = errors.New("weir capacity: a search goes on with its file, so that cannot come from standard input (a scenario file)")
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
		return nil, errors.New("--resume: goes on with what the folder says (leave out the scenario and all its flags but --probes)")
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
