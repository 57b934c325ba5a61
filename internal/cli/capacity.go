package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/capacity"
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
	Precision string       `default:"10%" placeholder:"PERCENT" help:"How narrow the interval must be, relative to its lower end (1% to 100%)."`
	Retests   int          `default:"2" placeholder:"N" help:"How often each end of the interval is probed again (0 to 10)."`
	Probes    int          `default:"40" placeholder:"N" help:"At most so many probes (1 to 200)."`
	Curve     int          `placeholder:"N" help:"Afterwards, measure the latency at N even parts of the capacity (0 to 20; default: 0)."`
	Resume    *string      `placeholder:"DIR" help:"Go on with the search in this folder, by its own plan. Leave out the scenario and its flags."`
	Out       *string      `placeholder:"DIR" help:"Folder of the search, which must not exist (default: results/<time>-capacity)."`
	JSON      bool         `name:"json" help:"Print capacity.json on stdout, and everything else on stderr (default: off)."`
	Quiet     bool         `help:"Nothing on stderr but errors: no live view (default: off)."`
	NoColor   bool         `help:"No colour, and plain lines instead of a live view (default: off)."`

	keys *keyFlags
}

// Help is what weir capacity --help says before the flags.
func (*capacityCommand) Help() string {
	return "Finds the highest rate that keeps the objectives (--slo), as an interval: a rate that kept them and one that did not. " +
		"Each probe is a run with a result of its own. The first has the rate of the scenario (--rate). " +
		"The rate doubles until a probe does not pass, and then the interval is halved. " +
		"Both ends are probed again in a shuffled order, and the majority counts. A last run confirms the rate that passed.\n\n" +
		"A probe passes when it keeps every objective, loses nothing, fails nothing, and its backlog does not grow. " +
		"A backlog can be seen in probes of 10 s or more. " +
		"A probe that the generator or its host spoilt never counts against the system. " +
		"A system that weir starts is started anew for each probe.\n\n" +
		"Exit codes are those of weir run. They tell of the search, not of the probes: 4 when no rate passed, 5 when the search ended without an interval."
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
}

// run searches.
func (c *capacityCommand) run(ctx context.Context, e *env) Code {
	h := &hunt{command: c, file: c.File, study: study{env: e, kind: "search", require: result.Suspect, quiet: c.Quiet, noColor: c.NoColor, json: c.JSON}}
	if err := h.prepare(); err != nil {
		faulty(e, err)
		return Usage
	}
	if err := h.begin(); err != nil {
		e.complain(err)
		return Usage
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
	precision, err := percentOf(c.Precision)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		flag        string
		value, from int
		most        int
	}{{"--retests", c.Retests, 0, 10}, {"--probes", c.Probes, 1, 200}, {"--curve", c.Curve, 0, 20}} {
		if x.value < x.from || x.value > x.most {
			return fmt.Errorf("%s: %d does not fit (%d to %d)", x.flag, x.value, x.from, x.most)
		}
	}
	s, err := h.scenario(nil)
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
	h.report = capacity.Report{Schema: capacity.Schema, Probes: []capacity.Probed{}, Plan: capacity.Planned{
		FromPerS: s.Load.Rate.PerSecond(), Precision: precision, Retests: c.Retests, Probes: c.Probes, Curve: c.Curve, Seed: s.Seed,
	}}
	for _, o := range s.Objectives {
		h.report.Promise = append(h.report.Promise, o.String())
	}
	if c.Most != nil {
		most, err := h.scenario(&scenario.Override{Flag: "--most", Path: "load.rate", Value: *c.Most})
		if err != nil {
			return err
		}
		if h.report.Plan.MostPerS = most.Load.Rate.PerSecond(); most.Load.Closed || h.report.Plan.MostPerS < h.report.Plan.FromPerS {
			return fmt.Errorf("--most: %q is not a rate from --rate on (%s or more)", *c.Most, report.Rate(h.report.Plan.FromPerS))
		}
	}
	return runs.Fits(s)
}

