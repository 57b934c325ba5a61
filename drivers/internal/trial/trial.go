// Package trial has what tests need to use a driver step by step, beside the conformance
// suite: a Conn with options, what became of messages, a consumer until the test ends.
package trial

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// Patience bounds every wait, which ends as soon as it is over.
const Patience = time.Minute

const pause = 5 * time.Millisecond // between two looks

// Eventually reports whether ok is true within Patience. It looks every 5 ms.
func Eventually(ok func() bool) bool {
	for range Patience / pause {
		if ok() {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// Configure returns settings of a driver with the options of a system, and then options,
// name and value in turns. It returns the error of an option that the driver does not take.
func Configure(def driver.Definition, system map[string][]string, options ...string) (driver.Config, error) {
	all := map[string][]string{}
	maps.Copy(all, system)
	for i := 0; i < len(options); i += 2 {
		all[options[i]] = options[i+1 : i+2]
	}
	cfg := def.New()
	for name, values := range all {
		if err := driver.SetOption(cfg, name, values...); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// Open connects with options as Configure takes them, checked as for a run. A run without
// an ID gets one of its own.
func Open(t testing.TB, def driver.Definition, run driver.Run, system map[string][]string, options ...string) (driver.Conn, error) {
	t.Helper()
	if run.ID == "" {
		run.ID = fmt.Sprintf("t%016x", rand.Uint64())
	}
	cfg, err := Configure(def, system, options...)
	if err == nil {
		err = driver.Check(cfg)
	}
	if err != nil {
		return nil, err
	}
	return driver.Open(t.Context(), def, cfg, run)
}

// Fates take what became of messages, in that order. Make them with room for all.
type Fates chan error

func (f Fates) Complete(_ *driver.Message, err error) { f <- err }

// Next waits for what became of a message, within Patience.
func (f Fates) Next(t testing.TB) error {
	t.Helper()
	select {
	case err := <-f:
		return err
	case <-time.After(Patience):
		t.Fatal("a message did not complete")
		return nil
	}
}

// Declared is Open for a run of its own, with the destination "d", until the test ends.
func Declared(t testing.TB, def driver.Definition, system map[string][]string, options ...string) driver.Conn {
	t.Helper()
	c, err := Open(t, def, driver.Run{}, system, options...)
	if err != nil {
		t.Fatal(err)
	}
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 1}
	if err := c.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Delete(context.Background(), d)
		_ = c.Close(context.Background())
	})
	return c
}

// Confirmed sends n messages to the destination "d" by p, which tells f what became of
// them. It returns how many are confirmed.
func (f Fates) Confirmed(t testing.TB, p driver.Producer, n int) (confirmed int) {
	t.Helper()
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("payload")})
	}
	for range n {
		if err := f.Next(t); err == nil {
			confirmed++
		} else {
			t.Log(err)
		}
	}
	return confirmed
}

// Backlog returns what the subscription "s" has at the destination "d".
func Backlog(t testing.TB, c driver.Conn) uint64 {
	t.Helper()
	return BacklogOf(t, c, "s")
}

// BacklogOf returns what a subscription has at the destination "d". It asks until the system
// answers, within Patience.
func BacklogOf(t testing.TB, c driver.Conn, subscription string) (n uint64) {
	t.Helper()
	Eventually(func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var err error
		if n, err = c.(driver.Backlogger).Backlog(ctx, subscription, []string{"d"}); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	return n
}

// Producer opens a producer until the test ends, with room for 1,000 messages in flight,
// and for the fates of 100,000.
func Producer(t testing.TB, c driver.Conn, destinations ...string) (driver.Producer, Fates) {
	t.Helper()
	f := make(Fates, 100_000)
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: destinations, InFlight: 1000}, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p, f
}

// Run opens a consumer, and runs it until end or the end of the test. End returns the error
// of Consumer.Run. Where the test does not call end, an error fails it.
func Run(t testing.TB, c driver.Conn, spec driver.ConsumerSpec, sink driver.Sink) (x driver.Consumer, end func() error) {
	t.Helper()
	x, err := c.Consumer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, sink) }()
	stop := sync.OnceValue(func() error {
		cancel()
		err := <-ended
		_ = x.Close(context.Background())
		return err
	})
	var asked atomic.Bool
	t.Cleanup(func() {
		if err := stop(); err != nil && !asked.Load() {
			t.Error(err)
		}
	})
	return x, func() error {
		asked.Store(true)
		return stop()
	}
}
