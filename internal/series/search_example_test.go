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

	"github.com/weirmq/weir/driver"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/scenario"
)

// ExampleSearch finds out how much one consumer can do that works 5 ms on each message:
// less than 200/s.
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
	search, err := series.NewSearch(
		series.Options{Out: filepath.Join(dir, "search")},
		scenario.Inputs{File: "example.yaml", Text: []byte(text), Drivers: drivers, Env: os.LookupEnv, Dir: dir},
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := search.Begin(); err != nil {
		log.Fatal(err)
	}
	for probe := range search.All(context.Background(), nil) {
		if probe.Says == nil {
			log.Fatal(probe.Wrong())
		}
		fmt.Printf("%v/s %s\n", probe.Says.RatePerS, probe.Says.Judgement)
	}
	if err := search.Err(); err != nil {
		log.Fatal(err)
	}
	answer := search.Report.Answer
	fmt.Printf("%s: from %v/s to %v/s\n", answer.Stop, answer.PassPerS, answer.FailPerS)
}

// TestExampleSearch does what the example does: what it prints depends on what else the
// host does.
func TestExampleSearch(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	ExampleSearch()
	_ = w.Close()
	said, err := io.ReadAll(r)
	if err != nil || !regexp.MustCompile(`^50/s [a-z-]+\n([0-9.]+/s [a-z-]+\n)+[a-z ]+: from [0-9.]+/s to [0-9.]+/s\n$`).Match(said) {
		t.Errorf("it prints %q, %v", said, err)
	}
}
