package postgres

import (
	"context"
	"slices"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// config returns settings for a system with options: alternating names and values.
func config(t testing.TB, s *served.System, options ...string) *Config {
	t.Helper()
	cfg, err := trial.Configure(Definition(), s.Options, options...)
	if err == nil {
		err = driver.Check(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg.(*Config)
}

func open(t testing.TB, s *served.System, existing bool, options ...string) *conn {
	t.Helper()
	return driver.Inside(trial.Opened(t, Definition(), driver.Run{Existing: existing}, s.Options, options...)).(*conn)
}

// declare creates destinations with one partition and one replica.
func declare(t testing.TB, c *conn, names ...string) {
	t.Helper()
	for _, n := range names {
		trial.Declare(t, c, trial.Plain(n))
	}
}

// execute runs a statement as the superuser, and returns the rows.
func execute(t testing.TB, s *served.System, sql string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), trial.Patience)
	defer cancel()
	l := must.Get(config(t, s).connect(ctx, driver.Run{ID: "test"}, "test", s.Address[:1]))(t)
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

func produce(t testing.TB, c *conn, destinations ...string) (*producer, *trial.Log) {
	t.Helper()
	l := trial.NewLog()
	return trial.ProduceBy(t, c, driver.ProducerSpec{Destinations: destinations}, l).(*producer), l
}

// A sink receives one consumer's deliveries.
type sink struct {
	*trial.Log
	stop func() error // ends Run and returns its error
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
	s := &sink{Log: trial.NewLog()}
	s.OnDeliver = deliver
	_, s.stop = trial.Run(t, c, spec, s)
	return s
}
