package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/internal/commandline"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// runCommand is `weir run`.
type runCommand struct {
	File        string       `arg:"" optional:"" help:"Scenario file, or - for standard input (default: none, only flags and defaults)."`
	Keys        kong.Plugins `embed:""`
	Option      []string     `sep:"none" placeholder:"NAME=VALUE" group:"System" help:"An option of the driver (weir drivers NAME lists them); may be repeated (default: none)."`
	Address     []string     `sep:"none" placeholder:"ADDRESS" group:"System" help:"Address of a server; may be repeated (default: the driver's, or that of the server that weir starts)."`
	Out         *string      `placeholder:"DIR" help:"Result folder, which must not exist (default: results/<time>-<name>)."`
	Append      *string      `placeholder:"DIR" help:"Repeat the runs in this folder, --repeat times, and add the new runs to it (default: none)."`
	Explain     bool         `help:"Print the scenario with every default and where each value came from. Run nothing (default: off)."`
	JSON        *bool        `name:"json" help:"Print result.json on stdout, one after another where there are several, and everything else on stderr (default: off)."`
	Full        bool         `help:"Print all figures at the end, not only the screen of the most important ones (default: off)."`
	Quiet       *bool        `help:"Print only errors on stderr: no live view (default: off)."`
	Strict      *bool        `help:"Exit with 4 also where an objective could not be decided (default: off)."`
	Percentiles *string      `placeholder:"LIST" help:"Percentiles to print, such as --percentiles 50,99,99.99 (default: those with enough samples). The result stores them beside the usual ones, so that weir report can print them too. Costs nothing during the run."`
	Require     *string      `placeholder:"VERDICT" help:"Minimum verdict for exit code 0. suspect: exit with 5 when the run is INVALID. valid: also when it is SUSPECT. wire, alone or as valid,wire: run only where --wire can record (default: suspect)."`
	Session     *uint64      `placeholder:"N" help:"How many messages a user's session has. For each percentile, the table then shows the share of sessions that meet at least one worse message (default: none)."`
	NoColor     *bool        `help:"Use no colour, and plain lines instead of a live view (default: off)."`
	Metrics     *string      `placeholder:"[HOST]:PORT" help:"Serve metrics of the run for Prometheus at http://HOST:PORT/metrics. Without HOST, only this host can read them (default: off)."`
	OTLP        *string      `name:"otlp" placeholder:"URL" help:"Push metrics of the run once a second to an OpenTelemetry collector, by OTLP over HTTP, such as http://127.0.0.1:4318 (default: off)."`
	Put         *string      `placeholder:"URL" help:"At the end, send the result folder there as a .tar.gz by HTTP PUT, such as to a presigned URL of S3. WEIR_PUT keeps the URL out of the list of processes (default: off)."`

	precedenceFlag `embed:""`
	wireFlag       `embed:""`

	parties    `embed:""`
	untilFlags `embed:""`

	stdin                        []byte            // the part already read; nil: none
	read                         map[string][]byte // files of the scenarios for a fleet, by path
	keys                         *commandline.Keys
	json, quiet, noColor, strict bool          // flags combined with the environment
	require                      result.Status // minimum verdict
	wire                         series.Wire   // for --wire and --require
	wired                        bool          // --require wire
	session                      uint64        // messages in a user's session; 0: not requested
	percentiles                  []float64
	to                           *url.URL         // for --put; nil: nowhere
	outlets                      *metrics.Outlets // for --metrics and --otlp; nil: neither
	converted                    bool             // losses in converting a workload were reported
	plan                         *series.Repeats  // for --append, and --resume with a folder; nil: from the scenarios
	until                        *series.Until    // decides on further runs; nil: none
}

// Help is what weir run --help says before the flags.
func (*runCommand) Help() string {
	var b strings.Builder
	b.WriteString("Every key of a scenario is a flag: --rate is load.rate, and --load.rate is the same. " +
		"So is a variable of the environment: WEIR_RATE or WEIR_LOAD_RATE. Other flags have WEIR_OUT, WEIR_JSON, WEIR_QUIET, WEIR_NO_COLOR, WEIR_STRICT and WEIR_REQUIRE. " +
		"A flag wins over the environment, the environment over the file, and the file over the default.\n\n" +
		"The result folder holds all figures. Its report.html shows them with charts in a browser, without a network. " +
		"scenarios, matrix and repeat make several runs, each in a folder of its own below the result folder. " +
		"After the first Ctrl-C weir waits for messages in flight and writes the result. A second Ctrl-C stops it now. weir run --resume DIR then does the runs that a series has left.\n\n" +
		"Exit codes, the first that applies:\n\n")
	codes := new(layout.Page)
	for _, x := range table {
		codes.Labelled(fmt.Sprintf("%5d", x.code), layout.Plain.Of(x.means))
	}
	b.WriteString(layout.Text{Width: helpWidth, Fold: true}.Page(codes))
	return b.String()
}

