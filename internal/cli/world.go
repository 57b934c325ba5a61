package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/commandline"
	"github.com/weirmq/weir/internal/netpartition"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/internal/slowdisk"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// A World is the program's environment.
type World struct {
	Args    []string // without the program's name
	Env     func(name string) (string, bool)
	Environ []string  // "NAME=value"; the names are read
	Dir     string    // working directory
	Stdin   io.Reader // for `weir run -`; nil: none
	Stdout  io.Writer
	Stderr  io.Writer
	Drivers []driver.Definition
	Absent  []driver.Absent          // drivers that only weir-all has
	Tested  func() []tested.Entry    // what the drivers were tested against, loaded on demand; nil: nothing
	Self    string                   // path of weir's own binary, for child processes
	Enter   func(stdin []byte) error // re-executes this process at the clients' end of a network, with that standard input; nil: not supported
	Signals <-chan os.Signal         // requests to end; nil: never any

	StdoutTerminal bool                     // supports colour
	StderrTerminal bool                     // supports rewriting
	Size           func() (cols, lines int) // of the terminal now; nil, or 0: unknown
}

// Process returns the world of this process, which must not have handled signals yet: from here on weir
// handles SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGABRT. Go treats the last two as crashes with exit code 2,
// which means wrong usage here.
func Process(drivers []driver.Definition, absent []driver.Absent, record func() []tested.Entry) World {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT)
	// A closed pipe (weir run | head) must not abort the run. Notify, not Ignore, which child processes
	// would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	self, _ := os.Executable() // without it only embedded systems cannot start, with an error
	return World{
		Args: os.Args[1:], Env: os.LookupEnv, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Drivers: drivers, Absent: absent, Tested: record, Self: self, Signals: signals,
		Enter:          func(stdin []byte) error { return network.Enter(self, stdin) },
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())), StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Size: func() (cols, lines int) {
			for _, f := range []*os.File{os.Stderr, os.Stdout} {
				if cols, lines, err := term.GetSize(int(f.Fd())); err == nil {
					return cols, lines
				}
			}
			return 0, 0
		},
	}
}

// commands is the command line grammar.
type commands struct {
	Run        runCommand        `cmd:"" help:"Measure a system. With no argument: NATS JetStream, started by weir, 1 KiB at 1000/s, about 15 s."`
	Capacity   capacityCommand   `cmd:"" help:"Find the highest rate that keeps an objective, as an interval."`
	Calibrate  calibrateCommand  `cmd:"" help:"Test weir's own accuracy on this host, against simulated systems with known figures."`
	Drivers    driversCommand    `cmd:"" help:"List the systems that weir measures, or show all about one."`
	Broker     brokerCommand     `cmd:"" help:"Install, start and stop real systems by their recipes."`
	Agent      agentCommand      `cmd:"" help:"Send and receive for a coordinator on another host."`
	Fleet      fleetCommand      `cmd:"" help:"Measure from several hosts at once: tokens, agents, health."`
	Compare    compareCommand    `cmd:"" help:"Compare series of runs: what differs, by how much, and with what certainty."`
	History    historyCommand    `cmd:"" help:"Find the runs at which a figure changed, over all runs of a folder."`
	Suite      suiteCommand      `cmd:"" help:"Repeat the experiments of a published article, and show its figures beside yours."`
	Convert    convertCommand    `cmd:"" help:"Turn a workload of the OpenMessaging Benchmark into a scenario."`
	Report     reportCommand     `cmd:"" help:"Show results: one as weir run showed it, several in a table."`
	Serve      serveCommand      `cmd:"" help:"Show the runs of a folder in a browser: list, search, compare, overlay, history."`
	Network    networkCommand    `cmd:"" help:"List the network profiles with their sources, and say whether weir can make a network on this host."`
	Doctor     doctorCommand     `cmd:"" help:"Check this host for what would spoil a measurement, and suggest fixes."`
	Glossary   glossaryCommand   `cmd:"" help:"Explain the words that weir uses."`
	Completion completionCommand `cmd:"" help:"Print a script that completes weir's command line in a shell."`
	Version    versionCommand    `cmd:"" help:"Print the versions of weir, Go and the client libraries."`
}

