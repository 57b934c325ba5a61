package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/result"
)

// host returns what is needed to start processes on this host.
func (e *env) host() series.Host {
	return series.Host{Self: e.Self, Env: e.Env, Log: e.log, AgentArgs: agentArgs}
}

// wordFIFO asks a process of a split run for real-time priority.
const wordFIFO = "--fifo"

// agentArgs returns the arguments of a process of a split run, as env.internal parses them.
func agentArgs(url, name string, fifo bool) []string {
	args := []string{"internal", "agent", url, name}
	if fifo {
		args = append(args, wordFIFO)
	}
	return args
}

// execute executes the scenarios, on a fleet if there is one, and displays the results.
func (c *runCommand) execute(ctx context.Context, e *env, f *series.Fleet, scenarios []*scenario.Scenario) (code Code) {
	ctx, h := e.halt(ctx)
	defer h.cancel()
	unserve, err := c.serve(ctx, e)
	if err != nil {
		return e.refused(err)
	}
	defer unserve()
	o := c.doing(e, h)
	o.Fleet, o.Percentiles, o.Exit = f, c.percentiles, c.exit
	if c.Out != nil {
		o.Out = *c.Out
	}
	p := c.plan
	if p == nil {
		p = series.Repeat(c.File, scenarios...)
	}
	if c.until != nil {
		p.More = c.until.More
	}
	s, err := series.New(o, p)
	if err != nil {
		return e.refused(unmade(c.Out, err))
	}
	defer e.close(s)
	down, code := c.bring(ctx, e, c.quiet)
	if code != OK {
		return code
	}
	defer func() { code = worst(code, down()) }()
	if code := e.gather(ctx, s); code != OK {
		return code
	}
	var codes []Code
	var dirs []string
	exits := map[string]*result.Exit{}
	for out := range s.All(ctx, h.stop) {
		code := c.conclude(e, out)
		dirs = append(dirs, out.Dir)
		if out.Result != nil {
			exits[out.Dir] = c.exit(out)
		}
		codes = append(codes, code)
		if out.Several && h.asked(ctx) {
			code = Interrupted
			codes = append(codes, code)
		}
		again := len(exits) == 0 && len(p.Scenarios()) == 1 && out.Scenario.System.Start == scenario.StartNone
		if code == Usage || code == Interrupted || code == Unreachable && again { // a server of the user's that the first run did not reach
			if left := p.Left(); len(left) > 0 {
				e.say("weir: not run: %s", strings.Join(left, ", "))
			}
			break
		}
	}
	if s.Dir() != "" && len(p.Entries()) > 0 {
		if err := s.WritePage(p); err != nil {
			e.complain(fmt.Errorf("writing the results: %w", err))
			codes = append(codes, Failed)
		}
		if err := c.overview(e, p, s.Dir()); err != nil {
			e.complain(fmt.Errorf("showing the results: %w", err))
			codes = append(codes, Failed)
		}
	}
	if dir := cmp.Or(s.Dir(), strings.Join(dirs, "")); c.to != nil && dir != "" {
		if err := put(context.WithoutCancel(ctx), c.to, e.path(dir)); err != nil {
			e.complain(fmt.Errorf("sending the result to %s: %w", c.to.Host, err))
			codes = append(codes, Failed)
		}
	}
	e.ended(worst(codes...), exits, dirs)
	return worst(codes...)
}

// obtainable checks that each server to be started is installed, or can be. It changes nothing, and reports
// all that the host lacks at once.
func (e *env) obtainable(ctx context.Context, scenarios []*scenario.Scenario) Code {
	if !slices.ContainsFunc(scenarios, func(s *scenario.Scenario) bool { return s.System.Start == scenario.StartProcess }) {
		return OK // the run handles signals
	}
	return e.interruptible(ctx, func() Code {
		var codes []Code
		for _, err := range parts(series.Obtainable(ctx, e.host(), scenarios)) {
			codes = append(codes, e.fail(err))
		}
		return worst(codes...)
	})
}

// ungathered reports why there is no fleet; nil: there is one.
func ungathered(e *env, err error) Code {
	if err == nil {
		return OK
	}
	return e.because(codeOfFleet(err), fmt.Errorf("gathering the fleet: %w", err))
}

// unmade suggests a fix when mkdir fails; out is the value of --out.
func unmade(out *string, err error) error {
	switch {
	case out != nil && errors.Is(err, result.ErrExists):
		return fmt.Errorf("--out: %s %w (choose another folder, or leave --out out: weir then names one)", *out, result.ErrExists)
	case out == nil && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (--out DIR names another folder)", err)
	}
	return err
}

// complainOf reports an error of a run.
func (e *env) complainOf(r *series.Run, err error) {
	e.complain(named(r.Among(), err))
}

// conclude reports the result of a run, and returns its exit code.
func (c *runCommand) conclude(e *env, o *series.Outcome) Code {
	if folder := (*series.FolderError)(nil); !o.Several && o.Result == nil && errors.As(o.Err, &folder) {
		return e.refused(unmade(c.Out, o.Err))
	}
	code := c.heard(e, o, o.Among())
	if o.Result == nil {
		return code
	}
	if err := c.show(e, o); err != nil {
		e.complainOf(&o.Run, fmt.Errorf("showing the result: %w", err))
		code = worst(code, Failed)
	}
	return code
}

// codes returns the exit codes that apply to a run with figures.
func (c *runCommand) codes(o *series.Outcome) []Code {
	r := o.Result
	var codes []Code
	for _, x := range []struct {
		applies bool
		code    Code
	}{
		{r.Run.Interrupted, Interrupted},
		{o.Err != nil || o.Accounting != nil || o.Undone != nil || o.Written != nil, Failed},
		{o.Gone != nil, Unreachable},
		{o.Failed != "", Invalid},
		{o.Broken, Lost},
	} {
		if x.applies {
			codes = append(codes, x.code)
		}
	}
	return append(codes, codesOf(&r.Verdict, c.strict, c.require)...)
}