// percentOf reads a precision.
func percentOf(text string) (float64, error) {
	p, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), "%"), 64)
	if err != nil || !(p >= 1 && p <= 100) {
		return 0, fmt.Errorf("--precision: %q does not fit (1%% to 100%%)", text)
	}
	return p / 100, nil
}

// scenario resolves that of one run: what the file and the flags say, but for one key.
func (h *hunt) scenario(other *scenario.Override) (*scenario.Scenario, error) {
	c := h.command
	r := &runCommand{File: h.file, Option: c.Option, Address: c.Address, keys: c.keys}
	if other != nil {
		r.instead = *other
	}
	all, err := r.resolve(h.env)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 || all[0].Repeat != 1 {
		return nil, errors.New("weir capacity: searches with one scenario (leave out scenarios, matrix and repeat)")
	}
	return all[0], nil
}

// resume reads the folder of a search that was stopped.
func (h *hunt) resume() error {
	c := h.command
	dir := *c.Resume
	if c.File != "" || c.Out != nil || c.Most != nil || len(c.Option)+len(c.Address)+len(c.keys.overrides()) > 0 {
		return errors.New("--resume: goes on with what the folder says (leave out the scenario and its flags)")
	}
	_, err := h.kept(dir, fileCapacity, h.kind, mostCapacity, &h.report, capacity.Schema)
	if p := h.report.Plan; err == nil && !(p.FromPerS > 0 && p.Precision >= 0.01 && p.Precision <= 1 && p.Probes >= 1 && p.Probes <= 200 && p.Retests >= 0 && p.Retests <= 10 && p.Curve >= 0 && p.Curve <= 20) {
		err = fmt.Errorf("reading %s: its plan is out of bounds", filepath.Join(dir, fileCapacity))
	}
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	h.dir, h.file = dir, filepath.Join(dir, result.FileScenario)
	s, err := h.scenario(nil)
	if err != nil {
		return err
	}
	return runs.Fits(s)
}

// begin makes the folder of a search, unless it goes on in one.
func (h *hunt) begin() error {
	if h.dir != "" {
		return nil
	}
	s, err := h.scenario(nil)
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
	a := h.report.Again().Answer()
	h.report.Answer = capacity.Answered{PassPerS: a.Pass, FailPerS: a.Fail, Stop: a.Stop}
	return h.document(fileCapacity, &h.report)
}