// An env is the environment of a verb.
type env struct {
	World
	console  *view.Console // writes to Stderr
	registry *driver.Registry
	log      *slog.Logger
	level    slog.LevelVar // of log
}

// A verb is a runnable command.
type verb interface {
	run(ctx context.Context, e *env) Code
}

// Main runs the program and returns its exit code. It accesses only w and the files that the arguments
// name; the end of ctx stops it at once.
func Main(ctx context.Context, w World) int {
	return int(run(ctx, w))
}

func run(ctx context.Context, w World) Code {
	c := &view.Console{Out: view.IgnoreClosedPipe(w.Stderr)}
	w.Stderr = c
	w.Stdout = view.IgnoreClosedPipe(w.Stdout)
	e := &env{World: w, console: c}
	e.logTo(c)
	registry, err := driver.NewRegistry(w.Drivers...)
	if err != nil {
		return e.failed(fmt.Errorf("collecting the drivers: %w", err))
	}
	registry.Lacks(w.elsewhere(buildinfo.Downloaded()), w.Absent...)
	e.registry = registry
	if code, ours := e.internal(ctx); ours {
		return code
	}
	verbs := &commands{}
	verbs.Run.keys, verbs.Capacity.keys = commandline.NewKeys(), commandline.NewKeys()
	verbs.Run.Keys, verbs.Capacity.Keys = verbs.Run.keys.Plugin(), verbs.Capacity.keys.Plugin()
	grammar, err := commandline.New(verbs, commandline.Environment{Stdout: w.Stdout, Stderr: w.Stderr, Columns: e.width(false), Drivers: w.Drivers})
	if err != nil {
		return e.failed(err)
	}
	if len(w.Args) >= 2 && w.Args[0] == "internal" && w.Args[1] == "complete" {
		return e.complete(grammar.Model, w.Args[2:])
	}
	line, err := grammar.Read(w.Args)
	switch {
	case err != nil:
		return e.failed(err)
	case line.Helped:
		return OK
	}
	for _, f := range line.Faults {
		e.complain(f)
	}
	verbs.Run.keys.Args, verbs.Capacity.keys.Args = line.Args, line.Args
	if len(line.Faults) > 0 {
		if line.Verb != nil && line.Verb.Name == "run" {
			verbs.Run.complain(e)
		}
		e.say("%s", line.Hint)
		return Usage
	}
	v, ok := line.Verb.Target.Addr().Interface().(verb)
	if !ok {
		return e.refused(errors.New("which command? (weir --help)"))
	}
	return v.run(ctx, e)
}

// internal runs this process as one of weir's own child processes, and reports whether it is one.
func (e *env) internal(ctx context.Context) (code Code, ours bool) {
	if len(e.Args) < 2 || e.Args[0] != "internal" {
		return OK, false
	}
	var err error
	switch rest := e.Args[2:]; e.Args[1] {
	case "agent": // of a run split over two processes
		if len(rest) < 2 {
			return e.refused(errors.New("internal agent: wants a URL and a name, and perhaps --fifo")), true
		}
		return (&agentCommand{Join: &rest[0], Name: &rest[1], FIFO: slices.Contains(rest[2:], wordFIFO), Own: true}).run(ctx, e), true
	case "serve":
		err = broker.ServeMain(ctx, rest, e.registry, e.Stdout, e.Stderr)
	case "install":
		err = broker.InstallMain(ctx, rest, e.registry, e.Stdout)
	case "system":
		err = broker.SystemMain(ctx, rest, e.registry, e.Stdout, e.Stderr)
	case "hosts":
		err = e.keepHosts(ctx, rest)
	case "dial":
		err = dial(ctx, e, rest)
	case "cut":
		err = netpartition.Main(ctx, rest, e.Stdout)
	case "clock":
		err = clockstep.Main(os.Stdin, e.Stdout)
	case "disk":
		err = slowdisk.Main(rest, os.Stdin, e.Stdout)
	case "network":
		if err := network.Main(ctx, rest, e.Stdout); err != nil {
			network.Fail(e.Stdout, err)
			return Unreachable, true
		}
	case "simulated":
		err = selftest.SystemMain(rest)
	case "instants":
		err = selftest.KernelMain(rest, os.Stdin, e.Stdout)
	case "keep":
		err = broker.KeepMain(ctx, e.Self, rest, e.registry, os.Stdin, e.Stdout)
	default:
		return OK, false
	}
	if err != nil {
		return e.because(Unreachable, err), true
	}
	return OK, true
}

