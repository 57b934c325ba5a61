package series

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/truth"
)

// measure starts the system where weir does, and runs the engine. A nil Raw
// comes with an error. When stop is closed the run drains.
func (m *measurement) measure(ctx context.Context, stop <-chan struct{}) (*engine.Raw, error) {
	s := m.scenario
	var raw *engine.Raw
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if m.id, m.run = identify(); m.paused != nil {
		m.id, m.run = m.paused.Run, m.paused.Number
	}
	if m.fleet != nil && m.paused == nil { // before anything is touched
		if err := m.may(ctx); err != nil {
			return nil, err
		}
	}
	endNetwork, err := m.join(ctx, stop)
	if err != nil {
		return nil, err
	}
	defer endNetwork()
	if m.startOn != "" {
		end, err := m.bringUpThere(ctx, stop)
		if err != nil {
			return nil, err
		}
		defer end()
	} else if s.System.Start != scenario.StartNone && m.paused == nil {
		m.observer.Doing("starting " + s.System.Definition.Name)
		starting, abort := abortable(ctx, stop)
		running, err := m.bringUp(starting)
		abort()
		if err = stopped(err, stop); err != nil {
			return nil, fmt.Errorf("starting %s: %w", s.System.Definition.Name, err)
		}
		defer func() {
			m.mu.Lock()
			m.ended = true
			m.mu.Unlock()
			limit := max(20*time.Second, running.EndsWithin())
			if raw != nil && raw.Gone != nil { // what is left of a cluster cannot end in order; its guard ends it, also after us
				limit = 5 * time.Second
			}
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			if err := running.Stop(ending); !m.tellOfDeaths() && err != nil {
				m.observer.Complain(fmt.Errorf("stopping %s: %w", s.System.Definition.Name, err))
			}
		}()
		if err := s.Connect(running.Address, running.Options); err != nil {
			return nil, fmt.Errorf("connecting %s: %w", s.System.Definition.Name, err)
		}
		m.running = running
		m.mu.Lock()
		m.subject = newSubject(running)
		m.mu.Unlock()
		m.observer.Note("started %s at %s", m.what(), strings.Join(running.Address, ", "))
	}
	if warning := heedMemory(s, m.words); warning != "" {
		m.note("%s", warning)
	}
	m.observer.Doing("calibrating the pacing clock")
	cfg := s.Config(m.id, m.run)
	cfg.FIFO = m.fifo && m.fleet == nil // of a fleet it is the agents' matter
	cfg.Pace(pace.Cores())
	if cfg.FIFO && !cfg.Calibration.FIFO {
		m.observer.Note("%s: a lane %s", cmp.Or(m.words.Precedence, "precedence"), cfg.Calibration.Why)
	}
	cfg.Clock = pace.NewClock()
	cfg.Log = m.host.Log
	cfg.OnStart, cfg.OnInterval = m.start, m.interval
	cfg.OnEvent = m.event
	m.calibration = cfg.Calibration
	if m.cost, err = truth.Cost(ctx, cfg.Plan, cfg.Calibration, cfg.Lanes); err != nil {
		return nil, err
	}
	m.begin(ctx, cfg.Procs())
	unwatch, err := m.watchServers(cfg.Clock)
	if err != nil {
		return nil, err
	}
	defer unwatch()
	readLogs := m.followLogs(cfg.Clock)
	defer func() { readLogs(raw) }()
	defer m.disturb(ctx, &cfg)()
	m.observer.Doing("connecting")
	until := m.until(ctx, stop)
	if m.fleet != nil {
		raw, err = m.far(ctx, until, cfg)
	} else {
		raw, err = coordinator.Alone(ctx, until, cfg)
	}
	if raw != nil && !latch.Closed(stop) && m.enough != nil && latch.Closed(m.enough) {
		raw.Interrupted = false // no user did: it was long enough
	}
	m.between, m.broke = m.networkOf()
	if raw == nil && err == nil {
		err = errors.New("the engine returned nothing")
	}
	if raw == nil && latch.Closed(stop) && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w (%w)", err, context.Canceled)
	}
	return raw, err
}

// abortable is ctx until stop is closed: before the first message there is nothing to drain,
// and a first signal ends what is being started.
func abortable(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	starting, abort := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			abort()
		case <-starting.Done():
		}
	}()
	return starting, abort
}

// stopped adds to an error that a signal was the cause.
func stopped(err error, stop <-chan struct{}) error {
	if err != nil && latch.Closed(stop) {
		return fmt.Errorf("%w (%w)", err, context.Canceled)
	}
	return err
}

// until returns what ends the run before its time: a signal, or that its
// objectives are decided where that was asked for.
func (m *measurement) until(ctx context.Context, stop <-chan struct{}) <-chan struct{} {
	if !m.scenario.Until {
		return stop
	}
	m.early, m.enough = judge.WatchFor(m.scenario.Objectives, &m.slices, m.scenario.Topology.Subscriptions), make(chan struct{})
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

// identify returns a name and a number that no other run has.
func identify() (id string, run uint32) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("weir-%x", b[:6]), binary.LittleEndian.Uint32(b[4:])
}
