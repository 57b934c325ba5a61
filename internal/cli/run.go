package cli

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// runCommand is `weir run`.
type runCommand struct {
	File    string       `arg:"" optional:"" help:"Scenario file; flags win over it."`
	Keys    kong.Plugins `embed:""`
	Option  []string     `sep:"none" placeholder:"NAME=VALUE" group:"Scenario" help:"A driver's own option; may be repeated."`
	Address []string     `sep:"none" placeholder:"ADDRESS" group:"Scenario" help:"Where the system is, as its driver takes it."`
	Out     *string      `placeholder:"DIR" help:"Result folder (results/<time>-<name>)."`
	JSON    bool         `name:"json" help:"Print result.json on stdout and everything else on stderr."`
	Quiet   bool         `help:"No progress."`
	NoColor bool         `help:"No colour, no rewriting of lines."`

	keys *keyFlags
}

// run does the main job: resolve, prepare, measure, write, show.
func (c *runCommand) run(ctx context.Context, e *env) Code {
	s, err := c.resolve(e)
	if err != nil {
		if faults := (scenario.Faults)(nil); errors.As(err, &faults) {
			for _, f := range faults {
				e.say("%v", f)
			}
		} else {
			e.complain(err)
		}
		return Usage
	}
	started := time.Now().UTC()
	dir, folder, err := c.create(e, started.Format("20060102T150405Z")+"-"+s.Name)
	if err != nil {
		e.complain(err)
		return Usage
	}
	m := &measurement{env: e, scenario: s, folder: folder, dir: dir, started: started, progress: c.progress(e, s)}
	raw, err := m.measure(ctx)
	m.progress.done()
	if raw == nil {
		m.abandon()
		m.refuse(err)
		return codeOf(err)
	}
	var codes []Code
	if err != nil {
		e.complain(err)
		codes = append(codes, Failed)
	}
	r, code := m.compose(raw)
	codes = append(codes, code)
	whole := true
	if err := m.write(ctx, raw, r); err != nil {
		whole = false
		for line := range strings.SplitSeq(err.Error(), "\n") {
			e.complain(fmt.Errorf("writing the result: %s", line))
		}
		codes = append(codes, Failed)
	}
	if err := c.show(e, r, dir, whole); err != nil {
		e.complain(fmt.Errorf("showing the result: %w", err))
		codes = append(codes, Failed)
	}
	return worst(codes...)
}

// resolve reads the file and the flags.
func (c *runCommand) resolve(e *env) (*scenario.Scenario, error) {
	if c.Out != nil && *c.Out == "" {
		return nil, errors.New("--out: is empty (a folder that does not exist yet, or leave it out)")
	}
	// Absolute, so that the resolved scenario names files that are found from
	// everywhere.
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the working folder: %w", err)
	}
	in := scenario.Inputs{
		File:      c.File,
		Overrides: c.keys.overrides(),
		Drivers:   e.registry,
		Env:       e.Env,
		ReadFile:  func(p string) ([]byte, error) { return readFile(e.path(p), 256<<20) },
		Dir:       dir,
	}
	options, err := optionOverrides(c.Option, c.Address)
	if err != nil {
		return nil, err
	}
	in.Overrides = append(in.Overrides, options...)
	if c.File != "" {
		if in.Text, err = readFile(e.path(c.File), scenario.MaxFile+1); err != nil {
			return nil, fmt.Errorf("reading the scenario: %w", err)
		}
	}
	runs, err := scenario.Resolve(in)
	if err != nil {
		return nil, err
	}
	return runs[0], nil
}

// mostSuffix is how many runs of one name within one second get a folder each.
const mostSuffix = 99

// create makes the result folder: the one asked for, which must not exist, or
// results/name, or results/name-2, -3 and so on where that exists.
func (c *runCommand) create(e *env, name string) (dir string, folder *result.Folder, err error) {
	if c.Out != nil {
		folder, err = result.Create(e.path(*c.Out))
		return *c.Out, folder, err
	}
	for n := 1; n <= mostSuffix; n++ {
		dir = filepath.Join("results", name)
		if n > 1 {
			dir += fmt.Sprintf("-%d", n)
		}
		if folder, err = result.Create(e.path(dir)); !errors.Is(err, result.ErrExists) {
			break
		}
	}
	return dir, folder, err
}

