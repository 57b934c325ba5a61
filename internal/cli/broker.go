package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/driverpage"
	"github.com/weirmq/weir/internal/form"
	"github.com/weirmq/weir/internal/layout"
)

// brokerCommand is `weir broker`.
type brokerCommand struct {
	Install brokerInstall `cmd:"" help:"Install a system's programs into the cache."`
	Up      brokerUp      `cmd:"" help:"Start a system that stays up until weir broker down."`
	Status  brokerStatus  `cmd:"" help:"List the systems that weir can start, and those that are up."`
	Logs    brokerLogs    `cmd:"" help:"Print where the logs of a system are, and their ends."`
	Down    brokerDown    `cmd:"" help:"End a system that is up, and remove its folder."`
}

// brokerHelp is common to the verbs.
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

// brokers reads the recipes and finds the cache.
func (e *env) brokers() (*brokers, error) {
	cache, err := broker.CacheDir(e.Env)
	if err != nil {
		return nil, err
	}
	entries, err := broker.Catalog(e.registry)
	if err != nil {
		return nil, err
	}
	return &brokers{e, cache, entries}, nil
}

// named returns the system of a name, or of a driver.
func (b *brokers) named(name string) (broker.Entry, error) {
	return broker.Named(b.entries, b.registry, name)
}

// stoppable returns a context that the first signal ends.
func (e *env) stoppable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-e.Signals: // nil: never
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// interruptible returns f's code, or Interrupted at the first signal or when ctx
// ends: f, which heeds neither, is then left to itself, for the process ends.
func (e *env) interruptible(ctx context.Context, f func() Code) Code {
	code := make(chan Code, 1)
	go func() { code <- f() }()
	select {
	case c := <-code:
		return c
	case <-e.Signals: // nil: never
	case <-ctx.Done():
	}
	e.complain(errors.New("interrupted"))
	return Interrupted
}

// fail tells of an error in one line and returns its code.
func (e *env) fail(err error) Code {
	code := codeOf(err)
	if errors.Is(err, broker.ErrKept) {
		code = Usage
	}
	// The code says it.
	text := strings.TrimPrefix(err.Error(), driver.ErrUnsupported.Error()+": ")
	if rest, ok := strings.CutSuffix(text, ": "+context.Canceled.Error()); ok && code == Interrupted {
		text = "interrupted: " + rest
	}
	e.complain(errors.New(strings.ReplaceAll(text, "\n", "; ")))
	return code
}

// ensure installs a system's programs where they are not there yet.
func (b *brokers) ensure(ctx context.Context, x broker.Entry) (*broker.Installation, error) {
	return broker.Ensure(ctx, broker.Installing{
		Self: b.Self, Driver: x.Definition.Name, Recipe: x.Recipe, Cache: b.cache,
		Note: func(line string) { b.say("%s: %s", x.Recipe.Name, line) },
	})
}

// run installs.
func (c *brokerInstall) run(ctx context.Context, e *env) Code {
	b, err := e.brokers()
	if err != nil {
		return usage(e, err)
	}
	x, err := b.named(c.Name)
	if err != nil {
		return e.fail(err)
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
		return Failed // there is no reader to tell
	}
	if in.Source == "host" {
		e.say("%s: already on this host; weir uses the host's own", x.Recipe.Name)
	}
	return OK
}

// usage tells of an error of what the user gave.
func usage(e *env, err error) Code {
	e.complain(errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
	return Usage
}

// settings reads --set.
func (c *brokerUp) settings() (map[string]string, error) {
	out := map[string]string{}
	for _, s := range c.Set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("--set: %q has no = (NAME=VALUE)", s)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("--set: %s is given twice (once)", name)
		}
		out[name] = value
	}
	return out, nil
}

