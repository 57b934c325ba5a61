package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
)

// A World is all that the program has of its surroundings.
type World struct {
	Args    []string // without the program's name
	Env     func(name string) (string, bool)
	Dir     string // working folder
	Stdout  io.Writer
	Stderr  io.Writer
	Drivers []driver.Definition
	Self    string           // path of weir's own binary, which child processes are
	Signals <-chan os.Signal // SIGINT, SIGTERM and SIGHUP; nil: never any

	StdoutTerminal bool // may hold colour
	StderrTerminal bool // may be rewritten
	Width          int  // of the terminal in characters; 0: not known
}

// commands is the grammar of the command line.
type commands struct {
	Run       runCommand       `cmd:"" help:"Measure a system. With no argument: NATS JetStream, started by weir, 1 KiB at 1000/s, about 15 s."`
	Calibrate calibrateCommand `cmd:"" help:"Measure the instrument on this host, and hold it against exact truths."`
	Version   versionCommand   `cmd:"" help:"Print the versions of weir, Go and the client libraries."`
}

// An env is what a verb runs in.
type env struct {
	World
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
	e := &env{World: w, log: slog.New(slog.NewTextHandler(w.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	registry, err := driver.NewRegistry(w.Drivers...)
	if err != nil {
		e.complain(fmt.Errorf("collecting the drivers: %w", err))
		return Failed
	}
	e.registry = registry
	if len(w.Args) >= 2 && w.Args[0] == "internal" && w.Args[1] == "serve" {
		// The process of an embedded system, which broker.StartEmbedded starts.
		if err := broker.ServeMain(ctx, w.Args[2:], registry, w.Stdout, w.Stderr); err != nil {
			e.complain(err)
			return Unreachable
		}
		return OK
	}
	args := normalize(w.Args)
	c := &commands{}
	c.Run.keys = newKeyFlags()
	c.Run.Keys = kong.Plugins{c.Run.keys.pointer()}
	var exited *int
	parser, err := kong.New(c,
		kong.Name("weir"),
		kong.Description("Puts a known flow of messages into a message queue and reports what came out, when, and whether the figure can be believed."),
		kong.Writers(w.Stdout, w.Stderr),
		kong.Exit(func(code int) { exited = &code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.WithHyphenPrefixedParameters(true),
	)
	if err != nil {
		e.complain(fmt.Errorf("building the command line: %w", err))
		return Failed
	}
	args = spoken(args)
	k, err := parser.Parse(args)
	if exited != nil { // --help
		return Code(*exited)
	}
	if err != nil {
		e.complain(err)
		e.say("weir --help lists the verbs, weir VERB --help their flags")
		return Usage
	}
	c.Run.keys.args = args
	v, ok := k.Selected().Target.Addr().Interface().(verb)
	if !ok {
		e.complain(errors.New("which verb? (weir --help)"))
		return Usage
	}
	return v.run(ctx, e)
}

// spoken turns what people say for help and the version into verbs and flags.
func spoken(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// complain writes an error to the user.
func (e *env) complain(err error) { e.say("weir: %v", err) }

// say writes a line to the user. Where stderr is gone there is nobody to tell.
func (e *env) say(format string, args ...any) { _, _ = fmt.Fprintf(e.Stderr, format+"\n", args...) }

// color reports whether the terminal that shows the table takes colour.
func (e *env) color(off, onStderr bool) bool {
	if v, ok := e.Env("NO_COLOR"); off || ok && v != "" {
		return false
	}
	if onStderr {
		return e.StderrTerminal
	}
	return e.StdoutTerminal
}
