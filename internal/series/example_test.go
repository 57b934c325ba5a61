package series_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
)

// Example executes a run against the driver noop, and prints its p99 and its verdict.
func Example() {
	drivers, err := driver.NewRegistry(noop.Definition())
	if err != nil {
		log.Fatal(err)
	}
	const text = "weir: 1\nsystem: {driver: noop}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms\n"
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	scenarios, err := scenario.Resolve(scenario.Inputs{File: "example.yaml", Text: []byte(text), Drivers: drivers, Env: os.LookupEnv, Dir: dir})
	if err != nil {
		log.Fatal(err)
	}

	done, err := series.New(series.Options{Out: filepath.Join(dir, "result")}, series.Repeat("", scenarios...))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = done.Close() }()
	for o := range done.All(context.Background(), nil) {
		if o.Result == nil {
			log.Fatal(o.Err)
		}
		response := o.Result.Latency.Send.Response
		fmt.Printf("p99 of %d messages: %v, %s\n", response.Count, time.Duration(response.Percentile(99).NS), o.Result.Verdict.Status)
	}
}

// ExampleSearch finds the throughput of one consumer that works 5 ms on each message: less than 200/s.
func ExampleSearch() {
	drivers, err := driver.NewRegistry(channel.Definition(), noop.Definition())
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const text = `
weir: 1
system: {driver: chan}
load: {rate: 50/s}
consume: {work: 5ms}
warmup: 0s
measure: 500ms
slo: [e2e.max <= 100ms]
search: {precision: 100%, retests: 0}
`
	search, err := series.NewSearch(scenario.Inputs{File: "example.yaml", Text: []byte(text), Drivers: drivers, Env: os.LookupEnv, Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	s, err := series.New(series.Options{Out: filepath.Join(dir, "search")}, search)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for o := range s.All(context.Background(), nil) {
		if o.Probed == nil {
			log.Fatal(o.Wrong())
		}
		fmt.Printf("%v/s %s\n", o.Probed.RatePerS, o.Probed.Judgement)
	}
	if err := s.Err(); err != nil {
		log.Fatal(err)
	}
	answer := search.Report.Answer
	fmt.Printf("%s: from %v/s to %v/s\n", answer.Stop, answer.PassPerS, answer.FailPerS)
}

// TestExamples runs the examples, whose output differs from run to run.
func TestExamples(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	for _, x := range []struct {
		example func()
		prints  string
	}{
		{Example, `^p99 of 500 messages: [0-9.]+(ns|µs|ms|s), (valid|suspect|invalid)\n$`},
		{ExampleSearch, `^50/s [a-z-]+\n([0-9.]+/s [a-z-]+\n)+[a-z ]+: from [0-9.]+/s to [0-9.]+/s\n$`},
	} {
		r, w := must.Two(os.Pipe())(t)
		os.Stdout = w
		x.example()
		_ = w.Close()
		if said, err := io.ReadAll(r); err != nil || !regexp.MustCompile(x.prints).Match(said) {
			t.Errorf("it prints %q, %v; want %s", said, err, x.prints)
		}
	}
}
