// Package kafkatest implements what the tests of drivers for Kafka's protocol share: a recording
// completer and sink, and helpers that send and receive.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// Open connects a driver with options, declares destinations, and removes everything at the end of
// the test.
func Open(t testing.TB, d driver.Definition, address []string, run driver.Run, options map[string]string, ds ...driver.Destination) driver.Conn {
	t.Helper()
	c, err := trial.Open(t, d, run, trial.At(address, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), trial.Patience)
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
	sync.Mutex
	Errs map[*driver.Message][]error
}

func (f *Fates) Complete(m *driver.Message, err error) {
	f.Lock()
	defer f.Unlock()
	if f.Errs == nil {
		f.Errs = map[*driver.Message][]error{}
	}
	f.Errs[m] = append(f.Errs[m], err)
}

// Len returns how many messages have completed.
func (f *Fates) Len() int {
	f.Lock()
	defer f.Unlock()
	return len(f.Errs)
}

// Wrong returns the errors, and the messages that did not complete exactly once.
func (f *Fates) Wrong(want int) error {
	f.Lock()
	defer f.Unlock()
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

// Publish sends n messages, numbered from from, and waits for the confirmations.
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

// Eventually fails the test if ok does not become true within a minute.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !trial.Eventually(ok) {
		t.Fatalf("%s: not within %v", what, trial.Patience)
	}
}