// run starts a system, or writes a compose file.
func (c *brokerUp) run(ctx context.Context, e *env) Code {
	b, err := e.brokers()
	if err != nil {
		return usage(e, err)
	}
	x, err := b.named(c.Name)
	if err != nil {
		return e.fail(err)
	}
	settings, err := c.settings()
	if err != nil {
		return usage(e, err)
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
	e.say("%s: starting %d %s", x.Recipe.Name, c.Nodes, plural(c.Nodes, "node"))
	k, err := broker.Keep(ctx, s)
	if err != nil {
		if ctx.Err() != nil {
			e.complain(fmt.Errorf("interrupted: %s was not started", x.Recipe.Name))
			return Interrupted
		}
		return e.fail(err)
	}
	e.say("%s is up; weir broker down %s ends it", k.Name, k.Name)
	for _, d := range x.Drivers {
		e.say("  %s", measuring(d, k.Address, k.Options, d == k.Driver))
	}
	if _, err := fmt.Fprintln(e.Stdout, strings.Join(k.Address, "\n")); err != nil {
		return Failed // there is no reader to tell
	}
	return OK
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// measuring is the command that measures a system that is up.
func measuring(name string, address []string, options map[string][]string, whole bool) string {
	line := "weir run --driver " + name
	for _, a := range address {
		line += " --address " + a
	}
	if whole {
		for _, o := range slices.Sorted(maps.Keys(options)) {
			line += " --option " + o + "=" + strings.Join(options[o], ",")
		}
	}
	return line
}

// compose writes the compose file.
func (c *brokerUp) compose(e *env, x broker.Entry, settings map[string]string) Code {
	f, err := broker.Compose(x.Recipe, c.Nodes, settings)
	if err != nil {
		return e.fail(err)
	}
	if c.Out == "-" {
		if _, err := e.Stdout.Write(f.File); err != nil {
			return Failed // there is no reader to tell
		}
		return OK
	}
	name := c.Out
	if name == "" {
		name = "weir-" + x.Recipe.Name + ".compose.yaml"
	}
	if err := form.NewFile(e.path(name), f.File); err != nil {
		return usage(e, fmt.Errorf("writing the compose file: %w (--out names another)", err))
	}
	e.say("wrote %s: %s", name, strings.Join(f.Images, ", "))
	e.say("  docker compose -f %s up -d", name)
	for _, d := range x.Drivers {
		e.say("  %s", measuring(d, f.Address, f.Options[d], true))
	}
	e.say("  docker compose -f %s down -v", name)
	return OK
}

// run prints the logs.
func (c *brokerLogs) run(_ context.Context, e *env) Code {
	b, err := e.brokers()
	if err != nil {
		return usage(e, err)
	}
	x, err := b.named(c.Name)
	if err != nil {
		return e.fail(err)
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
	for _, proc := range k.Processes {
		for _, name := range proc.Logs {
			showLog(p, proc.Name+": "+name, name, c.Lines)
		}
	}
	showLog(p, "weir: "+k.Log, k.Log, c.Lines)
	if err := e.show(p, true); err != nil {
		return Failed // there is no reader to tell
	}
	return OK
}

// showLog writes the end of a log.
func showLog(p *layout.Page, title, name string, lines int) {
	p.Verbatim(title)
	text, err := broker.LogEnd(name, lines)
	if err != nil {
		text = []string{strings.TrimPrefix(err.Error(), "open ")}
	}
	p.Inset(2).Verbatim(text...)
}

// downLimit bounds the ending of one system.
const downLimit = 2 * time.Minute

// run ends systems.
func (c *brokerDown) run(ctx context.Context, e *env) Code {
	b, err := e.brokers()
	if err != nil {
		return usage(e, err)
	}
	var names []string
	switch {
	case c.All == (c.Name != ""):
		return usage(e, errors.New("which system? (a name, or --all)"))
	case c.All:
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
	default:
		x, err := b.named(c.Name)
		if err != nil {
			return e.fail(err)
		}
		names = []string{x.Recipe.Name}
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	code := OK
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

// A brokerList is what status --json prints.
type brokerList struct {
	Schema  string         `json:"schema"`
	Weir    string         `json:"weir"`
	Cache   string         `json:"cache"`
	Systems []brokerSystem `json:"systems"`
}

// A brokerSystem is one of them.
type brokerSystem struct {
	driverpage.Recipe
	Drivers   []string            `json:"drivers"`
	Settings  []driverpage.Option `json:"settings"`
	Installed string              `json:"installed,omitempty"` // folder, or "host"; absent: not installed
	Lacks     string              `json:"lacks,omitempty"`     // what the host lacks to install or start it
	Kept      *broker.Kept        `json:"kept,omitempty"`      // that is up, or was
	Answers   *bool               `json:"answers,omitempty"`   // of one that is up: its driver was answered
	Server    *driver.Facts       `json:"-"`
	Why       string              `json:"why,omitempty"` // it does not answer
}

// run lists the systems.
func (c *brokerStatus) run(ctx context.Context, e *env) Code {
	b, err := e.brokers()
	if err != nil {
		return usage(e, err)
	}
	entries := b.entries
	if c.Name != "" {
		x, err := b.named(c.Name)
		if err != nil {
			return e.fail(err)
		}
		entries = []broker.Entry{x}
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	l := brokerList{Schema: "weir.brokers/v1", Weir: buildinfo.Version(), Cache: b.cache, Systems: []brokerSystem{}}
	for _, x := range entries {
		s, err := b.look(ctx, x)
		if err != nil {
			return e.fail(err)
		}
		l.Systems = append(l.Systems, *s)
	}
	show := l.show
	if c.Name != "" {
		show = l.Systems[0].show
	}
	if err := e.answer(c.JSON, l, c.NoColor, show); err != nil {
		e.complain(fmt.Errorf("writing the systems: %w", err))
		return Failed
	}
	return OK
}

// look finds out what is so of one system.
func (b *brokers) look(ctx context.Context, x broker.Entry) (*brokerSystem, error) {
	s := &brokerSystem{Recipe: driverpage.RecipeOf(x.Recipe), Drivers: x.Drivers, Settings: []driverpage.Option{}}
	for _, name := range slices.Sorted(maps.Keys(x.Recipe.Settings)) {
		o := x.Recipe.Settings[name]
		s.Settings = append(s.Settings, driverpage.Option{Name: name, Type: "text", Default: o.Default, Help: o.Help, Allowed: o.Allowed})
	}
	in, err := broker.Installed(ctx, x.Recipe, b.cache)
	switch {
	case err != nil:
		s.Lacks = err.Error()
	case in != nil && in.Source == "host":
		s.Installed = "host"
	case in != nil:
		s.Installed = in.Dir
	}
	if s.Kept, err = broker.KeptNamed(b.cache, x.Recipe.Name); err != nil || s.Kept == nil || !s.Kept.Up {
		return s, err
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	f, err := s.Kept.Answers(asking, b.registry)
	answers := err == nil
	s.Answers = &answers
	if err != nil {
		s.Why = strings.ReplaceAll(err.Error(), "\n", "; ")
	} else {
		s.Server = &f
	}
	return s, nil
}

// state says in some words how a system is.
func (s *brokerSystem) state() string {
	switch k := s.Kept; {
	case s.Source == "docker":
		return "docker only"
	case k == nil && s.Lacks != "":
		return "cannot be started here"
	case k == nil && s.Installed == "":
		return "not installed"
	case k == nil:
		return "installed"
	case k.Ended != "":
		return "ended by itself"
	case !k.Up:
		return "gone: its supervisor was killed"
	case s.Answers != nil && !*s.Answers:
		return "up, does not answer"
	default:
		return "up: " + strings.Join(k.Address, ", ")
	}
}

// show puts the list on a page.
func (l *brokerList) show(p *layout.Page) {
	t := layout.Listing("system", "", "from", "nodes", "state")
	for i := range l.Systems {
		s := &l.Systems[i]
		t.Row(s.Name, s.Title+" "+s.Version, s.Source, numbers(s.Nodes), s.state())
	}
	p.Table(t)
	p.Gap()
	p.Say("weir broker status NAME shows all about one. Installs are in " + l.Cache)
}

func numbers(list []int) string {
	var out []string
	for _, n := range list {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ", ")
}

// show puts all about one on a page.
func (s *brokerSystem) show(p *layout.Page) {
	p.Line(layout.Strong.Of(s.String()))
	t := layout.Listing("", "")
	t.Row("state", s.state())
	add := func(name, value string) {
		if value != "" {
			t.Row(name, value)
		}
	}
	add("lacks", s.Lacks)
	add("installed", s.Installed)
	add("drivers", strings.Join(s.Drivers, ", "))
	add("images", strings.Join(s.Images, ", "))
	if k := s.Kept; k != nil {
		add("why", s.Why)
		add("ended", k.Ended)
		if s.Server != nil {
			add("server", s.Server.Name+" "+s.Server.Version)
		}
		add("address", strings.Join(k.Address, ", "))
		for _, proc := range k.Processes {
			add(proc.Name, "processes "+numbers(proc.Pids))
		}
		add("folder", k.Dir)
		add("since", k.Since.Format(time.RFC3339))
		add("keeper", strconv.Itoa(k.Keeper)+", log "+filepath.Clean(k.Log))
	}
	p.Table(t)
	driverpage.ShowOptions(p, "Settings (--set NAME=VALUE; in a scenario server.NAME)", s.Settings)
}
