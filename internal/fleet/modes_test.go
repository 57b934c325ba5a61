package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	driverjs "github.com/weirmq/weir/drivers/jetstream"
	drivernats "github.com/weirmq/weir/drivers/nats"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/measure"
)

// server starts a NATS server in this process for as long as the test.
func server(t *testing.T) string {
	t.Helper()
	return natsdtest.Start(t, func(o *natsserver.Options) { o.JetStream, o.StoreDir = true, t.TempDir() }).ClientURL()
}

func TestFleetClosedLoopSendsExactCount(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := fleetOf(t, 3, drivers)
	const n = 2003 // no multiple of anything
	r := runOf(t, drivers, "run", fmt.Sprintf("topology: {producers: 7, consumers: 3}\nload: {rate: max, in_flight: 5}\nwarmup: 0s\nmessages: %d%s", n, common))
	exact(t, w.do(t, r).Raw, n)
	exact(t, here(t, runOf(t, drivers, "again", fmt.Sprintf("topology: {producers: 7, consumers: 3}\nload: {rate: max, in_flight: 5}\nwarmup: 0s\nmessages: %d%s", n, common)), 3), n)
}

// TestAgentsRecordKernelInstants, or say why their hosts do not allow it.
func TestAgentsRecordKernelInstants(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	r := runOf(t, drivers, "run", "topology: {producers: 2, consumers: 2}\nload: {rate: max, in_flight: 5}\nwarmup: 0s\nmessages: 100"+common)
	r.Config.Wire = true
	if w := fleetOf(t, 2, drivers).do(t, r).Raw.Wire; w == nil || w.Missing == "" && w.Conns == 0 {
		t.Errorf("%+v", w)
	}
}

func TestModesOfAFleet(t *testing.T) {
	t.Parallel()
	t.Run("produce", func(t *testing.T) {
		t.Parallel()
		drivers := registry(t, noop.Definition())
		w := fleetOf(t, 2, drivers)
		r := runOf(t, drivers, "run", "system: {driver: noop}\ntopology: {producers: 5}\nload: {rate: 2000/s}\nwarmup: 200ms\nmeasure: 800ms\nmessage: {size: 64B}\n")
		exact(t, w.do(t, r).Raw, 2000)
	})
	t.Run("request, echoed by consumers", func(t *testing.T) {
		t.Parallel()
		_, drivers := memoryDrivers(t)
		w := fleetOf(t, 2, drivers)
		r := runOf(t, drivers, "run", "mode: request\ntopology: {producers: 4, consumers: 3}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 800ms"+common)
		raw := w.do(t, r).Raw
		exact(t, raw, 1000)
		if got := raw.Snapshot.Kinds[measure.RTTService][measure.Measure].Total(); got != 800 {
			t.Errorf("%d round trips, want 800", got)
		}
	})
	t.Run("request, answered by the system's clients", func(t *testing.T) {
		t.Parallel()
		drivers := registry(t, drivernats.Definition())
		w := fleetOf(t, 2, drivers)
		r := runOf(t, drivers, "run", fmt.Sprintf("mode: request\nsystem: {driver: nats, start: none, options: {address: [%q]}}\ntopology: {producers: 4, consumers: 3}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 800ms\nmessage: {size: 64B}\n", server(t)))
		raw := w.do(t, r).Raw
		if m := raw.All; m.Sent != 1000 || m.Confirmed != 1000 || m.Failed != 0 {
			t.Errorf("%+v, want 1000 sent and confirmed", m)
		}
		if got := raw.Snapshot.Kinds[measure.RTTService][measure.Measure].Total(); got != 800 {
			t.Errorf("%d round trips, want 800", got)
		}
	})
	t.Run("backlog", func(t *testing.T) {
		t.Parallel()
		_, drivers := memoryDrivers(t)
		w := fleetOf(t, 2, drivers)
		r := runOf(t, drivers, "run", "mode: backlog\ntopology: {producers: 4, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 1s"+common)
		raw := w.do(t, r).Raw
		exact(t, raw, 1000)
		// The number is known from the agents' reports: the last ones may be in flight.
		if d := raw.Drained; d == nil || d.Lay < 900 || d.Lay > 1000 || d.Messages != 1000 || d.Bytes != 64000 || d.Began == 0 || d.From < d.Began || d.To < d.From {
			t.Errorf("drained %+v", d)
		}
	})
	t.Run("stream, produce and consume through JetStream", func(t *testing.T) {
		t.Parallel()
		drivers := registry(t, driverjs.Definition())
		address := server(t)
		w := fleetOf(t, 2, drivers)
		from := fmt.Sprintf("system: {driver: jetstream, start: none, options: {address: [%q]}}\n", address)
		system := from + "message: {size: 64B}\n"
		exact(t, w.do(t, runOf(t, drivers, "stream", system+"topology: {producers: 4, consumers: 4, destinations: 2}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 800ms\n")).Raw, 1000)

		nc := must.Get(nats.Connect(address))(t)
		defer nc.Close()
		js := must.Get(jetstream.New(nc))(t)
		must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "orders", Subjects: []string{"orders"}}))(t)
		exact(t, w.do(t, runOf(t, drivers, "produce", system+"mode: produce\ntopology: {producers: 4, names: [orders]}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 1s\n")).Raw, 1000)
		raw := w.do(t, runOf(t, drivers, "consume", from+"mode: consume\ntopology: {consumers: 4, names: [orders]}\nconsume: {from: earliest}\n")).Raw
		if got := raw.Snapshot.Window.Received; got != 1000 {
			t.Errorf("%d were received, want 1000", got)
		}
	})
}