// search probes until the search is over.
func (h *hunt) search(ctx context.Context, stop *halting) Code {
	for {
		rate, why, more := h.report.Again().Next()
		if !more {
			return OK
		}
		name := fmt.Sprintf("%03d-%s", len(h.report.Probes)+1, strings.ReplaceAll(plainRate(rate), "/s", ""))
		p, code := h.probe(ctx, stop, rate, why, name)
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

// curve measures the latency at even parts of the capacity.
func (h *hunt) curve(ctx context.Context, stop *halting) Code {
	n, most := h.report.Plan.Curve, h.report.Again().Answer().Pass
	if most == 0 {
		return OK
	}
	for len(h.report.Curve) < n {
		i := len(h.report.Curve) + 1
		rate := capacity.Part(most, i, n)
		p, code := h.probe(ctx, stop, rate, "curve", fmt.Sprintf("curve-%02d", i))
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

// plainRate writes a rate as a flag takes it.
func plainRate(perSecond float64) string {
	return strconv.FormatFloat(perSecond, 'f', -1, 64) + "/s"
}

// probe does one run. Without a probe, the code says why the search ends.
func (h *hunt) probe(ctx context.Context, stop *halting, rate float64, why capacity.Purpose, name string) (*capacity.Probed, Code) {
	s, err := h.scenario(&scenario.Override{Flag: "--rate", Path: "load.rate", Value: plainRate(rate)})
	if err != nil {
		faulty(h.env, err)
		return nil, Usage
	}
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
	p := &capacity.Probed{RatePerS: rate, Purpose: why, Dir: name}
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

// probeLine is a probe in one line.
func probeLine(p *capacity.Probed) string {
	line := fmt.Sprintf("%12s  %-18s", report.Rate(p.RatePerS), p.Judgement)
	if p.P99NS != nil {
		line += fmt.Sprintf("%s p99 %s", p.Of, report.Time(*p.P99NS))
	}
	if p.Why != "" {
		line += "  " + p.Why
	}
	return strings.TrimRight(line, " ")
}

// told is the answer in a few lines.
func (h *hunt) told() string {
	var b strings.Builder
	r := &h.report
	a := r.Answer
	row := func(label, format string, args ...any) {
		_, _ = fmt.Fprintf(&b, "%-12s%s\n", label, fmt.Sprintf(format, args...)) // a Builder takes all
	}
	for i := range r.Curve {
		if i == 0 {
			row("curve", "latency at even parts of %s", report.Rate(a.PassPerS))
		}
		_, _ = fmt.Fprintln(&b, probeLine(&r.Curve[i]))
	}
	again := "weir capacity --resume " + h.dir
	switch a.Stop {
	case capacity.Found:
		row("capacity", "%s kept the promise, %s did not", report.Rate(a.PassPerS), report.Rate(a.FailPerS))
	case capacity.Generator, capacity.TooShort:
		if a.PassPerS == 0 {
			row("capacity", "not known: %s", map[capacity.Stop]string{
				capacity.Generator: "the generator or its host was the limit at every rate, not the system",
				capacity.TooShort:  "the probes are too short to decide the objectives: set --measure longer",
			}[a.Stop])
			break
		}
		if a.Stop == capacity.TooShort {
			row("capacity", "at least %s: at %s the probes are too short to decide the objectives", report.Rate(a.PassPerS), report.Rate(a.FailPerS))
			break
		}
		row("capacity", "at least %s: at %s the generator or its host was the limit, not the system", report.Rate(a.PassPerS), report.Rate(a.FailPerS))
	case capacity.AtMost:
		row("capacity", "at least %s: no higher rate was asked for", report.Rate(a.PassPerS))
	case capacity.NonePassed:
		row("capacity", "none: no rate down to %s kept the promise", report.Rate(a.FailPerS))
	default:
		text := "not known yet"
		if a.PassPerS > 0 {
			text += ": " + report.Rate(a.PassPerS) + " kept the promise"
		}
		if a.FailPerS > 0 {
			text += ", " + report.Rate(a.FailPerS) + " did not"
		}
		row("capacity", "%s", text)
	}
	row("promise", "%s", strings.Join(r.Promise, ", "))
	if i := slices.IndexFunc(r.Probes, func(p capacity.Probed) bool { return p.RatePerS == a.FailPerS && p.Why != "" }); i >= 0 {
		row("limit", "%s: %s", report.Rate(a.FailPerS), r.Probes[i].Why)
	}
	row("probes", "%d, each with a result of its own in %s", len(r.Probes)+len(r.Curve), h.dir)
	switch {
	case a.Stop == capacity.Unfinished || a.Stop == capacity.Unstarted:
		row("next", "%s  # goes on with the search", again)
	case a.PassPerS > 0:
		i := 0
		for j, p := range r.Probes {
			if p.RatePerS == a.PassPerS && p.Judgement == capacity.Passed.String() {
				i = j
			}
		}
		row("next", "weir report %s  # the last run at %s", filepath.Join(h.dir, r.Probes[i].Dir), report.Rate(a.PassPerS))
	case len(r.Probes) > 0:
		row("next", "weir report %s  # the lowest rate that was probed", filepath.Join(h.dir, r.Probes[len(r.Probes)-1].Dir))
	}
	return b.String()
}
