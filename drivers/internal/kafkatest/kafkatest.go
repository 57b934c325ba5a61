// Package kafkatest is what the tests of drivers of Kafka's protocol share: a
// completer and a sink that keep what they are told, and how to send and receive.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// patience bounds every wait: a host may be slow.
const patience = time.Minute

// Open connects by a driver with options, declares destinations, and removes all of it
// when the test ends.
func Open(t testing.TB, d driver.Definition, address []string, run driver.Run, options map[string]string, ds ...driver.Destination) driver.Conn {
	t.Helper()
	cfg := d.New()
	err := driver.SetOption(cfg, "address", address...)
	for k, v := range options {
		err = errors.Join(err, driver.SetOption(cfg, k, v))
	}
	if err := errors.Join(err, driver.Check(cfg)); err != nil {
		t.Fatal(err)
	}
	c, err := driver.Open(t.Context(), d, cfg, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(c.Delete(ctx, ds...), c.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	if err := c.Declare(t.Context(), ds...); err != nil {
		t.Fatal(err)
	}
	return c
}

// Fates records completions.
type Fates struct {
	Mu   sync.Mutex
	Errs map[*driver.Message][]error
}

// Complete implements driver.Completer.
func (f *Fates) Complete(m *driver.Message, err error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Errs == nil {
		f.Errs = map[*driver.Message][]error{}
	}
	f.Errs[m] = append(f.Errs[m], err)
}

// Len returns how many messages have completed.
func (f *Fates) Len() int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return len(f.Errs)
}

// Wrong returns the errors, and the messages that completed not once.
func (f *Fates) Wrong(want int) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var errs []error
	if len(f.Errs) != want {
		errs = append(errs, fmt.Errorf("%d messages completed; want %d", len(f.Errs), want))
	}
	for m, es := range f.Errs {
		if len(es) != 1 || es[0] != nil {
			errs = append(errs, fmt.Errorf("%.20s completed with %v", m.Payload, es))
		}
	}
	return errors.Join(errs...)
}

// Gather is a sink that keeps what it is given.
type Gather struct {
	Mu     sync.Mutex
	Got    []driver.Delivery // of what was accepted, without payloads
	Texts  []string          // the payloads of Got
	Faults []error
	Failed int                        // settlements refused
	Count  int                        // settlements confirmed
	Refuse func(driver.Delivery) bool // has all that Deliver is called with refused; nil: nothing
	ready  chan struct{}
}

// NewGather returns one that accepts everything.
func NewGather() *Gather { return &Gather{ready: make(chan struct{})} }

// Ready implements driver.Sink.
func (g *Gather) Ready() { close(g.ready) }

// Deliver implements driver.Sink.
func (g *Gather) Deliver(ds []driver.Delivery) error {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for _, d := range ds {
		if g.Refuse != nil && g.Refuse(d) {
			return errors.New("refused")
		}
	}
	for _, d := range ds {
		g.Got = append(g.Got, driver.Delivery{Partition: d.Partition, Key: append([]byte{}, d.Key...), Redelivered: d.Redelivered})
		g.Texts = append(g.Texts, string(d.Payload))
	}
	return nil
}

// Settled implements driver.Sink.
func (g *Gather) Settled(ds []driver.Delivery, err error) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if err != nil {
		g.Failed += len(ds)
		return
	}
	g.Count += len(ds)
}

// Fault implements driver.Sink.
func (g *Gather) Fault(err error) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.Faults = append(g.Faults, err)
}

// All asks f with the Gather to itself.
func (g *Gather) All(f func(*Gather) bool) bool {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	return f(g)
}

// Eventually fails the test where ok does not become true within a minute.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range patience / (5 * time.Millisecond) {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: not within %v", what, patience)
}

// Consume runs a consumer until stop is called, or the test ends, and returns when it
// is ready.
func Consume(t testing.TB, c driver.Conn, spec driver.ConsumerSpec, g *Gather) (stop func()) {
	t.Helper()
	x, err := c.Consumer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, g) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, x.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	Eventually(t, "ready", func() bool {
		select {
		case <-g.ready:
			return true
		case err := <-ended:
			ended <- err
			t.Fatalf("Run ended: %v", err)
		default:
		}
		return false
	})
	return stop
}

// Publish sends n messages, each with its number from from on, and waits for the
// confirmations.
func Publish(t testing.TB, c driver.Conn, destination string, from, n int, key func(int) []byte) {
	t.Helper()
	f := &Fates{}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{destination}, InFlight: n, Largest: 100}, f)
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < from+n; i++ {
		m := &driver.Message{Destination: destination, Payload: fmt.Appendf(nil, "%06d", i)}
		if key != nil {
			m.Key = key(i)
		}
		p.Publish(t.Context(), m)
	}
	if err := errors.Join(p.Flush(t.Context()), p.Close(t.Context()), f.Wrong(n)); err != nil {
		t.Fatal(err)
	}
}
