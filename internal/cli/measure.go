package cli

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/truth"
)

// measure starts the system where weir does, and runs the engine. A nil Raw
// comes with an error.
func (m *measurement) measure(ctx context.Context) (*engine.Raw, error) {
	s := m.scenario
	var raw *engine.Raw
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := m.listen(ctx, cancel)
	if m.id, m.run = identify(); m.paused != nil {
		m.id, m.run = m.paused.Run, m.paused.Number
	}
	if m.fleet != nil && m.paused == nil { // before anything is touched
		if err := m.fleet.May(ctx, m.choose(), s.Needs()); err != nil {
			return nil, err
		}
	}
	if m.startOn != "" {
		end, err := m.bringUpThere(ctx, stop)
		if err != nil {
			return nil, err
		}
		defer end()
	} else if s.System.Start != scenario.StartNone && m.paused == nil {
		m.view.Doing("starting " + s.System.Definition.Name)
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
		running, err := m.bringUp(starting)
		abort()
		if err != nil {
			if isClosed(stop) {
				err = fmt.Errorf("%w (%w)", err, context.Canceled)
			}
			return nil, fmt.Errorf("starting %s: %w", s.System.Definition.Name, err)
		}
		defer func() {
			m.mu.Lock()
			m.ended = true
			m.mu.Unlock()
			limit := 20 * time.Second
			if raw != nil && raw.Gone != nil { // what is left of a cluster cannot end in order; its guard ends it, also after us
				limit = 5 * time.Second
			}
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			if err := running.Stop(ending); !m.tellOfDeaths() && err != nil {
				m.complain(fmt.Errorf("stopping %s: %w", s.System.Definition.Name, err))
			}
		}()
		if err := s.Connect(running.Address, running.Options); err != nil {
			return nil, fmt.Errorf("connecting %s: %w", s.System.Definition.Name, err)
		}
		m.running = running
		m.view.Note("started %s at %s", m.what(), strings.Join(running.Address, ", "))
	}
	if warning := heedMemory(s); warning != "" {
		m.env.say("weir: %s", warning)
	}
	m.view.Doing("calibrating the pacing clock")
	var err error
	cfg := s.Config(m.id, m.run)
	cfg.FIFO = m.fifo && m.fleet == nil // of a fleet it is the agents' matter
	cfg.Pace(runtime.NumCPU())
	if cfg.FIFO && !cfg.Calibration.FIFO {
		m.view.Note("%s: a lane %s", flagFIFO, cfg.Calibration.Why)
	}
	cfg.Clock = pace.NewClock()
	cfg.Log = m.env.log
	cfg.OnStart, cfg.OnInterval = m.start, m.interval
	cfg.OnEvent = m.event
	m.calibration = cfg.Calibration
	if m.cost, err = truth.Cost(ctx, cfg.Plan, cfg.Calibration, cfg.Lanes); err != nil {
		return nil, err
	}
	m.begin(ctx, cfg.Lanes)
	defer m.watchServers(cfg.Clock)()
	m.view.Doing("connecting")
	until := m.until(ctx, stop)
	if m.fleet != nil {
		raw, err = m.far(ctx, until, cfg)
	} else {
		raw, err = fleet.Local(ctx, until, cfg)
	}
	if raw != nil && !isClosed(stop) && m.enough != nil && isClosed(m.enough) {
		raw.Interrupted = false // by nobody: it was long enough
	}
	if raw == nil && err == nil {
		err = errors.New("the engine returned nothing")
	}
	if raw == nil && isClosed(stop) && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w (%w)", err, context.Canceled)
	}
	return raw, err
}

// until returns what ends the run before its time: a signal, or that its
// objectives are decided where that was asked for.
func (m *measurement) until(ctx context.Context, stop <-chan struct{}) <-chan struct{} {
	if !m.scenario.Until {
		return stop
	}
	m.early, m.enough = judge.WatchFor(m.scenario.Objectives, &m.slices), make(chan struct{})
	either := make(chan struct{})
	go func() {
		select {
		case <-m.enough:
			close(either)
		case <-stop:
			close(either)
		case <-ctx.Done():
		}
	}()
	return either
}

// bringUp starts the system as the scenario has it: what weir embeds, or real
// servers, which are installed first where they are not there yet.
func (m *measurement) bringUp(ctx context.Context) (*broker.Running, error) {
	sys := &m.scenario.System
	if sys.Start == scenario.StartEmbedded {
		return broker.StartEmbedded(ctx, broker.Embedded{
			Self: m.env.Self, Definition: sys.Definition, Nodes: sys.Nodes, Options: m.scenario.ServerOptions(), Log: m.env.log,
			OnEvent: m.serverEvent,
		})
	}
	running, installed, err := m.env.serveSystem(ctx, sys, "", func(line string) { m.view.Note("%s: %s", sys.Recipe.Name, line) }, m.serverEvent)
	m.installed = installed
	return running, err
}

// serveSystem starts real servers, which are installed first where they are not
// there yet. bind is where they listen, "": on loopback.
func (e *env) serveSystem(ctx context.Context, sys *scenario.System, bind string, note func(string), event func(broker.ServerEvent)) (*broker.Running, *broker.Installation, error) {
	cache, err := broker.CacheDir(e.Env)
	if err != nil {
		return nil, nil, err
	}
	installed, err := broker.Ensure(ctx, broker.Installing{Self: e.Self, Driver: sys.Definition.Name, Recipe: sys.Recipe, Cache: cache, Note: note})
	if err != nil {
		return nil, nil, err
	}
	running, err := broker.StartSystem(ctx, broker.Serving{
		Self: e.Self, Definition: sys.Definition, Recipe: sys.Recipe, Nodes: sys.Nodes, Settings: sys.ForRecipe, Bind: bind, Cache: cache, Log: e.log,
		OnEvent: event,
	})
	return running, installed, err
}

// what names the system that was started, and in how many processes it is.
func (m *measurement) what() string {
	if m.scenario.System.Start == scenario.StartEmbedded {
		return m.scenario.System.Definition.Name + " in a process of its own"
	}
	n := len(m.running.Processes)
	if n == 1 {
		return m.scenario.System.Recipe.Title + " in a process of its own"
	}
	return fmt.Sprintf("%s in %d processes of their own", m.scenario.System.Recipe.Title, n)
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
					m.view.Note("stopping at once")
					cancel()
					return
				}
				m.view.Note("stopping: what is under way is waited for; once more stops at once")
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

// complain tells of an error of this run.
func (m *measurement) complain(err error) {
	if m.which != "" {
		err = fmt.Errorf("%s: %w", m.which, err)
	}
	m.env.complain(err)
}

// refuse tells why a run gave no figures, in one line, and after it what may
// help.
func (m *measurement) refuse(err error) {
	if codeOf(err) == Interrupted { // what it interrupted is not what went wrong
		m.complain(errors.New("interrupted before the first message: nothing was measured"))
		return
	}
	m.complain(errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
	if s := m.scenario.System; errors.Is(err, driver.ErrUnreachable) && s.Start == scenario.StartNone && s.Definition.Serve != nil {
		m.env.say("where neither an address nor start is given, weir starts %s itself", s.Definition.Name)
	}
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
