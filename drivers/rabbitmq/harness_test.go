package rabbitmq

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// patience bounds every wait.
const patience = 60 * time.Second

// A log keeps what a consumer, a producer and a connection tell.
type log struct {
	mu        sync.Mutex
	got       []string
	repeated  int // of them, those that the server flagged
	faults    []error
	errs      []error
	events    []string
	ready     chan struct{}
	onDeliver func(ds []driver.Delivery) error
}

func newLog() *log { return &log{ready: make(chan struct{})} }

func (l *log) Ready() { close(l.ready) }

func (l *log) Deliver(ds []driver.Delivery) error {
	var err error
	if l.onDeliver != nil {
		err = l.onDeliver(ds)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range ds {
		l.got = append(l.got, string(d.Payload))
		if d.Redelivered {
			l.repeated++
		}
	}
	return err
}

func (l *log) Settled([]driver.Delivery, error) {}

func (l *log) Fault(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, err)
}

func (l *log) Complete(_ *driver.Message, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *log) event(kind, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, kind+" "+text)
}

// until waits until ok, which is called with the log locked.
func (l *log) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		l.mu.Lock()
		done := ok()
		l.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Fatalf("%s: not within %v: got %d (%.300q), faults %v, completed with %v, events %v", what, patience, len(l.got), l.got, l.faults, l.errs, l.events)
		}
	}
}

// options returns those of a server, and others, name and value in turns.
func options(s *served.System, more ...string) map[string][]string {
	o := map[string][]string{}
	for k, v := range s.Options {
		o[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		if o[more[i]] = []string{more[i+1]}; more[i+1] == "" {
			delete(o, more[i])
		}
	}
	return o
}

// tryOpen opens a Conn of its own settings.
func tryOpen(t testing.TB, run driver.Run, options map[string][]string) (driver.Conn, error) {
	t.Helper()
	cfg := newConfig()
	for name, values := range options {
		if err := driver.SetOption(cfg, name, values...); err != nil {
			t.Fatal(err)
		}
	}
	if err := driver.Check(cfg); err != nil {
		t.Fatal(err)
	}
	if run.ID == "" {
		run.ID = fmt.Sprintf("t%d", time.Now().UnixNano())
	}
	run.Log = slog.New(slog.DiscardHandler)
	return driver.Open(t.Context(), Definition(), cfg, run)
}

func open(t testing.TB, run driver.Run, options map[string][]string) *conn {
	t.Helper()
	c, err := tryOpen(t, run, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return driver.Inside(c).(*conn)
}

// declared declares the destination d.
func declared(t testing.TB, c *conn, replicas int) {
	t.Helper()
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: replicas}
	if err := c.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), d) })
}

func producerOf(t testing.TB, c *conn, done driver.Completer, destination string) *producer {
	t.Helper()
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{destination}, InFlight: 1000}, done)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p.(*producer)
}

// consume runs a consumer until the test ends, or stop is called.
func consume(t testing.TB, c *conn, spec driver.ConsumerSpec, l *log) (stop func()) {
	t.Helper()
	if spec.Destinations == nil {
		spec.Destinations = []string{"d"}
	}
	if spec.Subscription == "" {
		spec.Subscription = "s"
	}
	x, err := c.Consumer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, l) }()
	select {
	case <-l.ready:
	case err := <-ended:
		cancel()
		t.Fatalf("Run: %v", err)
	case <-time.After(patience):
		cancel()
		t.Fatal("not ready")
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = x.Close(context.Background())
	})
	t.Cleanup(stop)
	return stop
}

// publish publishes one message and returns what it completed with.
func publish(t testing.TB, p *producer, l *log, destination, payload string) error {
	t.Helper()
	l.mu.Lock()
	n := len(l.errs)
	l.mu.Unlock()
	p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte(payload)})
	l.until(t, "a completion", func() bool { return len(l.errs) > n })
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errs[n]
}

// by does something on a channel as an administrator would.
func by(t testing.TB, c *conn, do func(*client.Channel) error) {
	t.Helper()
	if err := c.ask(t.Context(), do); err != nil {
		t.Fatal(err)
	}
}

// put makes something by the management plugin.
func put(t testing.TB, s *served.System, path string, body map[string]any) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.Options["management"][0]+"/api/"+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	q.SetBasicAuth(rabbitserver.Guest, rabbitserver.Guest)
	q.Close = true
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if !strings.HasPrefix(a.Status, "20") {
		t.Fatalf("%s: %s", path, a.Status)
	}
}