// helpWidth is the width of the exit code table; with its margin it fits 80 columns.
const helpWidth = 77

// run resolves, prepares, measures, writes and displays.
func (c *runCommand) run(ctx context.Context, e *env) Code {
	var err error
	if c.session, c.percentiles, err = askedFor(c.Session, c.Percentiles); err != nil {
		return e.refused(err)
	}
	if c.Metrics != nil {
		if _, err := metrics.Address(*c.Metrics); err != nil {
			return e.refused(fmt.Errorf("--metrics: %w", err))
		}
	}
	if c.OTLP != nil {
		if _, err := metrics.Collector(*c.OTLP); err != nil {
			return e.refused(fmt.Errorf("--otlp: %w", err))
		}
	}
	if c.to, err = c.putTo(e); err != nil {
		return e.refused(err)
	}
	if c.Resume != nil && !e.isFolder(*c.Resume) {
		return c.resume(ctx, e)
	}
	if err := c.byHosts(e); err != nil {
		return e.refused(err)
	}
	var scenarios []*scenario.Scenario
	resolve := func() Code { scenarios, err = c.resolve(e); return OK }
	if c.Resume != nil {
		resolve = func() Code { scenarios, err = c.left(e); return OK }
	} else if c.Append != nil {
		resolve = func() Code { scenarios, err = c.again(e); return OK }
	}
	if c.File == "" {
		resolve()
	} else if code := e.interruptible(ctx, resolve); code != OK { // a pipe, or the keyboard, is read to its end
		return code
	}
	if err != nil {
		return e.refused(err)
	}
	if err := c.wirable(scenarios); err != nil {
		return e.refused(err)
	}
	if err := c.checkFleet(e, scenarios); err != nil {
		return e.refused(err)
	}
	f, err := c.fleetOf(e)
	if err != nil {
		return ungathered(e, err)
	}
	if err := series.Fits(f, scenarios); err != nil {
		return e.fail(err)
	}
	if c.until, err = c.untilShown(e, scenarios); err != nil {
		return e.refused(err)
	}
	if !c.quiet {
		e.exposed(scenarios)
	}
	if c.Explain {
		return explain(e, scenarios)
	}
	if c.On == nil { // else the hosts that start the servers check
		if code := e.obtainable(ctx, scenarios); code != OK {
			return code
		}
	}
	if code := e.enter(ctx, scenarios, c.stdin, c.gathering); code != OK {
		return code
	}
	if err := precedence(c.FIFO); err != nil {
		return e.refused(err)
	}
	if !c.quiet {
		e.overlooked(scenarios)
	}
	return c.execute(ctx, e, f, scenarios)
}

// complain reports invalid values in a command line with other faults. It does not read standard input.
func (c *runCommand) complain(e *env) {
	if c.File == "-" {
		return
	}
	if _, err := c.resolve(e); err != nil {
		e.refused(err)
	}
}

// precedenceFlag is of the verbs that run scenarios.
type precedenceFlag struct {
	FIFO bool `name:"fifo" help:"Run the threads that send (pacers) at real-time priority (SCHED_FIFO), except for pacers that would keep a core busy most of the time. Linux; needs root, CAP_SYS_NICE or ulimit -r 10 (default: off)."`
}

// precedence refuses --fifo if the system does not permit it.
func precedence(asked bool) error {
	if !asked {
		return nil
	}
	if err := pace.CheckFIFO(); err != nil {
		return fmt.Errorf("--fifo: %w", err)
	}
	return nil
}

// resolve combines the file, the environment and the flags.
func (c *runCommand) resolve(e *env) ([]*scenario.Scenario, error) {
	if err := c.environment(e); err != nil {
		return nil, err
	}
	in, err := c.input(e)
	if err != nil {
		return nil, err
	}
	all, err := scenario.Resolve(in)
	if err == nil && slices.ContainsFunc(all, func(s *scenario.Scenario) bool { return s.Search.Given() }) {
		return nil, fmt.Errorf("%s: search: is for weir capacity (weir capacity %s)", c.File, c.File)
	}
	return all, err
}

// input reads the source of the scenarios.
func (c *runCommand) input(e *env) (in scenario.Inputs, err error) {
	if in, err = c.inputs(e); err != nil {
		return in, err
	}
	in.File, in.Environ, in.Overrides = c.File, scenario.Variables(e.Env, e.registry), c.keys.Overrides()
	for _, line := range scenario.Misspelt(e.Environ, e.registry, "WEIR_OUT", "WEIR_JSON", "WEIR_QUIET", "WEIR_NO_COLOR", "WEIR_STRICT", "WEIR_REQUIRE", "WEIR_PUT", "WEIR_JOIN") {
		e.say("weir: %s", line)
	}
	options, err := commandline.Options(c.Option, c.Address)
	if err != nil {
		return in, err
	}
	in.Overrides = append(in.Overrides, options...)
	if strings.Contains(c.File, "://") {
		// Not shown: it may hold a password.
		return in, errors.New("reading the scenario: the argument is a URL, not a file (--address says where a system is)")
	}
	switch {
	case c.File == "-":
		in.File = "stdin" // in messages; paths are relative to the working directory
		if e.Stdin == nil {
			return in, errors.New("reading the scenario: there is no standard input (a scenario file)")
		}
		if in.Text, err = io.ReadAll(io.LimitReader(e.Stdin, scenario.MaxFile+1)); err != nil {
			return in, fmt.Errorf("reading the scenario from standard input: %w", err)
		}
		c.stdin = in.Text
	case c.File != "":
		if in.Text, err = userfile.Read(e.path(c.File), scenario.MaxFile); err != nil {
			return in, c.unread(e, err)
		}
	}
	err = c.benchmark(e, &in)
	return in, err
}

