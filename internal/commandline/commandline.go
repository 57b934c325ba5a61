// Package commandline parses what people type: verbs, flags with one or two hyphens, scenario keys as
// flags, and the names that other tools use for these. One parse reports all errors. It does not execute
// verbs, and knows their names only to explain flags.
package commandline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/driver"
)

// An Environment is the destination of help, and the drivers with options of their own.
type Environment struct {
	Stdout, Stderr io.Writer
	Columns        int // of the terminal that shows help; 0: unknown
	Drivers        []driver.Definition
}

// A Grammar is the grammar of the command line.
type Grammar struct {
	Model   *kong.Application
	parser  *kong.Kong
	drivers []driver.Definition
	helped  bool
	all     bool // help with every flag was requested
}

// New builds the grammar from kong's struct of commands.
func New(commands any, in Environment) (*Grammar, error) {
	g := &Grammar{drivers: in.Drivers}
	var err error
	g.parser, err = kong.New(commands,
		kong.Name("weir"),
		kong.Description("Sends messages to a message queue at a known rate. Reports what arrived, when, and whether the figures can be trusted."),
		kong.Writers(in.Stdout, in.Stderr),
		kong.Exit(func(int) { g.helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Help(g.help(in.Columns)),
		kong.WithHyphenPrefixedParameters(true),
	)
	if err != nil {
		return nil, fmt.Errorf("building the command line: %w", err)
	}
	g.Model = g.parser.Model
	g.Model.HelpFlag.Help = "Show this page."
	return g, nil
}

// A Reading is a parsed command line.
type Reading struct {
	Args   []string   // as passed to the parser
	Helped bool       // help was requested and written
	Verb   *kong.Node // nil: there are errors other than unknown flags
	Faults []error    // what is wrong
	Hint   string     // the command that lists what is allowed
}

// Read parses the arguments after the program's name. Its error means that help could not be written.
func (g *Grammar) Read(args []string) (*Reading, error) {
	r := &Reading{Args: g.everything(translateUsual(normalize(args)))}
	r.Hint = helps(g.Model, r.Args)
	if err := known(g.Model, r.Args); err != nil {
		r.Faults = []error{err}
		return r, nil
	}
	r.Args, r.Faults = g.unknownFlags(r.Args)
	r.Hint = helps(g.Model, r.Args)
	k, err := g.parser.Parse(r.Args)
	if g.helped {
		r.Helped = true
		return r, nil
	}
	if unshown := (*fs.PathError)(nil); errors.As(err, &unshown) { // of help
		return nil, fmt.Errorf("writing the help: %w", err)
	}
	if err == nil {
		err = repeated(k)
	}
	switch {
	case err == nil:
		r.Verb = k.Selected()
	case len(r.Faults) == 0 || !strings.HasPrefix(err.Error(), "expected "): // the missing argument may have been taken by an unknown flag
		r.Faults = append(r.Faults, explained(err))
	}
	return r, nil
}

// isOption reports whether a driver has an option of this name.
func (g *Grammar) isOption(name string) bool {
	return slices.ContainsFunc(g.drivers, func(d driver.Definition) bool {
		return d.New != nil && driver.HasOption(d.New(), name)
	})
}
