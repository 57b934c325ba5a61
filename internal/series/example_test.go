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
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/scenario"
)

// Example does a run against the driver noop, and prints its p99 and its verdict.
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

	done, err := series.New(series.Options{Out: filepath.Join(dir, "result")}, scenarios...)
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

// TestExample does what the example does: what it prints differs from run to run.
func TestExample(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	Example()
	_ = w.Close()
	said, err := io.ReadAll(r)
	if err != nil || !regexp.MustCompile(`^p99 of 500 messages: [0-9.]+(ns|µs|ms|s), (valid|suspect|invalid)\n$`).Match(said) {
		t.Errorf("it prints %q, %v", said, err)
	}
}
