package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// patience limits every wait, which ends as soon as its condition holds.
const patience = time.Minute

// config returns settings for a system with options: alternating names and values.
func config(t testing.TB, s *served.System, options ...string) *Config {
	t.Helper()
	cfg := newConfig()
	for name, values := range s.Options {
		if err := driver.SetOption(cfg, name, values...); err != nil {
			t.Fatal(err)
		}
	}
	for o := range slices.Chunk(options, 2) {
		if err := driver.SetOption(cfg, o[0], o[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := driver.Check(cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// open connects, for a run with the test's name.
func open(t testing.TB, s *served.System, existing bool, options ...string) *conn {
	t.Helper()
	run := driver.Run{ID: fmt.Sprintf("t%d", time.Now().UnixNano()), Log: slog.New(slog.DiscardHandler), Existing: existing}
	c, err := config(t, s, options...).Open(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c.(*conn)
}

// declare creates destinations with one partition and one replica.
func declare(t testing.TB, c *conn, names ...string) {
	t.Helper()
	for _, n := range names {
		d := driver.Destination{Name: n, Partitions: 1, Replicas: 1}
		if err := c.Declare(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), d) })
	}
}

// execute runs a statement as the superuser, and returns the rows.
func execute(t testing.TB, s *served.System, sql string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := config(t, s).connect(ctx, driver.Run{ID: "test"}, "test", s.Address[:1])
	if err != nil {
		t.Fatal(err)
	}
	defer l.close(ctx)
	results, err := l.Exec(ctx, sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var rows [][]string
	for _, r := range results {
		for _, row := range r.Rows {
			var texts []string
			for _, v := range row {
				texts = append(texts, string(v))
			}
			rows = append(rows, texts)
		}
	}
	return rows
}

// fates are the outcomes of messages.
type fates struct{ *trial.Log }

func (f *fates) of(payload string) (error, bool) {
	f.Lock()
	defer f.Unlock()
	err, ok := f.Done[payload]
	return err, ok
}

func produce(t testing.TB, c *conn, destinations ...string) (*producer, *fates) {
	t.Helper()
	f := &fates{trial.NewLog()}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: destinations}, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p.(*producer), f
}

// send publishes texts one by one, and waits for their completion.
func send(t testing.TB, p *producer, destination string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte(text)})
	}
	flush(t, p)
}

func flush(t testing.TB, p *producer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// confirmed fails the test unless every text was confirmed.
func (f *fates) confirmed(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err, ok := f.of(text); !ok || err != nil {
			t.Fatalf("%q: completed: %v, with: %v", text, ok, err)
		}
	}
}

// A sink receives one consumer's deliveries.
type sink struct {
	*trial.Log
	ended  chan struct{}
	err    error
	cancel context.CancelFunc
}

// look returns copies of its contents.
func (s *sink) look() (got, again []string, settled int, faults []error) {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.Got), slices.Clone(s.Again), s.Settlements, slices.Clone(s.Faults)
}

// consume opens a consumer and runs it until the end of the test.
func consume(t testing.TB, c *conn, spec driver.ConsumerSpec, deliver func(ds []driver.Delivery) error) *sink {
	t.Helper()
	spec.Subscription = "s"
	x, err := c.Consumer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &sink{Log: trial.NewLog(), ended: make(chan struct{}), cancel: cancel}
	s.OnDeliver = deliver
	go func() {
		defer close(s.ended)
		s.err = x.Run(ctx, s)
	}()
	t.Cleanup(func() {
		s.stop()
		_ = x.Close(context.Background())
	})
	return s
}

// stop ends Run and returns its error.
func (s *sink) stop() error {
	s.cancel()
	<-s.ended
	return s.err
}
