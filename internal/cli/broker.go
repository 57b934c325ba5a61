package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// brokerCommand is `weir broker`.
type brokerCommand struct {
	Install brokerInstall `cmd:"" help:"Install a system's programs into the cache."`
	Up      brokerUp      `cmd:"" help:"Start a system that stays up until weir broker down."`
	Status  brokerStatus  `cmd:"" help:"List the systems that weir can start, and those that are up."`
	Logs    brokerLogs    `cmd:"" help:"Print where the logs of a system are, and their ends."`
	Down    brokerDown    `cmd:"" help:"End a system that is up, and remove its folder."`
}

// brokerHelp is shared by the verbs.
const brokerHelp = "Recipes start real servers, each in a process of its own, on free ports of 127.0.0.1. weir broker status lists them. " +
	"weir installs into the folder weir in the user's cache folder, or into WEIR_CACHE. With --start process a run starts and ends a system by itself."

// brokerInstall is `weir broker install`.
type brokerInstall struct {
	Name string `arg:"" placeholder:"SYSTEM" help:"The system, or a driver."`
}

// Help is shown below the verb's flags' heading.
func (*brokerInstall) Help() string { return brokerHelp }

// brokerUp is `weir broker up`.
type brokerUp struct {
	Name  string   `arg:"" placeholder:"SYSTEM" help:"The system, or a driver."`
	Nodes int      `default:"1" placeholder:"N" help:"How many servers form it (1)."`
	Set   []string `sep:"none" placeholder:"SETTING=VALUE" help:"One of the settings that weir broker status NAME lists; may be repeated (none)."`
	Via   string   `enum:"process,docker" default:"process" help:"process starts it here; docker only writes a compose file (process)."`
	Out   string   `placeholder:"FILE" help:"With --via docker the file, which must not exist; - is stdout (weir-NAME.compose.yaml)."`
}

// Help is shown below the verb's flags' heading.
func (*brokerUp) Help() string { return brokerHelp }

// brokerStatus is `weir broker status`.
type brokerStatus struct {
	Name    string `arg:"" optional:"" placeholder:"SYSTEM" help:"The system to show all about; without a name, list all."`
	JSON    bool   `name:"json" help:"Print a JSON object on stdout."`
	NoColor bool   `help:"No colour."`
}

// brokerLogs is `weir broker logs`.
type brokerLogs struct {
	Name  string `arg:"" placeholder:"SYSTEM" help:"The system."`
	Lines int    `default:"20" placeholder:"N" help:"How many lines of each log (20)."`
}

// brokerDown is `weir broker down`.
type brokerDown struct {
	Name string `arg:"" optional:"" placeholder:"SYSTEM" help:"The system."`
	All  bool   `help:"Every system that is up."`
}

// brokers is what the verbs work on.
type brokers struct {
	*env
	cache   string
	entries []broker.Entry
}

// brokers reads the recipes, and finds the cache and the system with a name, or of a driver. If the name is
// optional, x is empty without one. It reports errors with a code that is not OK.
func (e *env) brokers(name string, optional bool) (b *brokers, x broker.Entry, code Code) {
	b = &brokers{env: e}
	var err error
	if b.cache, err = broker.CacheDir(e.Env); err == nil {
		b.entries, err = broker.Catalog(e.registry)
	}
	if err != nil {
		return nil, x, usage(e, err)
	}
	if name != "" || !optional {
		if x, err = broker.Named(b.entries, e.registry, name); err != nil {
			return nil, x, e.fail(err)
		}
	}
	return b, x, OK
}

// ensure installs a system's programs unless installed.
func (b *brokers) ensure(ctx context.Context, x broker.Entry) (*broker.Installation, error) {
	return broker.Ensure(ctx, broker.Installing{
		Self: b.Self, Driver: x.Definition.Name, Recipe: x.Recipe, Cache: b.cache,
		Note: func(line string) { b.say("%s: %s", x.Recipe.Name, line) },
	})
}