// refuse tells why a run gave no figures, in one line, and after it what may
// help.
func (m *measurement) refuse(err error) {
	m.env.complain(errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
	if errors.Is(err, engine.ErrGuarantee) {
		m.env.say("what it confirms is set by the system and the driver's options%s: see driver %s", durable(m.scenario), m.scenario.System.Definition.Name)
	}
}

// durable names the driver's options that are about what is synchronised.
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

// path makes a path of the user's absolute.
func (e *env) path(p string) string {
	if filepath.IsAbs(p) || e.Dir == "" {
		return p
	}
	return filepath.Join(e.Dir, p)
}

// readFile reads at most limit bytes of a regular file or a pipe.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if st.IsDir() {
		return nil, fmt.Errorf("%s is a folder", path)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// show prints the table, or result.json with the table on stderr.
func (c *runCommand) show(e *env, r *result.Result, dir string, whole bool) error {
	table := e.Stdout
	if c.JSON {
		table = e.Stderr
		b, err := result.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := e.Stdout.Write(b); err != nil {
			return err
		}
	}
	return report.Text(table, r, report.Options{Dir: dir, Partly: !whole, Colour: e.color(c.NoColor, c.JSON)})
}

func (c *runCommand) progress(e *env, s *scenario.Scenario) *progress {
	p := &progress{
		rewrite:   e.StderrTerminal && !c.NoColor,
		width:     e.Width,
		warmUp:    int64(s.WarmUp),
		end:       int64(s.Length()),
		closed:    s.Load.Closed,
		consuming: s.Mode == engine.Consume,
	}
	if !c.Quiet {
		p.w = e.Stderr
	}
	return p
}

// measure starts the system where weir does, and runs the engine. A nil Raw
// comes with an error.
func (m *measurement) measure(ctx context.Context) (*engine.Raw, error) {
	s := m.scenario
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := m.listen(ctx, cancel)
	if s.System.Start == scenario.StartEmbedded {
		// Before the first message there is nothing to drain: a first signal
		// ends the starting.
		starting, abort := context.WithCancel(ctx)
		go func() {
			select {
			case <-stop:
				abort()
			case <-starting.Done():
			}
		}()
		running, err := broker.StartEmbedded(starting, broker.Embedded{
			Self: m.env.Self, Definition: s.System.Definition, Nodes: s.System.Nodes, Options: s.ServerOptions(), Log: m.env.log,
		})
		abort()
		if err != nil {
			if isClosed(stop) {
				err = fmt.Errorf("%w (%w)", err, context.Canceled)
			}
			return nil, fmt.Errorf("starting %s: %w", s.System.Definition.Name, err)
		}
		defer func() {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
			defer cancel()
			if err := running.Stop(ending); err != nil {
				m.env.complain(fmt.Errorf("stopping %s: %w", s.System.Definition.Name, err))
			}
		}()
		if err := s.Connect(running.Address); err != nil {
			return nil, fmt.Errorf("connecting %s: %w", s.System.Definition.Name, err)
		}
		m.progress.note("started %s in a process of its own at %s", s.System.Definition.Name, strings.Join(running.Address, ", "))
	}
	m.id, m.run = identify()
	cfg := s.Config(m.id, m.run)
	cfg.Lanes = engine.LanesFor(cfg.Plan, runtime.NumCPU())
	cfg.Calibration = pace.Calibrate(cfg.Lanes)
	cfg.Clock = pace.NewClock()
	cfg.Log = m.env.log
	cfg.OnStart, cfg.OnInterval = m.start, m.interval
	cfg.OnEvent = m.event
	m.calibration = cfg.Calibration
	m.begin(ctx, cfg.Lanes)
	raw, err := engine.Run(ctx, stop, cfg)
	if raw == nil && err == nil {
		err = errors.New("the engine returned nothing")
	}
	if raw == nil && isClosed(stop) && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w (%w)", err, context.Canceled)
	}
	return raw, err
}

// listen closes the channel that it returns at the first signal and calls
// cancel at the second. It ends with ctx.
func (m *measurement) listen(ctx context.Context, cancel context.CancelFunc) <-chan struct{} {
	stop := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-m.env.Signals:
				if !ok {
					return
				}
				if n > 1 {
					m.progress.note("stopping at once")
					cancel()
					return
				}
				m.progress.note("stopping: what is under way is waited for; once more stops at once")
				close(stop)
			}
		}
	}()
	return stop
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// identify returns a name and a number that no other run has.
func identify() (id string, run uint32) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("weir-%x", b[:6]), binary.LittleEndian.Uint32(b[4:])
}
