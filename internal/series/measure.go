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

// measure starts the components, and runs the engine. It returns an error if Raw is nil. When stop is
// closed the run drains.
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
		raw.Interrupted = false // stopped early, but not by the user
	}
	if raw == nil && err == nil {
		err = errors.New("the engine returned nothing")
	}
	if raw == nil && latch.Closed(stop) && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w (%w)", err, context.Canceled)
	}
	return raw, err
}

// abortable returns ctx canceled also when stop is closed: before the first message there is nothing to
// drain, so the first signal aborts the start.
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

// stopped adds to an error that a signal caused it.
func stopped(err error, stop <-chan struct{}) error {
	if err != nil && latch.Closed(stop) {
		return fmt.Errorf("%w (%w)", err, context.Canceled)
	}
	return err
}

// identify returns a name and a number unique to the run.
func identify() (id string, run uint32) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("weir-%x", b[:6]), binary.LittleEndian.Uint32(b[4:])
}

// event handles an event of the engine.
func (m *measurement) event(ev engine.Event) {
	if ev.Kind == "phase" {
		m.meter.host.Mark()
	}
	m.observer.Event(ev.At, ev.Kind, ev.Text)
	m.keep(m.folder.AppendEvent(result.Event{TNS: ev.At, Kind: ev.Kind, Text: ev.Text}))
}

// keep reports the first error of the result folder at once. The folder keeps all, for a report at the end.
func (m *measurement) keep(err error) {
	if err != nil {
		m.reported.Do(func() {
			m.observer.Complain(fmt.Errorf("%w; the run continues", err))
		})
	}
}

// abandon removes the folder if nothing was measured and nothing worth reading happened.
func (m *measurement) abandon() {
	if m.folder.Events() > 0 {
		_ = m.folder.Close() // report the run's own error
		return
	}
	for _, name := range []string{result.FileScenario, result.FileEnvironment} {
		_ = os.Remove(filepath.Join(m.dir, name)) // written by record
	}
	_ = syscall.Rmdir(m.dir) // fails if not empty, or for a link
}

// phase names the planned part of the run that an instant lies in.
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