// run installs.
func (c *brokerInstall) run(ctx context.Context, e *env) Code {
	b, x, code := e.brokers(c.Name, false)
	if code != OK {
		return code
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	in, err := b.ensure(ctx, x)
	if err != nil {
		return e.fail(err)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(in.Programs)) {
		lines = append(lines, in.Programs[name])
	}
	if len(lines) == 0 {
		lines = []string{in.Dir}
	}
	if _, err := fmt.Fprintln(e.Stdout, strings.Join(lines, "\n")); err != nil {
		return Failed // there is no reader to report it to
	}
	if in.Source == "host" {
		e.say("%s: already on this host; weir uses the host's own", x.Recipe.Name)
	}
	return OK
}

// run starts a system, or writes a compose file.
func (c *brokerUp) run(ctx context.Context, e *env) Code {
	b, x, code := e.brokers(c.Name, false)
	if code != OK {
		return code
	}
	settings, err := broker.ParseSettings(c.Set)
	if err != nil {
		return usage(e, fmt.Errorf("--set: %w", err))
	}
	if c.Nodes < 1 {
		return usage(e, fmt.Errorf("--nodes: %d is too few (1 and more)", c.Nodes))
	}
	if c.Via == "docker" {
		return c.compose(e, x, settings)
	}
	if c.Out != "" {
		return usage(e, errors.New("--out is for --via docker (leave it out)"))
	}
	s := broker.Serving{Self: e.Self, Definition: x.Definition, Recipe: x.Recipe, Nodes: c.Nodes, Settings: settings, Cache: b.cache}
	if err := cmp.Or(s.Check(), s.Fits()); err != nil {
		return e.fail(err)
	}
	if k, err := broker.KeptNamed(b.cache, x.Recipe.Name); err != nil {
		return e.fail(err)
	} else if k != nil && k.Up {
		return usage(e, fmt.Errorf("%s is already up at %s (weir broker down %s)", k.Name, strings.Join(k.Address, ", "), k.Name))
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	if _, err := b.ensure(ctx, x); err != nil {
		return e.fail(err)
	}
	e.say("%s: starting %s", x.Recipe.Name, quantity.Counted(c.Nodes, "node", "nodes"))
	k, err := broker.Keep(ctx, s)
	if err != nil {
		if ctx.Err() != nil {
			return e.because(Interrupted, fmt.Errorf("interrupted: %s was not started", x.Recipe.Name))
		}
		return e.fail(err)
	}
	e.say("%s is up; weir broker down %s ends it", k.Name, k.Name)
	for _, d := range x.Drivers {
		e.say("  %s", view.MeasuringCommand(d, k.Address, k.Options, d == k.Driver))
	}
	_, err = fmt.Fprintln(e.Stdout, strings.Join(k.Address, "\n"))
	return unheard(err)
}

// compose writes the compose file.
func (c *brokerUp) compose(e *env, x broker.Entry, settings map[string]string) Code {
	f, err := broker.Compose(x.Recipe, c.Nodes, settings)
	if err != nil {
		return e.fail(err)
	}
	if c.Out == "-" {
		_, err = e.Stdout.Write(f.File)
		return unheard(err)
	}
	name := c.Out
	if name == "" {
		name = "weir-" + x.Recipe.Name + ".compose.yaml"
	}
	if err := layout.NewFile(e.path(name), f.File); err != nil {
		return usage(e, fmt.Errorf("writing the compose file: %w (--out names another)", err))
	}
	e.say("wrote %s: %s", name, strings.Join(f.Images, ", "))
	e.say("  docker compose -f %s up -d", name)
	for _, d := range x.Drivers {
		e.say("  %s", view.MeasuringCommand(d, f.Address, f.Options[d], true))
	}
	e.say("  docker compose -f %s down -v", name)
	return OK
}

// run prints the logs.
func (c *brokerLogs) run(_ context.Context, e *env) Code {
	b, x, code := e.brokers(c.Name, false)
	if code != OK {
		return code
	}
	if c.Lines < 0 || c.Lines > 10_000 {
		return usage(e, fmt.Errorf("--lines: %d is out of range (0 to 10000)", c.Lines))
	}
	k, err := broker.KeptNamed(b.cache, x.Recipe.Name)
	if err != nil {
		return e.fail(err)
	}
	if k == nil {
		return usage(e, fmt.Errorf("%s is not up (weir broker up %s)", x.Recipe.Name, x.Recipe.Name))
	}
	p := new(layout.Page)
	view.ShowLogs(p, k, c.Lines)
	return unheard(e.show(p, true))
}

// downLimit is the time limit for stopping a system.
const downLimit = 2 * time.Minute

// run stops systems.
func (c *brokerDown) run(ctx context.Context, e *env) Code {
	if c.All == (c.Name != "") {
		return usage(e, errors.New("which system? (a name, or --all)"))
	}
	b, x, code := e.brokers(c.Name, true)
	if code != OK {
		return code
	}
	var names []string
	if !c.All {
		names = []string{x.Recipe.Name}
	} else {
		all, err := broker.AllKept(b.cache)
		if err != nil {
			return e.fail(err)
		}
		for _, k := range all {
			names = append(names, k.Name)
		}
		if len(names) == 0 {
			e.say("no system is up")
		}
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	for _, n := range names {
		ending, cancel := context.WithTimeout(ctx, downLimit)
		was, err := broker.Down(ending, b.cache, n)
		cancel()
		switch {
		case err != nil:
			code = worst(code, e.fail(err))
		case was:
			e.say("%s is down", n)
		default:
			e.say("%s was not up", n)
		}
	}
	return code
}

// run lists the systems.
func (c *brokerStatus) run(ctx context.Context, e *env) Code {
	b, x, code := e.brokers(c.Name, true)
	if code != OK {
		return code
	}
	entries := b.entries
	if c.Name != "" {
		entries = []broker.Entry{x}
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	l := view.SystemList{Schema: "weir.brokers/v1", Weir: buildinfo.Version(), Cache: b.cache, Systems: []view.System{}}
	for _, x := range entries {
		s, err := lookAt(ctx, b.cache, x, e.registry)
		if err != nil {
			return e.fail(err)
		}
		l.Systems = append(l.Systems, *s)
	}
	show := l.Show
	if c.Name != "" {
		show = l.Systems[0].Show
	}
	return e.printed("the systems", e.answer(c.JSON, l, c.NoColor, show))
}

// lookAt inspects one system.
func lookAt(ctx context.Context, cache string, x broker.Entry, drivers *driver.Registry) (*view.System, error) {
	s := &view.System{DriverRecipe: view.RecipeOf(x.Recipe), Drivers: x.Drivers, Settings: view.SettingsOf(x.Recipe, "")}
	in, err := broker.Installed(ctx, x.Recipe, cache)
	switch {
	case err != nil:
		s.Lacks = err.Error()
	case in != nil && in.Source == "host":
		s.Installed = "host"
	case in != nil:
		s.Installed = in.Dir
	}
	if s.Kept, err = broker.KeptNamed(cache, x.Recipe.Name); err != nil || s.Kept == nil || !s.Kept.Up {
		return s, err
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	f, err := s.Kept.Answers(asking, drivers)
	answers := err == nil
	s.Answers = &answers
	if err != nil {
		s.Why = strings.ReplaceAll(err.Error(), "\n", "; ")
	} else {
		s.Server = &f
	}
	return s, nil
}
