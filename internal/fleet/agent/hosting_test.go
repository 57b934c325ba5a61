package agent

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A nowhere is a driver of a system that has a recipe and is never opened.
type nowhere struct {
	Address []string `option:"address" help:"Where it is."`
}

func (n *nowhere) Validate() error { return nil }

func (n *nowhere) Open(context.Context, driver.Run) (driver.Conn, error) {
	return nil, driver.ErrUnreachable
}

// An inn is an agent that starts systems, and counts them.
type inn struct {
	*Agent
	hold    chan struct{} // a start waits for it; nil: for nothing
	started chan struct{} // closed when the first start begins
	ended   chan struct{} // closed when that system is ended
}

func openInn(t *testing.T, patience time.Duration) *inn {
	t.Helper()
	drivers := must.Get(driver.NewRegistry(driver.Definition{
		Name: "nowhere", Title: "a system", Summary: "Is only started.", New: func() driver.Config { return &nowhere{} },
		Capabilities: driver.Capabilities{Guarantees: []driver.Guarantee{driver.Buffered}, Delivery: driver.AtMostOnce},
		Page: driver.Page{Recipe: []byte(`recipe: 1
name: nowhere
title: A system
version: "1"
nodes: [1]
install: {pypi: {package: nowhere, version: "1", programs: {nowhere: nowhere}}}
processes: [{name: server, ports: {client: 4000}, start: ['{{program "nowhere"}}']}]
connect: {address: '{{.At "client"}}'}
`)},
	}))(t)
	n := &inn{started: make(chan struct{}), ended: make(chan struct{})}
	n.Agent = &Agent{
		Name: "b", Drivers: drivers, Allow: []string{AllowBroker}, Log: slog.New(slog.DiscardHandler), Env: func(string) (string, bool) { return "", false },
		base: pace.NewClock(), session: "s", heard: time.Now(), patience: patience,
	}
	n.Start = func(ctx context.Context, _ *scenario.Scenario, _ func(string), _ func(Happening)) (*System, error) {
		close(n.started)
		end := func(context.Context) error { close(n.ended); return nil }
		if n.hold != nil {
			select {
			case <-n.hold:
			case <-ctx.Done():
				_ = end(ctx)
				return nil, ctx.Err()
			}
		}
		return &System{Address: []string{"here:1"}, Started: &result.Started{By: "process"}, Done: make(chan struct{}), Stop: end}, nil
	}
	t.Cleanup(n.leave)
	return n
}

// wished has the system of a run, r, started, and waits for that.
func (n *inn) wished(t *testing.T, keep time.Duration) {
	t.Helper()
	w := protocol.Wish{Session: "s", Run: "r", KeepNS: int64(keep), Scenario: []byte(
		"weir: 1\nsystem: {driver: nowhere, start: process}\nload: {rate: 200/s}\nmeasure: 500ms\nmode: produce\n")}
	must.Get(n.grant(&w))(t)
	over(t, "the start", n.started)
	if n.hold != nil {
		return
	}
	must.Until(t, "the system to be up", func() bool {
		h, err := n.grant(&w)
		return err == nil && h.Up
	})
}

// over waits until c is closed.
func over(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}

// Also while it is being started.
func TestLostCoordinatorStopsSystem(t *testing.T) {
	t.Parallel()
	for _, up := range []bool{true, false} {
		n := openInn(t, time.Second)
		if !up {
			n.hold = make(chan struct{})
		}
		n.wished(t, 0)
		over(t, "the end of what was started", n.ended)
	}
}

// Without its coordinator, for as long as that announced.
func TestSystemIsKeptWhileRunMayResume(t *testing.T) {
	t.Parallel()
	n := openInn(t, time.Millisecond)
	n.wished(t, time.Hour)
	time.Sleep(10 * attendEvery)
	select {
	case <-n.ended:
		t.Error("the system was ended")
	default:
	}
	n.hosting.needed(-1) // says nothing
	n.hosting.needed(time.Nanosecond)
	over(t, "the end of what was started", n.ended)
}