// What was offered drains, and what was measured is returned.
func TestAStoppedRunDrains(t *testing.T) {
	t.Parallel()
	m, drivers := memoryDrivers(t)
	m.late = 20 * time.Millisecond
	w := fleetOf(t, 2, drivers)
	r := runOf(t, drivers, "run", "topology: {producers: 4, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 100ms\nmeasure: 1h"+common)
	stop := make(chan struct{})
	var once atomic.Bool
	r.Config.OnInterval = func(*measure.Interval) {
		if once.CompareAndSwap(false, true) {
			close(stop)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	done := must.Get(w.Do(ctx, stop, r))(t)
	balanced(t, done.Raw)
	raw := done.Raw
	if !raw.Interrupted || !raw.Cut || raw.All.Delivered != raw.All.Sent || raw.All.Sent < 500 || raw.All.Pending+raw.All.Lost != 0 {
		t.Errorf("interrupted: %v, cut: %v, %+v", raw.Interrupted, raw.Cut, raw.All)
	}
	for _, p := range raw.Workers {
		if p.Missing {
			t.Errorf("part %+v is called missing", p.Worker)
		}
	}
	exact(t, w.do(t, runOf(t, drivers, "next", "topology: {producers: 4, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms"+common)).Raw, 500)
}

// When the context ends, messages in flight stay pending.
func TestAbortedRunEndsAtOnce(t *testing.T) {
	t.Parallel()
	m, drivers := memoryDrivers(t)
	m.late = time.Hour
	w := fleetOf(t, 2, drivers)
	r := runOf(t, drivers, "run", "topology: {producers: 4, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 100ms\nmeasure: 1h\nmessage: {size: 64B}\nsystem: {driver: memory}\ndrain: 1h\n")
	stop := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n atomic.Int64
	r.Config.OnInterval = func(*measure.Interval) {
		if n.Add(1) == 1 {
			close(stop) // the drain would take an hour
			time.AfterFunc(time.Second, cancel)
		}
	}
	began := time.Now()
	done := must.Get(w.Do(ctx, stop, r))(t)
	if took := time.Since(began); took > patience {
		t.Errorf("took %v", took)
	}
	balanced(t, done.Raw)
	if raw := done.Raw; !raw.Interrupted || raw.All.Delivered != 0 || raw.All.Pending != raw.All.Confirmed || raw.All.Confirmed == 0 {
		t.Errorf("interrupted: %v, %+v", raw.Interrupted, raw.All)
	}
	m.late = 0
	m.marks()
	exact(t, w.do(t, runOf(t, drivers, "next", "topology: {producers: 4, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms"+common)).Raw, 500)
}

// If one agent's system nacks more, and the scenario says that this ends the run, it ends for all.
func TestFullSystemEndsRunForAllAgents(t *testing.T) {
	t.Parallel()
	m, drivers := memoryDrivers(t)
	m.silent = true
	w := fleetOf(t, 2, drivers)
	r := runOf(t, drivers, "run", "topology: {producers: 2, consumers: 2}\nload: {rate: 1000/s, in_flight: 50, when_full: fail}\nwarmup: 100ms\nmeasure: 1h"+common)
	began := time.Now()
	raw := w.do(t, r).Raw
	if raw.Failed == "" || raw.All.Sent == 0 || raw.All.Sent > 100 {
		t.Errorf("failed: %q, %+v", raw.Failed, raw.All)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("took %v", took)
	}
}

// If an agent cannot open the system, the run fails with its name and the kind of error that decides the
// exit code, and all agents are free again.
func TestAgentStartFailureFailsRun(t *testing.T) {
	t.Parallel()
	m, drivers := memoryDrivers(t)
	m.open = func() error {
		if m.opened == 2 {
			return fmt.Errorf("as user x: %w", driver.ErrAuth)
		}
		return nil
	}
	w := fleetOf(t, 3, drivers)
	const yaml = "topology: {producers: 3, consumers: 3}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms" + common
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done, err := w.Do(ctx, nil, runOf(t, drivers, "run", yaml))
	if done != nil || !errors.Is(err, driver.ErrAuth) || !strings.Contains(err.Error(), "agent ") || !strings.Contains(err.Error(), "as user x") {
		t.Errorf("%v, %v; want ErrAuth of an agent", done, err)
	}
	m.marks()
	exact(t, w.do(t, runOf(t, drivers, "next", yaml)).Raw, 500)
}

func TestARunIsStoppedBeforeItBegins(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stop", "context"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			m, drivers := memoryDrivers(t)
			held := make(chan struct{})
			m.open = func() error {
				if m.opened == 2 {
					m.mu.Unlock() // the second never comes to a stage
					<-held
					m.mu.Lock()
				}
				return nil
			}
			w := fleetOf(t, 2, drivers)
			const yaml = "topology: {producers: 2, consumers: 2}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms" + common
			stop := make(chan struct{})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			time.AfterFunc(time.Second, func() {
				if how == "stop" {
					close(stop)
				} else {
					cancel()
				}
			})
			done, err := w.Do(ctx, stop, runOf(t, drivers, "run", yaml))
			if done != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v; want context.Canceled", done, err)
			}
			close(held)
			must.Until(t, "the agents to be free", func() bool {
				return w.busy(t, "a") == "" && w.busy(t, "b") == ""
			})
			m.marks()
			exact(t, w.do(t, runOf(t, drivers, "next", yaml)).Raw, 500)
		})
	}
}
