// Package trial provides helpers for tests that use a driver step by step, apart from the
// conformance suite: a Conn with options, outcomes of messages, a consumer until the end of the
// test.
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

// Patience limits every wait, which ends as soon as its condition holds.
const Patience = time.Minute

const pause = 5 * time.Millisecond // between two checks

// Eventually reports whether ok returns true within Patience. It checks every 5 ms.
func Eventually(ok func() bool) bool {
	for range Patience / pause {
		if ok() {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// Configure returns a driver's settings from a system's options and then from options, which
// alternates names and values. It returns the error of an option that the driver does not accept.
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

// Open connects with options as in Configure, checked as for a run. A run without an ID gets a new
// one.
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

// At returns options for servers at these addresses: those, and one value of each option.
func At(address []string, options map[string]string) map[string][]string {
	all := map[string][]string{"address": address}
	for name, value := range options {
		all[name] = []string{value}
	}
	return all
}

// Opened is Open, until the end of the test.
func Opened(t testing.TB, def driver.Definition, run driver.Run, system map[string][]string, options ...string) driver.Conn {
	t.Helper()
	c, err := Open(t, def, run, system, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// Plain returns a destination with one partition and one replica.
func Plain(name string) driver.Destination {
	return driver.Destination{Name: name, Partitions: 1, Replicas: 1}
}

// Declare creates destinations, until the end of the test.
func Declare(t testing.TB, c driver.Conn, ds ...driver.Destination) {
	t.Helper()
	if err := c.Declare(t.Context(), ds...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), ds...) })
}

// Fates receives the outcomes of messages, in order. Create it with room for all.
type Fates chan error

func (f Fates) Complete(_ *driver.Message, err error) { f <- err }

// Next waits for the next outcome, within Patience.
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

// Declared is Open with a new run and the destination "d", until the end of the test.
func Declared(t testing.TB, def driver.Definition, system map[string][]string, options ...string) driver.Conn {
	t.Helper()
	return declared(t, def, driver.Run{}, system, options)
}

// Blocking is Declared; blocked returns the latest reason for which a producer was blocked, "" before
// and after that.
func Blocking(t testing.TB, def driver.Definition, system map[string][]string, options ...string) (c driver.Conn, blocked func() string) {
	t.Helper()
	var latest atomic.Value
	latest.Store("")
	c = declared(t, def, driver.Run{Block: func(_, why string) { latest.Store(why) }}, system, options)
	return c, func() string { return latest.Load().(string) }
}

func declared(t testing.TB, def driver.Definition, run driver.Run, system map[string][]string, options []string) driver.Conn {
	t.Helper()
	c := Opened(t, def, run, system, options...)
	Declare(t, c, Plain("d"))
	return c
}

// Confirmed sends n messages to the destination "d" with p, which reports outcomes to f. It returns
// how many are confirmed.
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

// Backlog returns the backlog of subscription "s" at the destination "d".
func Backlog(t testing.TB, c driver.Conn) uint64 {
	t.Helper()
	return BacklogOf(t, c, "s")
}

// BacklogOf returns the backlog of a subscription at the destination "d". It retries until the
// system answers, within Patience.
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

// Drained waits until a subscription has no backlog.
func Drained(t testing.TB, c driver.Conn, subscription string, destinations ...string) {
	t.Helper()
	var n uint64
	var err error
	if !Eventually(func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		n, err = c.(driver.Backlogger).Backlog(ctx, subscription, destinations)
		return n == 0 && err == nil
	}) {
		t.Fatalf("the backlog of %s is %d, %v", subscription, n, err)
	}
}

// Facts returns the system's facts.
func Facts(t testing.TB, c driver.Conn) driver.Facts {
	t.Helper()
	f, err := c.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Stalled calls stall, which stops a system from reading until resume is called, or the end of the
// test.
func Stalled(t testing.TB, stall func() (resume func(), err error)) (resume func()) {
	t.Helper()
	resume, err := stall()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resume)
	return resume
}

// Must calls do, which must not fail.
func Must(t testing.TB, do func() error) {
	t.Helper()
	if err := do(); err != nil {
		t.Fatal(err)
	}
}

// Producer opens a producer until the end of the test, with room for 1,000 messages in flight and
// 100,000 outcomes.
func Producer(t testing.TB, c driver.Conn, destinations ...string) (driver.Producer, Fates) {
	t.Helper()
	f := make(Fates, 100_000)
	return Produce(t, c, f, destinations...), f
}

// Produce opens a producer that completes at done until the end of the test, with room for 1,000
// messages in flight.
func Produce(t testing.TB, c driver.Conn, done driver.Completer, destinations ...string) driver.Producer {
	t.Helper()
	return ProduceBy(t, c, driver.ProducerSpec{Destinations: destinations, InFlight: 1000}, done)
}

// ProduceBy is Produce for any producer.
func ProduceBy(t testing.TB, c driver.Conn, spec driver.ProducerSpec, done driver.Completer) driver.Producer {
	t.Helper()
	p, err := c.Producer(t.Context(), spec, done)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// Send publishes payloads to a destination, and waits until all messages have completed.
func Send(t testing.TB, p driver.Producer, destination string, payloads ...string) {
	t.Helper()
	for _, s := range payloads {
		p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte(s)})
	}
	Flush(t, p)
}

// Flush waits until all messages have completed.
func Flush(t testing.TB, p driver.Producer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// Numbered returns n payloads that sort in the order of their numbers.
func Numbered(label string, n int) []string {
	ps := make([]string, n)
	for i := range ps {
		ps[i] = fmt.Sprintf("%s-%06d", label, i)
	}
	return ps
}

// Run opens a consumer, and runs it until end or the end of the test. End returns the error of
// Consumer.Run. If the test does not call end, an error fails it.
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