// userOrSecret matches the parts of an argument that must not be logged: values of options with such names,
// and users in addresses.
var userOrSecret = regexp.MustCompile(`(?i)((?:pass|secret|token|credential)[^=]*=).*|(://)[^/@]*@`)

// elsewhere names the program with every driver, and how to run it in place of this one, built at that
// version, or in a folder if there is none.
func (w World) elsewhere(version string) string {
	command := "go install ./cmd/weir-all && weir-all"
	if strings.Contains(w.Self, "go-build") { // where go run puts programs
		command = "go run ./cmd/weir-all"
	} else if version != "" {
		command = "go install github.com/weirmq/weir/cmd/weir-all@" + version + " && weir-all"
	}
	if len(w.Args) > 0 && (w.Args[0] == "agent" || w.Args[0] == "internal") { // reported to a coordinator
		return "weir-all: " + command + " agent ..."
	}
	for _, a := range w.Args {
		command += " " + view.Quoted(userOrSecret.ReplaceAllString(a, "$1$2..."))
	}
	return "weir-all: " + command
}

// complain writes an error to the user.
func (e *env) complain(err error) { e.say("weir: %v", err) }

// complainEach writes each of the errors that were joined.
func (e *env) complainEach(err error) {
	for _, err := range parts(err) {
		e.complain(err)
	}
}

// parts splits a joined error; nothing for nil. An error that wraps several in one line ("%w: %w") stays
// whole.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && err.Error() == errors.Join(joined.Unwrap()...).Error() {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, parts(e)...)
		}
		return out
	}
	return []error{err}
}

// say writes one or more lines to the user. It replaces control sequences, which an argument or a server
// may contain. Write errors on stderr cannot be reported.
func (e *env) say(format string, args ...any) {
	_, _ = io.WriteString(e.Stderr, layout.Readable(fmt.Sprintf(format, args...))+"\n")
}

// color reports whether the terminal that shows the table supports colour.
func (e *env) color(off, onStderr bool) bool {
	if off || e.colourless() {
		return false
	}
	if onStderr {
		return e.StderrTerminal
	}
	return e.StdoutTerminal
}

// width is the columns of the terminal that shows the table, 0 if it goes elsewhere.
func (e *env) width(onStderr bool) int {
	if on := e.StdoutTerminal && !onStderr || e.StderrTerminal && onStderr; !on || e.Size == nil {
		return 0
	}
	cols, _ := e.Size()
	return cols
}

// colourless reports whether the environment disables colour, or the terminal has none.
func (e *env) colourless() bool {
	if v, ok := e.Env("NO_COLOR"); ok && v != "" {
		return true
	}
	if v, ok := e.Env("WEIR_NO_COLOR"); ok {
		if on, err := quantity.Switch(v); err == nil && on {
			return true
		}
	}
	v, _ := e.Env("TERM")
	return v == "dumb"
}

// text returns how pages are written on stdout.
func (e *env) text(noColor bool) layout.Text {
	return layout.Terminal(e.width(false), e.color(noColor, false))
}

// place is the user's working directory.
func (e *env) place() view.Place { return view.Place(e.Dir) }

// path makes a path of the user's absolute.
func (e *env) path(p string) string { return e.place().Path(p) }

// outlet is where pages and documents are written.
func (e *env) outlet() layout.Outlet {
	return layout.Outlet{Stdout: e.Stdout, Terminal: e.StdoutTerminal, Text: e.text, Path: e.path}
}

// show writes a page on stdout.
func (e *env) show(p *layout.Page, noColor bool) error { return e.outlet().Show(p, noColor) }

// answer writes v as JSON on stdout, or the page that show fills.
func (e *env) answer(asJSON bool, v any, noColor bool, show func(*layout.Page)) error {
	return e.outlet().Answer(asJSON, v, noColor, show)
}