// inputs returns the inputs common to all sources of a scenario.
func (c *runCommand) inputs(e *env) (scenario.Inputs, error) {
	// Absolute, so that the resolved scenario names files independently of the working directory.
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return scenario.Inputs{}, fmt.Errorf("finding the working folder: %w", err)
	}
	return scenario.Inputs{
		Drivers:  e.registry,
		Env:      e.Env,
		ReadFile: func(p string) ([]byte, error) { return c.readFor(e, p) },
		// What options refer to is not sent: each agent resolves it.
		ReadOption: func(p string) ([]byte, error) { return scenario.ReadOption(e.path(p)) },
		Elsewhere:  c.Fleet != nil,
		Stat:       os.Stat,
		ReadDir:    os.ReadDir,
		Dir:        dir,
	}, nil
}

// mostNamed limits files that a scenario names, in bytes. The largest are traces.
const mostNamed = 256 << 20

// readFor reads a trace or payload that a scenario names, and keeps it for a fleet's agents.
func (c *runCommand) readFor(e *env, p string) ([]byte, error) {
	b, err := userfile.Read(e.path(p), mostNamed)
	if err == nil {
		if c.read == nil {
			c.read = map[string][]byte{}
		}
		c.read[e.path(p)] = b
	}
	return b, err
}

// unread explains why the argument is not a scenario, and suggests what was meant.
func (c *runCommand) unread(e *env, err error) error {
	const allowed = "a scenario file"
	if errors.Is(err, fs.ErrNotExist) {
		if slices.Contains(e.registry.Known(), c.File) {
			return fmt.Errorf("%s: there is no such file, did you mean --driver %[1]s? (%s)", c.File, allowed)
		}
		return fmt.Errorf("%s: there is no such file (%s)", c.File, allowed)
	}
	if e.isFolder(c.File) {
		inside := filepath.Join(c.File, result.FileScenario)
		if _, err := os.Stat(e.path(inside)); err == nil {
			return fmt.Errorf("%s: is a folder, did you mean %s? (%s)", c.File, inside, allowed)
		}
		if below, err := filepath.Glob(filepath.Join(e.path(c.File), "*", result.FileResult)); err == nil && len(below) > 0 {
			return fmt.Errorf("%s: is a folder of runs, did you mean weir run --append %[1]s, or weir report %[1]s? (%s)", c.File, allowed)
		}
		return fmt.Errorf("%s: is a folder (%s)", c.File, allowed)
	}
	return fmt.Errorf("reading the scenario: %w", err)
}

// explain prints the runs without executing them.
func explain(e *env, runs []*scenario.Scenario) Code {
	var texts [][]byte
	for _, s := range runs {
		texts = append(texts, s.Explain())
	}
	_, err := e.Stdout.Write(bytes.Join(texts, []byte("---\n")))
	return e.printed("the scenario", err)
}

var errEmptyOut = errors.New("--out: is empty (a folder that does not exist yet, or leave it out)")

// environment reads settings that the flags leave open from the environment.
func (c *runCommand) environment(e *env) error {
	if v, ok := e.Env("WEIR_OUT"); ok && v != "" && c.Out == nil {
		c.Out = &v
	}
	if c.Out != nil && *c.Out == "" {
		return errEmptyOut
	}
	var err error
	if err = c.wiring(e); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		flag *bool
		into *bool
	}{{"WEIR_JSON", c.JSON, &c.json}, {"WEIR_QUIET", c.Quiet, &c.quiet}, {"WEIR_NO_COLOR", c.NoColor, &c.noColor}, {"WEIR_STRICT", c.Strict, &c.strict}} {
		switch v, ok := e.Env(f.name); {
		case f.flag != nil:
			*f.into = *f.flag
		case ok && v != "":
			on, err := quantity.Switch(v)
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			*f.into = on
		}
	}
	e.quieten(c.quiet)
	return nil
}

// logTo enables the log, at level warning.
func (e *env) logTo(w io.Writer) {
	e.level.Set(slog.LevelWarn)
	e.log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: &e.level}))
}

// quieten limits the log to errors.
func (e *env) quieten(quiet bool) {
	if quiet {
		e.level.Set(slog.LevelError)
	}
}