// refuse reports why a run gave no figures, in one line, followed by advice.
func (e *env) refuse(o *series.Outcome) {
	if codeOf(o.Err) == Interrupted { // what was interrupted did not fail
		e.complainOf(&o.Run, errors.New("interrupted before the first message: the run has no figures"))
		return
	}
	e.complainOf(&o.Run, errors.New(strings.ReplaceAll(o.Err.Error(), "\n", "; ")))
	var stranger *engine.StrangerError // it already names what answers
	if errors.Is(o.Err, driver.ErrUnreachable) && !errors.As(o.Err, &stranger) {
		if advice := e.absent(&o.Scenario.System); advice != "" {
			e.say("%s", advice)
		}
	}
	if errors.Is(o.Err, engine.ErrGuarantee) {
		e.say("the system and the driver's options set what it confirms%s: see driver %s", durable(o.Scenario), o.Scenario.System.Definition.Name)
	}
}

// absent says how to start a system that does not answer; "" if the error says it all.
func (e *env) absent(s *scenario.System) string {
	addressed := driver.HasOption(s.Definition.New(), "address")
	if s.Start != scenario.StartNone || !addressed {
		return ""
	}
	way := ""
	if s.Definition.Serve != nil {
		way = "--start embedded"
	} else if r, err := broker.RecipeOf(s.Definition, ""); err == nil && r.Install != nil {
		way = "--start process"
	}
	given := slices.ContainsFunc(s.Options, func(o scenario.Option) bool { return o.Name == "address" })
	if name := series.AddressVariable(s.Definition.Name, e.Env); name != "" && !given {
		return fmt.Sprintf("%s is set: --address '${env:%[1]s}' uses it, with its user and password", name)
	}
	switch {
	case given && s.Definition.Serve != nil:
		return fmt.Sprintf("check the address, and that a server runs there; without an address or start, weir starts %s itself", s.Definition.Name)
	case given && way != "":
		return fmt.Sprintf("check the address, and that a server runs there; %s in place of the address has weir start one", way)
	case given:
		return "check the address, and that a server runs there"
	case way == "":
		return fmt.Sprintf("nothing answers at the default address of %s: --address names another", s.Definition.Name)
	}
	return fmt.Sprintf("nothing answers at the default address of %s: add %s to have weir start a server, or --address for a server of yours", s.Definition.Name, way)
}

// exposed warns, once, of a fault that affects messages on a single node.
func (e *env) exposed(scenarios []*scenario.Scenario) {
	for _, s := range scenarios {
		if says := s.Exposed(); says != "" {
			e.say("%s", says)
			return
		}
	}
}

// overlooked warns that a variable names a server, but weir starts one of its own.
func (e *env) overlooked(scenarios []*scenario.Scenario) {
	for _, s := range scenarios {
		if name := series.AddressVariable(s.System.Definition.Name, e.Env); name != "" && s.System.Start == scenario.StartEmbedded {
			e.say("weir starts a server of its own, not the one that %s names: --address '${env:%[1]s}' uses that", name)
			return
		}
	}
}

// durable names the driver's options about syncing to disk.
func durable(s *scenario.Scenario) string {
	var names []string
	for _, o := range driver.Options(s.System.Config) {
		if strings.Contains(o.Name, "sync") {
			names = append(names, o.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// show prints a run's result: the table of a single run, a line for one of several, or result.json if
// requested.
func (c *runCommand) show(e *env, o *series.Outcome) error {
	table := e.Stdout
	if c.json {
		b, err := result.Marshal(o.Result)
		if err != nil {
			return err
		}
		if _, err := e.Stdout.Write(b); err != nil {
			return err
		}
		table = e.Stderr
	}
	switch {
	case o.Several:
		if !c.quiet {
			e.say("%s: %s, written to %s", o.Among(), strings.ToUpper(string(o.Result.Verdict.Status)), o.Dir)
		}
		return nil
	case c.json && c.quiet:
		return nil
	}
	ro := c.tables(e)
	ro.Dir, ro.Partly = o.Dir, o.Written != nil
	ro.Fleet = c.met(o.Result)
	return view.Text(table, view.Entry{Entry: result.Entry{Result: o.Result, Scenario: o.Scenario.YAML()}}, ro)
}

// overview prints the results of several runs.
func (c *runCommand) overview(e *env, p *series.Repeats, dir string) error {
	w := e.Stdout
	if c.json {
		w = e.Stderr
	}
	if c.json && c.quiet {
		return nil
	}
	o := c.tables(e)
	o.Left, o.Rest, o.Dir = len(p.Left()), p.Rest(), dir
	if c.until != nil {
		o.Shown = shownUntil(c.until)
	}
	return view.Overview(w, view.Entries(p.Entries()), o)
}

// tables returns how to format them.
func (c *runCommand) tables(e *env) view.Options {
	return view.Options{Short: !c.Full, Colour: e.color(c.noColor, c.json), Width: e.width(c.json), Session: c.session, Percentiles: c.percentiles}
}

// askedFor parses --session and --percentiles; 0 and nil if not given.
func askedFor(session *uint64, percentiles *string) (messages uint64, out []float64, err error) {
	if session != nil {
		if messages = *session; messages == 0 {
			return 0, nil, errors.New("--session: is 0 messages (1 or more, or leave it out)")
		}
	}
	if percentiles != nil {
		if out, err = quantity.Percentiles(*percentiles); err != nil {
			err = fmt.Errorf("--percentiles: %w", err)
		}
	}
	return messages, out, err
}
