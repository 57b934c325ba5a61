package trial

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
)

// A Log records what a consumer, a producer and a connection report. It is a driver.Sink and a
// driver.Completer, and its Event is for a driver.Run.
type Log struct {
	// Refuse rejects all deliveries of a call without recording them if it returns true for any;
	// nil: accept all.
	Refuse func(d driver.Delivery) bool

	// OnDeliver decides about deliveries, after they are added to Got; nil: accept all.
	OnDeliver func(ds []driver.Delivery) error

	sync.Mutex                     // held while reading the fields below
	Got          []string          // payloads
	Again        []string          // the redelivered ones
	Deliveries   []driver.Delivery // of Got, without payloads
	Settlements  int               // confirmed by the system, counted by messages
	Unsettled    []error           // errors of the unconfirmed ones
	Faults, Errs []error           // of the consumer, and of completions
	Done         map[string]error  // completions, by payload
	Events       []string

	ready chan struct{}
	once  sync.Once
}

func NewLog() *Log { return &Log{Done: map[string]error{}, ready: make(chan struct{})} }

// Hearing returns a Log whose deliveries call f.
func Hearing(f func()) *Log {
	l := NewLog()
	l.OnDeliver = func([]driver.Delivery) error { f(); return nil }
	return l
}

// Ready implements driver.Sink.
func (l *Log) Ready() { l.once.Do(func() { close(l.ready) }) }

// Deliver implements driver.Sink.
func (l *Log) Deliver(ds []driver.Delivery) error {
	l.Lock()
	if l.Refuse != nil && slices.ContainsFunc(ds, l.Refuse) {
		l.Unlock()
		return errors.New("refused")
	}
	for _, d := range ds {
		l.Got = append(l.Got, string(d.Payload))
		l.Deliveries = append(l.Deliveries, driver.Delivery{Partition: d.Partition, Key: append([]byte{}, d.Key...), Redelivered: d.Redelivered})
		if d.Redelivered {
			l.Again = append(l.Again, string(d.Payload))
		}
	}
	l.Unlock()
	if l.OnDeliver == nil {
		return nil
	}
	return l.OnDeliver(ds)
}

// Settled implements driver.Sink.
func (l *Log) Settled(ds []driver.Delivery, err error) {
	l.Lock()
	defer l.Unlock()
	if err != nil {
		l.Unsettled = append(l.Unsettled, err)
		return
	}
	l.Settlements += len(ds)
}

// Fault implements driver.Sink.
func (l *Log) Fault(err error) {
	l.Lock()
	defer l.Unlock()
	l.Faults = append(l.Faults, err)
}

func (l *Log) Complete(m *driver.Message, err error) {
	l.Lock()
	defer l.Unlock()
	l.Errs = append(l.Errs, err)
	l.Done[string(m.Payload)] = err
}

// Fate returns whether a message has completed, and with what error.
func (l *Log) Fate(payload string) (err error, ok bool) {
	l.Lock()
	defer l.Unlock()
	err, ok = l.Done[payload]
	return err, ok
}

// Send is the function Send for a producer that completes at the Log. All messages must be
// confirmed.
func (l *Log) Send(t testing.TB, p driver.Producer, destination string, payloads ...string) {
	t.Helper()
	Send(t, p, destination, payloads...)
	l.MustConfirm(t, payloads...)
}

// MustConfirm fails the test unless all messages were confirmed.
func (l *Log) MustConfirm(t testing.TB, payloads ...string) {
	t.Helper()
	for _, s := range payloads {
		if err, ok := l.Fate(s); !ok || err != nil {
			t.Fatalf("%.40q: completed: %v, with: %v", s, ok, err)
		}
	}
}

// Confirmed returns the payloads that were confirmed, sorted.
func (l *Log) Confirmed() (ok []string) {
	l.Lock()
	defer l.Unlock()
	for payload, err := range l.Done {
		if err == nil {
			ok = append(ok, payload)
		}
	}
	slices.Sort(ok)
	return ok
}

// Distinct returns the different payloads that were delivered, sorted.
func (l *Log) Distinct() []string {
	l.Lock()
	defer l.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(l.Got)))
}

func (l *Log) Event(kind, text string) {
	l.Lock()
	defer l.Unlock()
	l.Events = append(l.Events, kind+" "+text)
}

// All calls f with the Log locked.
func (l *Log) All(f func(*Log) bool) bool {
	l.Lock()
	defer l.Unlock()
	return f(l)
}

// Has reports whether ok returns true within Patience. The Log is locked during calls.
func (l *Log) Has(ok func() bool) bool {
	return Eventually(func() bool {
		l.Lock()
		defer l.Unlock()
		return ok()
	})
}

// Until fails the test unless Has.
func (l *Log) Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !l.Has(ok) {
		l.Lock()
		defer l.Unlock()
		t.Fatalf("%s: not within %v: got %d (%.300q), faults %v, completed with %v, events %v", what, Patience, len(l.Got), l.Got, l.Faults, l.Errs, l.Events)
	}
}

// Publish publishes one message with a producer that completes at the Log, and returns its result.
func (l *Log) Publish(t testing.TB, p driver.Producer, destination, payload string) error {
	t.Helper()
	l.Lock()
	n := len(l.Errs)
	l.Unlock()
	p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte(payload)})
	l.Until(t, "a completion", func() bool { return len(l.Errs) > n })
	l.Lock()
	defer l.Unlock()
	return l.Errs[n]
}

// IsReady reports whether the consumer has been ready.
func (l *Log) IsReady() bool { return latch.Closed(l.ready) }

// WaitReady waits until the consumer is ready.
func (l *Log) WaitReady(t testing.TB) {
	t.Helper()
	select {
	case <-l.ready:
	case <-time.After(Patience):
		t.Fatal("the consumer is not ready")
	}
}

// Consume runs a consumer until stop or the end of the test, and returns when it is ready. The
// default subscription is "s", the default destination "d".
func (l *Log) Consume(t testing.TB, c driver.Conn, spec driver.ConsumerSpec) (stop func()) {
	t.Helper()
	if spec.Destinations == nil {
		spec.Destinations = []string{"d"}
	}
	if spec.Subscription == "" {
		spec.Subscription = "s"
	}
	_, end := Run(t, c, spec, l)
	l.WaitReady(t)
	return func() {
		t.Helper()
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}
