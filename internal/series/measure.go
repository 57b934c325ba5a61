package series

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/result"
)

// measure starts the components, and runs the engine. A nil Raw comes with an error. When stop
// is closed the run drains.
func (m *measurement) measure(ctx context.Context, stop <-chan struct{}) (raw *engine.Raw, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if m.id, m.run = identify(); m.team.paused != nil {
		m.id, m.run = m.team.paused.Run, m.team.paused.Number
	}
	for _, c := range m.components() {
		if err := c.start(ctx, stop); err != nil {
			return nil, err
		}
		defer func() { c.stop(ctx, raw) }()
	}
	m.observer.Doing("connecting")
	until := m.record.until(ctx, stop)
	if m.team.fleet != nil {
		raw, err = m.team.do(ctx, until)
	} else {
		raw, err = coordinator.Alone(ctx, until, m.cfg)
	}
	m.link.over()
	if raw != nil && !latch.Closed(stop) && m.record.decided() {
		raw.Interrupted = false // no user did: it was long enough
	}
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

// identify returns a name and a number that no other run has.
func identify() (id string, run uint32) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("weir-%x", b[:6]), binary.LittleEndian.Uint32(b[4:])
}

// event takes the engine's.
func (m *measurement) event(ev engine.Event) {
	if ev.Kind == "phase" {
		m.meter.host.Mark()
	}
	m.observer.Event(ev.At, ev.Kind, ev.Text)
	m.keep(m.folder.AppendEvent(result.Event{TNS: ev.At, Kind: ev.Kind, Text: ev.Text}))
}

// keep tells of the first error of the result folder when it happens. The
// folder keeps every one, which are told at the end.
func (m *measurement) keep(err error) {
	if err != nil {
		m.told.Do(func() {
			m.observer.Complain(fmt.Errorf("%w; the run goes on", err))
		})
	}
}

// abandon leaves no folder behind where nothing was measured and nothing
// happened that could be read in it.
func (m *measurement) abandon() {
	if m.folder.Events() > 0 {
		_ = m.folder.Close() // the run's own error is the one to tell
		return
	}
	for _, name := range []string{result.FileScenario, result.FileEnvironment} {
		_ = os.Remove(filepath.Join(m.dir, name)) // ours, of record
	}
	_ = syscall.Rmdir(m.dir) // empty, or it stays; so does a link
}

// phase names the part of the run that an instant lies in, as planned.
func (m *measurement) phase(at int64) string {
	end := int64(m.scenario.Length())
	switch {
	case at < int64(m.scenario.WarmUp):
		return "warmup"
	case end == 0 || at < end:
		return "measure"
	}
	return "drain"
}
