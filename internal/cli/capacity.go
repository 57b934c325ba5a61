package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/internal/deal"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/runs"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// capacityCommand is `weir capacity`.
type capacityCommand struct {
	File      string       `arg:"" optional:"" help:"Scenario file (none: what the flags say, else the defaults)."`
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
	Quiet     bool         `help:"Nothing on stderr but errors: no live view (default: off)."`
	NoColor   bool         `help:"No colour, and plain lines instead of a live view (default: off)."`

	gathering `embed:""`

	keys *keyFlags
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
		"The flags of weir run that describe the scenario and the fleet, such as --driver, --rate and --fleet, work, too: weir run --help lists them."
}

// files of a search's folder, beside those of its runs.
const (
	fileCapacity = "capacity.json"
	// Of result.FileScenario, what every probe has but its rate.
	mostCapacity = 4 << 20
)

// A hunt is one search for the capacity.
type hunt struct {
	study
	command *capacityCommand
	report  capacity.Report
	file    string // the scenario, "" for flags alone

	placement deal.Placement // of each run
}

// run searches.
func (c *capacityCommand) run(ctx context.Context, e *env) Code {
	h := &hunt{command: c, file: c.File, study: study{env: e, kind: "search", require: result.Suspect, quiet: c.Quiet, noColor: c.NoColor, json: c.JSON}}
	if err := h.prepare(); err != nil {
		faulty(e, err)
		return Usage
	}
	if s, err := h.scenario(); err == nil { // prepare has told what else is wrong
		all := []*scenario.Scenario{s}
		if err := refuseFleet(c.Fleet != nil, all); err != nil {
			e.complain(err)
			return Usage
		}
		var agents *runs.Fleet
		if c.Fleet != nil {
			agents = &runs.Fleet{Agents: *c.Fleet}
		}
		if err := runs.Enough(agents, all); err != nil {
			e.complain(err)
			return Usage
		}
		if c.On == nil {
			if code := e.obtainable(ctx, all); code != OK {
				return code
			}
		}
		if code := e.enter(ctx, all, nil, c.gathering); code != OK {
			return code
		}
	}
	if err := h.begin(); err != nil {
		e.complain(err)
		return Usage
	}
	if h.fleet != nil {
		signalled, stop := e.stoppable(ctx)
		err := h.fleet.Gather(signalled, h.placement)
		stop()
		if err != nil {
			return ungathered(e, err)
		}
		defer h.fleet.Close()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := &halting{signals: e.Signals, stop: make(chan struct{}), cancel: cancel}
	code := h.search(ctx, stop)
	if code == OK {
		code = h.curve(ctx, stop)
	}
	if err := h.store(); err != nil {
		e.complain(err)
		code = worst(code, Failed)
	}
	if err := h.answer(&h.report, h.told); err != nil {
		e.complain(fmt.Errorf("showing the result: %w", err))
		code = worst(code, Failed)
	}
	if code != OK {
		return code
	}
	switch a := h.report.Answer; {
	case a.Stop == capacity.NonePassed:
		return Missed
	case a.Stop == capacity.OutOfTries || a.PassPerS == 0:
		if !c.Quiet {
			e.say("weir: exit code %d: the search ended without an interval", Invalid)
		}
		return Invalid
	}
	return OK
}

// prepare reads and checks what is asked for. It touches nothing.
func (h *hunt) prepare() error {
	c := h.command
	if c.Resume != nil {
		return h.resume()
	}
	if c.File == "-" {
		return errors.New("weir capacity: the scenario is read for each probe, so it cannot come from standard input (a scenario file)")
	}
	s, err := h.scenario()
	if err != nil {
		return err
	}
	switch {
	case s.Load.Closed || s.Load.Rate == 0:
		return errors.New("--rate: a search needs a rate to begin with (a rate such as 1000/s)")
	case s.Mode == engine.Backlog || s.Mode == engine.Consume:
		return errors.New("--mode: a search needs a mode that sends at a rate (stream, produce, request)")
	case len(s.Objectives) == 0:
		return errors.New(`--slo: is missing: a search needs an objective to keep (such as --slo "e2e.p99 <= 10ms")`)
	}
	h.report = capacity.Report{Schema: capacity.Schema, Probes: []capacity.Probed{}, Plan: planned(s)}
	for _, o := range s.Objectives {
		h.report.Promise = append(h.report.Promise, o.String())
	}
	if most := h.report.Plan.MostPerS; most > 0 && most < h.report.Plan.FromPerS {
		return fmt.Errorf("--most: %q is not a rate from --rate on (%s or more)", s.Search.Most, report.Rate(h.report.Plan.FromPerS))
	}
	if l := s.Search.Longest; l > 0 && l < s.Measure {
		return fmt.Errorf("--longest: %v is shorter than measure (%v or more)", l, s.Measure)
	}
	if s.Search.Over.Of != "" && s.Search.Curve > 0 {
		return errors.New("--curve: is of one search, and --over makes several (leave one of them out)")
	}
	// Each number goes together with the rest of the scenario.
	for _, n := range h.report.Numbers() {
		if s, err = h.scenario(h.varied(n)...); err != nil {
			return err
		}
		if err := h.fits(s); err != nil {
			return err
		}
	}
	return nil
}

// Of a search, where neither the scenario nor a flag says.
const (
	usualPrecision = 0.1
	usualRetests   = 2
	usualProbes    = 40
	usualLonger    = 12 // times measure, of the longest probe
)

// firstLook is how much of a run's window passes before weir looks whether its objectives
// are decided.
const firstLook = 10 * time.Second

// planned is the plan of the search that a scenario asks for.
func planned(s *scenario.Scenario) capacity.Planned {
	p := capacity.Planned{
		FromPerS: s.Load.Rate.PerSecond(), MostPerS: s.Search.Most.PerSecond(), TargetPerS: s.Search.Target.PerSecond(),
		Precision: cmp.Or(s.Search.Precision, usualPrecision), Retests: usualRetests, Probes: cmp.Or(s.Search.Probes, usualProbes),
		Curve: s.Search.Curve, Seed: s.Seed,
	}
	if s.Search.Retests != nil {
		p.Retests = *s.Search.Retests
	}
	longest := s.Search.Longest
	if longest == 0 && s.Measure >= firstLook {
		longest = min(usualLonger*s.Measure, scenario.MaxDuration-s.WarmUp)
	}
	decidable := slices.ContainsFunc(s.Objectives, func(o judge.Objective) bool { _, ok := o.Percentile(); return ok })
	if longest > s.Measure && s.Measure > 0 && !s.Until && decidable {
		p.LongestS = longest.Seconds()
	}
	if s.Search.Over.Of != "" {
		p.Over = &capacity.Varied{Of: s.Search.Over.Of, Numbers: s.Search.Over.Values}
	}
	return p
}

// fits refuses a scenario that this host cannot run.
func (h *hunt) fits(s *scenario.Scenario) error {
	h.placement = s.Placement
	r := &runCommand{parties: parties{gathering: h.command.gathering}}
	if err := r.checkFleet(h.env, []*scenario.Scenario{s}); err != nil {
		return err
	}
	var err error
	if h.fleet == nil {
		if h.fleet, err = r.fleetOf(h.env); err != nil {
			return err
		}
	}
	if h.fleet != nil {
		return nil // the host that starts the servers knows
	}
	return runs.Fits(s)
}

// varied has a scenario take a number of what is varied.
func (h *hunt) varied(n int) []scenario.Override {
	over := h.report.Plan.Over
	if over == nil {
		return nil
	}
	return []scenario.Override{{Flag: "--over", Path: scenario.Over{Of: over.Of}.Path(), Value: strconv.Itoa(n)}}
}

// asked are the flags of the search, as the section search of a scenario.
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

// scenario resolves that of one run: what the file and the flags say, but for some keys.
func (h *hunt) scenario(others ...scenario.Override) (*scenario.Scenario, error) {
	c := h.command
	r := &runCommand{File: h.file, Option: c.Option, Address: c.Address, keys: c.keys, instead: append(c.asked(), others...), searches: true}
	r.Fleet = c.Fleet
	all, err := r.resolve(h.env)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 || all[0].Repeat != 1 {
		return nil, errors.New("weir capacity: searches with one scenario (leave out scenarios, matrix and repeat)")
	}
	h.files = r.read
	return all[0], nil
}

// resume reads the folder of a search that was stopped.
func (h *hunt) resume() error {
	c := h.command
	dir := *c.Resume
	others := *c
	others.Probes = nil
	if c.File != "" || c.Out != nil || len(others.asked()) > 0 || len(c.Option)+len(c.Address)+len(c.keys.overrides()) > 0 {
		return errors.New("--resume: goes on with what the folder says (leave out the scenario and all its flags but --probes)")
	}
	_, err := h.kept(dir, fileCapacity, h.kind, mostCapacity, &h.report, capacity.Schema)
	if p := h.report.Plan; err == nil && !(p.FromPerS > 0 && p.Precision >= 0.01 && p.Precision <= 1 && p.Probes >= 1 && p.Probes <= capacity.MostProbes && p.Retests >= 0 && p.Retests <= 10 && p.Curve >= 0 && p.Curve <= 20 && p.LongestS >= 0 && p.LongestS <= scenario.MaxDuration.Seconds()) {
		err = fmt.Errorf("reading %s: its plan is out of bounds", filepath.Join(dir, fileCapacity))
	}
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	h.dir, h.file = dir, filepath.Join(dir, result.FileScenario)
	more := 0
	for _, n := range h.report.Numbers() {
		s, err := h.scenario(h.varied(n)...)
		if err != nil {
			return err
		}
		if err := h.fits(s); err != nil {
			return err
		}
		if c.Probes == nil {
			continue
		}
		if had := h.report.Plan.Probes; s.Search.Probes <= had {
			return fmt.Errorf("--probes: %d is not more than this search may have (%d to %d)", s.Search.Probes, had+1, capacity.MostProbes)
		}
		more = s.Search.Probes
	}
	if more > 0 {
		h.report.Plan.Probes, h.report.Curve = more, nil // the curve is of the capacity until then
	}
	return nil
}

// begin makes the folder of a search, unless it goes on in one.
func (h *hunt) begin() error {
	if h.dir != "" {
		return nil
	}
	s, err := h.scenario()
	if err != nil {
		return err
	}
	if err := h.create(h.command.Out, "capacity"); err != nil {
		return err
	}
	if err := h.keep(result.FileScenario, s.YAML()); err != nil {
		return err
	}
	return h.store()
}

// store writes capacity.json: whole, or as it was before.
func (h *hunt) store() error {
	h.report.Sum()
	return h.document(fileCapacity, &h.report)
}

// search probes until each search is over.
func (h *hunt) search(ctx context.Context, stop *halting) Code {
	for _, n := range h.report.Numbers() {
		for {
			rate, why, more := h.report.Again(n).Next()
			if !more {
				break
			}
			name := fmt.Sprintf("%03d-%s", len(h.report.Probes)+1, strings.ReplaceAll(plainRate(rate), "/s", ""))
			if n > 0 {
				name += fmt.Sprintf("-%d-%s", n, h.report.Plan.Over.Of)
			}
			p, code := h.probe(ctx, stop, n, rate, why, name)
			if p == nil {
				return code
			}
			h.report.Probes = append(h.report.Probes, *p)
			if err := h.store(); err != nil {
				h.complain(err)
				return Failed
			}
		}
	}
	return OK
}

// curve measures the latency at even parts of the capacity.
func (h *hunt) curve(ctx context.Context, stop *halting) Code {
	n, most := h.report.Plan.Curve, h.report.Answer.PassPerS
	if most == 0 {
		return OK
	}
	for len(h.report.Curve) < n {
		i := len(h.report.Curve) + 1
		rate := capacity.Part(most, i, n)
		p, code := h.probe(ctx, stop, 0, rate, purposeCurve, fmt.Sprintf("curve-%02d", i))
		if p == nil {
			return code
		}
		h.report.Curve = append(h.report.Curve, *p)
		if err := h.store(); err != nil {
			h.complain(err)
			return Failed
		}
	}
	return OK
}

// purposeCurve is that of a point of the curve, which is as long as the scenario says.
const purposeCurve capacity.Purpose = "curve"

// plainRate writes a rate as a flag takes it.
func plainRate(perSecond float64) string {
	return strconv.FormatFloat(perSecond, 'f', -1, 64) + "/s"
}

// probe does one run, with n of what is varied. Without a probe, the code says why the
// search ends.
func (h *hunt) probe(ctx context.Context, stop *halting, n int, rate float64, why capacity.Purpose, name string) (*capacity.Probed, Code) {
	other := append(h.varied(n), scenario.Override{Flag: "--rate", Path: "load.rate", Value: plainRate(rate)})
	if l := h.report.Plan.LongestS; l > 0 && why != purposeCurve {
		other = append(other,
			scenario.Override{Flag: "--longest", Path: "measure", Value: time.Duration(l * float64(time.Second)).String()},
			scenario.Override{Flag: "--longest", Path: "until_decided", Value: "yes"})
	}
	s, err := h.scenario(other...)
	if err != nil {
		faulty(h.env, err)
		return nil, Usage
	}
	s.Search = scenario.Search{}
	name = h.free(name)
	out, codes := h.once(ctx, stop, s, name, nil)
	if out == nil || out.Result == nil {
		return nil, worst(codes...)
	}
	for _, err := range wrong(out) {
		h.complain(fmt.Errorf("probe %s: %w", name, err))
	}
	if out.Result.Run.Interrupted || stop.asked(ctx) {
		return nil, Interrupted
	}
	if out.Err != nil || out.Books != nil || out.Written != nil {
		return nil, Failed
	}
	if out.Gone != nil {
		return nil, Unreachable
	}
	p := &capacity.Probed{N: n, RatePerS: rate, Purpose: why, Dir: name}
	j, because := capacity.Judge(out.Result, out.Broken)
	if p.Judgement, p.Why = j.String(), because; j == capacity.Passed {
		p.Why = ""
	}
	p.Measured(out.Result)
	if !h.command.Quiet {
		h.say("%s", probeLine(p))
	}
	return p, OK
}
