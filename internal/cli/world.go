package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/layout"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/nodecut"
	"github.com/weirmq/weir/internal/slowdisk"
)

// A World is all that the program has of its surroundings.
type World struct {
	Args    []string // without the program's name
	Env     func(name string) (string, bool)
	Environ []string  // "NAME=value"; the names are read
	Dir     string    // working folder
	Stdin   io.Reader // of `weir run -`; nil: there is none
	Stdout  io.Writer
	Stderr  io.Writer
	Drivers []driver.Definition
	Tested  func() []tested.Entry    // what the drivers were tested against; read when a verb shows it; nil: nothing
	Self    string                   // path of weir's own binary, which child processes are
	Enter   func(stdin []byte) error // replaces this process by one at the clients' end of a network, with that standard input; nil: it cannot
	Signals <-chan os.Signal         // those that ask for the end; nil: never any

	StdoutTerminal bool                     // may hold colour
	StderrTerminal bool                     // may be rewritten
	Size           func() (cols, lines int) // of the terminal, now; nil, and 0: not known
}

// Process returns the surroundings of this process, which must not have read
// any signal yet: SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGABRT are weir's from here
// on. To Go the last two are crashes with exit code 2, which means wrong usage here.
func Process(drivers []driver.Definition, record func() []tested.Entry) World {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT)
	// Whoever reads along may leave (weir run | head): a run is not lost for that.
	// Notify, not Ignore, since child processes would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	self, _ := os.Executable() // without it only embedded systems cannot be started, which says so
	return World{
		Args: os.Args[1:], Env: os.LookupEnv, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Drivers: drivers, Tested: record, Self: self, Signals: signals,
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

// commands is the grammar of the command line.
type commands struct {
	Run        runCommand        `cmd:"" help:"Measure a system. With no argument: NATS JetStream, started by weir, 1 KiB at 1000/s, about 15 s."`
	Capacity   capacityCommand   `cmd:"" help:"Find the highest rate that keeps an objective, as an interval."`
	Calibrate  calibrateCommand  `cmd:"" help:"Measure the instrument on this host, and test it against known truths."`
	Drivers    driversCommand    `cmd:"" help:"List the systems that weir measures, or show all about one."`
	Broker     brokerCommand     `cmd:"" help:"Install, start and end real systems by their recipes."`
	Agent      agentCommand      `cmd:"" help:"Join a fleet, and do parts of its runs."`
	Fleet      fleetCommand      `cmd:"" help:"Measure from several hosts at once: tokens, agents, health."`
	Compare    compareCommand    `cmd:"" help:"Compare series of runs: what differs, by how much, and with what certainty."`
	History    historyCommand    `cmd:"" help:"Find the runs at which a figure changed, over all runs of a folder."`
	Suite      suiteCommand      `cmd:"" help:"Repeat the experiments of an article, with its figures beside ours."`
	Convert    convertCommand    `cmd:"" help:"Turn a workload of the OpenMessaging Benchmark into a scenario."`
	Report     reportCommand     `cmd:"" help:"Show results: one as weir run showed it, several in a table."`
	Serve      serveCommand      `cmd:"" help:"Show the runs of a folder in a browser: list, search, compare, overlay, history."`
	Network    networkCommand    `cmd:"" help:"List the network profiles with their sources, and say whether weir can make a network on this host."`
	Doctor     doctorCommand     `cmd:"" help:"Look for what on this host would spoil a measurement, and say what to do."`
	Glossary   glossaryCommand   `cmd:"" help:"Explain the words that weir uses."`
	Completion completionCommand `cmd:"" help:"Print a script that completes weir's command line in a shell."`
	Version    versionCommand    `cmd:"" help:"Print the versions of weir, Go and the client libraries."`
}

// An env is what a verb runs in.
type env struct {
	World
	console  *console // is Stderr
	registry *driver.Registry
	log      *slog.Logger
}

// A verb is a command that runs.
type verb interface {
	run(ctx context.Context, e *env) Code
}

// Main runs the program and returns its exit code. It reads and writes nothing
// but what is in w and the files that the arguments name; ctx ending stops it
// at once.
func Main(ctx context.Context, w World) int {
	return int(run(ctx, w))
}

func run(ctx context.Context, w World) Code {
	c := &console{out: &sated{w: w.Stderr}}
	w.Stderr = c
	w.Stdout = &sated{w: w.Stdout}
	e := &env{World: w, console: c, log: slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	registry, err := driver.NewRegistry(w.Drivers...)
	if err != nil {
		e.complain(fmt.Errorf("collecting the drivers: %w", err))
		return Failed
	}
	e.registry = registry
	if code, ours := e.internal(ctx); ours {
		return code
	}
	args := normalize(w.Args)
	verbs := &commands{}
	verbs.Run.keys = newKeyFlags()
	verbs.Run.Keys = kong.Plugins{verbs.Run.keys.pointer()}
	verbs.Capacity.keys = newKeyFlags()
	verbs.Capacity.Keys = kong.Plugins{verbs.Capacity.keys.pointer()}
	var exited *int
	parser, err := kong.New(verbs,
		kong.Name("weir"),
		kong.Description("Puts a known flow of messages into a message queue. Reports what came out, when, and whether you can believe the figure."),
		kong.Writers(w.Stdout, w.Stderr),
		kong.Exit(func(code int) { exited = &code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Help(helpFor(e.width(false))),
		kong.WithHyphenPrefixedParameters(true),
	)
	if err != nil {
		e.complain(fmt.Errorf("building the command line: %w", err))
		return Failed
	}
	parser.Model.HelpFlag.Help = "Show this page."
	if len(w.Args) >= 2 && w.Args[0] == "internal" && w.Args[1] == "complete" {
		return e.complete(parser.Model, w.Args[2:])
	}
	args = spoken(args)
	if err := known(parser, args); err != nil {
		e.complain(err)
		e.say("%s", helps(parser.Model, args))
		return Usage
	}
	args, strange := e.strangers(parser.Model, args)
	k, err := parser.Parse(args)
	if exited != nil { // --help
		return Code(*exited)
	}
	if unshown := (*fs.PathError)(nil); errors.As(err, &unshown) { // of help
		e.complain(fmt.Errorf("writing the help: %w", err))
		return Failed
	}
	if err == nil {
		err = repeated(k)
	}
	for _, s := range strange {
		e.complain(s)
	}
	if err != nil && (len(strange) == 0 || !strings.HasPrefix(err.Error(), "expected ")) { // what is missing may have gone with a flag
		e.complain(explained(err))
	}
	verbs.Run.keys.args, verbs.Capacity.keys.args = args, args
	if err == nil && len(strange) > 0 && k.Selected().Name == "run" {
		verbs.Run.complain(e)
	}
	if err != nil || len(strange) > 0 {
		e.say("%s", helps(parser.Model, args))
		return Usage
	}
	v, ok := k.Selected().Target.Addr().Interface().(verb)
	if !ok {
		e.complain(errors.New("which command? (weir --help)"))
		return Usage
	}
	return v.run(ctx, e)
}

// internal runs this process as what weir starts of itself, and reports whether
// it is one of those.
func (e *env) internal(ctx context.Context) (code Code, ours bool) {
	if len(e.Args) < 2 || e.Args[0] != "internal" {
		return OK, false
	}
	var err error
	switch rest := e.Args[2:]; e.Args[1] {
	case "agent": // of a run that is split over two processes
		if len(rest) < 2 {
			e.complain(errors.New("internal agent: wants a URL and a name, and perhaps --fifo"))
			return Usage, true
		}
		return (&agentCommand{Join: &rest[0], Name: &rest[1], FIFO: slices.Contains(rest[2:], wordFIFO), Own: true}).run(ctx, e), true
	case "serve":
		err = broker.ServeMain(ctx, rest, e.registry, e.Stdout, e.Stderr)
	case "install":
		err = broker.InstallMain(ctx, rest, e.registry, e.Stdout)
	case "system":
		err = broker.SystemMain(ctx, rest, e.registry, e.Stdout, e.Stderr)
	case "cut":
		err = nodecut.Main(ctx, rest, e.Stdout)
	case "clock":
		err = clockstep.Main(os.Stdin, e.Stdout)
	case "disk":
		err = slowdisk.Main(rest, os.Stdin, e.Stdout)
	case "network":
		if err := network.Main(ctx, rest, e.Stdout); err != nil {
			network.Fail(e.Stdout, err)
			return Unreachable, true
		}
	case "keep":
		err = broker.KeepMain(ctx, e.Self, rest, e.registry, os.Stdin, e.Stdout)
	default:
		return OK, false
	}
	if err != nil {
		e.complain(err)
		return Unreachable, true
	}
	return OK, true
}

// known refuses an argument where a verb belongs that is not one, and names what may
// have been meant.
func known(parser *kong.Kong, args []string) error {
	said, node := "", parser.Model.Node
	for _, word := range args {
		var verbs []string
		var next *kong.Node
		for _, n := range node.Children {
			if n.Name == word || slices.Contains(n.Aliases, word) {
				next = n
			}
			if !n.Hidden {
				verbs = append(verbs, n.Name)
			}
		}
		if said == "drivers " && slices.Contains([]string{"list", "ls", "show"}, word) {
			return fmt.Errorf("unknown command %q; weir drivers lists all systems, and weir drivers NAME shows one", said+word)
		}
		if len(verbs) == 0 || strings.HasPrefix(word, "-") {
			return nil
		}
		if next == nil {
			have := strings.Join(verbs, ", ")
			if near := meant(word, verbs); near != "" {
				return fmt.Errorf("unknown command %q; did you mean %q? (%s)", said+word, said+near, have)
			}
			return fmt.Errorf("unknown command %q (%s)", said+word, have)
		}
		said, node = said+word+" ", next
	}
	return nil
}

// meant returns the verb that a word may stand for: one that other tools call so, or
// one spelt like it; "" where there is none.
func meant(word string, verbs []string) string {
	var others []string // the first of them that is among verbs
	switch word {
	case "list", "ls", "ps":
		others = []string{"status", "drivers"}
	case "start", "create":
		others = []string{"up", "run"}
	case "stop", "remove", "rm", "kill", "delete":
		others = []string{"down"}
	case "bench", "benchmark", "test", "measure", "exec":
		others = []string{"run"}
	case "show", "results", "view", "html", "export":
		others = []string{"report"}
	case "diff", "benchstat":
		others = []string{"compare"}
	case "sweep", "search", "saturate", "ramp":
		others = []string{"capacity"}
	case "check", "env":
		others = []string{"doctor"}
	}
	for _, other := range others {
		if slices.Contains(verbs, other) {
			return other
		}
	}
	return driver.Nearest(word, verbs)
}

// spoken turns what people say for help and the version into verbs and flags.
func spoken(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help" && len(args) > 1 && args[1] == "help":
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version", args[0] == "-v", args[0] == "-V":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// complain writes an error to the user.
func (e *env) complain(err error) { e.say("weir: %v", err) }

// say writes a line to the user, or several. What would move a terminal's cursor or
// paint is replaced, because an argument or a server may hold it. An error of
// stderr has no one to go to.
func (e *env) say(format string, args ...any) {
	_, _ = io.WriteString(e.Stderr, layout.Readable(fmt.Sprintf(format, args...))+"\n")
}

// color reports whether the terminal that shows the table takes colour.
func (e *env) color(off, onStderr bool) bool {
	if off || e.colourless() {
		return false
	}
	if onStderr {
		return e.StderrTerminal
	}
	return e.StdoutTerminal
}

// width returns the columns of the terminal that shows the table, 0 where it
// goes elsewhere.
func (e *env) width(onStderr bool) int {
	if on := e.StdoutTerminal && !onStderr || e.StderrTerminal && onStderr; !on || e.Size == nil {
		return 0
	}
	cols, _ := e.Size()
	return cols
}

// colourless reports whether the environment asks for no colour, or the terminal
// has none.
func (e *env) colourless() bool {
	if v, ok := e.Env("NO_COLOR"); ok && v != "" {
		return true
	}
	if v, ok := e.Env("WEIR_NO_COLOR"); ok {
		if on, err := onOff(v); err == nil && on {
			return true
		}
	}
	v, _ := e.Env("TERM")
	return v == "dumb"
}

// text is how pages are written on stdout.
func (e *env) text(noColor bool) layout.Text {
	cols := 0
	if e.StdoutTerminal && e.Size != nil {
		cols, _ = e.Size()
	}
	return layout.Terminal(cols, e.color(noColor, false))
}

// show writes a page on stdout.
func (e *env) show(p *layout.Page, noColor bool) error {
	_, err := io.WriteString(e.Stdout, e.text(noColor).Page(p))
	return err
}

// answer writes v as JSON on stdout, or the page that show fills.
func (e *env) answer(asJSON bool, v any, noColor bool, show func(*layout.Page)) error {
	if asJSON {
		return writeJSON(e.Stdout, v)
	}
	p := new(layout.Page)
	show(p)
	return e.show(p, noColor)
}
