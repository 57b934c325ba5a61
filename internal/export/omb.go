package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// period is how long an element of a series is, in seconds: the benchmark's own.
const period = 10

// ombTags are the distributions that the benchmark knows, and failures.
var ombTags = [...]string{"send.service.measure", "send.lateness.measure", "send.blocked.measure", "e2e.service.measure", "send.failed.measure"}

const (
	ombService = iota
	ombLateness
	ombBlocked
	ombE2E
	ombFailed
)

// samples are what a span of time counts, in the order of ombTags.
type samples [len(ombTags)]measure.Counts

// OMB writes the run of the result folder dir as a result of the OpenMessaging
// Benchmark: its fields, with its meanings and units. It reads the folder's files; the
// error is about one of them, or of w.
func OMB(w io.Writer, dir string) error {
	saved, err := result.Read(dir)
	if err != nil {
		return err
	}
	r := saved.Result
	began, length := window(r)
	all := new(samples)
	parts := make([]samples, max(1, int(length/period)))
	if err := eachLine(dir, func(tag int, l *result.Line) {
		i := min(max(0, int((float64(l.From)/1e9-began)/period)), len(parts)-1)
		parts[i][tag].Merge(l.Counts)
		all[tag].Merge(l.Counts)
	}); err != nil {
		return err
	}
	out, err := ombHead(dir, r)
	if err != nil {
		return err
	}
	var published, errs, consumed []float64
	var backlog []uint64
	for i := range parts {
		from, to := began+float64(i)*period, began+float64(i+1)*period
		if i == len(parts)-1 {
			to = began + length
		}
		var confirmed, received, left uint64
		for _, x := range r.Intervals {
			if x.Phase == "measure" && x.TS >= from-1e-6 && x.TS < to-1e-6 {
				confirmed, received, left = confirmed+x.Confirmed, received+x.Received, x.Backlog
			}
		}
		per := func(n uint64) float64 { return float64(n) / max(to-from, 1e-3) }
		published, consumed, backlog = append(published, per(confirmed)), append(consumed, per(received)), append(backlog, left)
		errs = append(errs, per(parts[i][ombFailed].Total()))
		parts[i].each(func(name string, v float64) {
			series, _ := out[name].([]float64)
			out[name] = append(series, v)
		})
	}
	out["publishRate"], out["publishErrorRate"], out["consumeRate"], out["backlog"] = published, errs, consumed, backlog
	all.each(func(name string, v float64) { out["aggregated"+strings.ToUpper(name[:1])+name[1:]] = v })
	for name, of := range all.quantiles() {
		steps := map[string]float64{}
		for p := range ticks(all[ombService].Total() + all[ombE2E].Total()) {
			steps[number(p)] = of(p)
		}
		out["aggregated"+name+"Quantiles"] = steps
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// window returns when the measured window began and how long it is, in seconds.
func window(r *result.Result) (began, length float64) {
	length = r.Throughput.SendS
	if r.Consuming() || length == 0 {
		length = r.Throughput.ReceiveS
	}
	if length == 0 {
		length = r.Run.MeasureS
	}
	for _, x := range r.Intervals {
		if x.Phase == "measure" {
			return x.TS, length
		}
	}
	return 0, length
}

// eachLine calls visit with each line of the folder's log that has a tag of ombTags.
func eachLine(dir string, visit func(tag int, l *result.Line)) error {
	path := filepath.Join(dir, result.FileIntervals)
	f, err := userfile.Open(path)
	if err != nil {
		return fmt.Errorf("reading the seconds of the run: %w", err)
	}
	defer func() { _ = f.Close() }()
	index := map[string]int{}
	for i, tag := range ombTags {
		index[tag] = i
	}
	for log := result.NewLogReader(f); ; {
		l, err := log.NextOf(func(tag string) bool { _, ok := index[tag]; return ok })
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		}
		if i, ok := index[l.Tag]; ok {
			visit(i, l)
		}
	}
}

// ombHead returns what the benchmark says of a run besides its figures.
func ombHead(dir string, r *result.Result) (map[string]any, error) {
	text, err := userfile.Read(filepath.Join(dir, result.FileScenario), tree.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario of the run: %w", err)
	}
	n, faults := tree.Parse(result.FileScenario, text)
	if n == nil {
		return nil, fmt.Errorf("reading the scenario of the run: %w", faults.Done())
	}
	of := func(key string, otherwise int) int {
		if v := n.Field("topology").Field(key); v != nil {
			if i, err := strconv.Atoi(strings.TrimSpace(v.Text)); err == nil {
				return i
			}
		}
		return otherwise
	}
	topics := max(1, of("destinations", 1))
	size := 0.0
	if r.Throughput.SentPerS > 0 {
		size = math.Round(r.Throughput.SentBytesPerS / r.Throughput.SentPerS)
	}
	return map[string]any{
		"workload": r.Run.Scenario(), "driver": r.System.Driver, "messageSize": int64(size), "topics": topics, "partitions": of("partitions", 1),
		"producersPerTopic": of("producers", 0) / topics, "consumersPerTopic": of("consumers", 0) / topics,
	}, nil
}

// percentiles are the benchmark's, by what its fields end with.
var percentiles = []struct {
	suffix string
	p      float64
}{{"50pct", 50}, {"75pct", 75}, {"95pct", 95}, {"99pct", 99}, {"999pct", 99.9}, {"9999pct", 99.99}, {"Max", 100}}

// quantiles returns the three distributions of the benchmark, each by percent, in its
// own units: ms, and whole µs for the delay of a publish. That is start - due, the sum of
// what weir stores apart: a percentile of it is at least the greater of the two.
func (s *samples) quantiles() map[string]func(p float64) float64 {
	ms := func(c *measure.Counts) func(float64) float64 {
		return func(p float64) float64 { return float64(at(c, p)) / 1e6 }
	}
	return map[string]func(float64) float64{
		"PublishLatency": ms(&s[ombService]), "EndToEndLatency": ms(&s[ombE2E]),
		"PublishDelayLatency": func(p float64) float64 {
			return math.Floor(float64(max(at(&s[ombLateness], p), at(&s[ombBlocked], p))) / 1e3)
		},
	}
}

// at returns the value of a percentile, 0 where nothing is counted.
func at(c *measure.Counts, p float64) int64 {
	return c.At(max(1, uint64(math.Ceil(p/100*float64(c.Total())))))
}

// each calls set with each latency of the benchmark by its name.
func (s *samples) each(set func(name string, v float64)) {
	for name, of := range s.quantiles() {
		name = strings.ToLower(name[:1]) + name[1:]
		for _, x := range percentiles {
			set(name+x.suffix, of(x.p))
		}
	}
	set("publishLatencyAvg", s[ombService].Mean()/1e6)
	set("endToEndLatencyAvg", s[ombE2E].Mean()/1e6)
	set("publishDelayLatencyAvg", (s[ombLateness].Mean()+s[ombBlocked].Mean())/1e3)
}

// ticks yields percents, a hundred in each half of what is left, until less than one of
// n samples is left; then 100.
func ticks(n uint64) func(yield func(float64) bool) {
	return func(yield func(float64) bool) {
		const each = 100
		for left := 100.0; left*float64(n) >= 100; left /= 2 {
			for i := range each {
				if !yield(100 - left + left/2*float64(i)/each) {
					return
				}
			}
		}
		yield(100)
	}
}
