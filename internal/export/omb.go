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

// period is the length of a series' elements in seconds, as in the benchmark.
const period = 10

// ombTags are the distributions that the benchmark has, failures, and rtt, which confirms a request if the
// client itself waits for the reply.
var ombTags = [...]string{"send.service.measure", "send.lateness.measure", "send.blocked.measure", "e2e.service.measure", "send.failed.measure", "rtt.service.measure"}

const (
	ombService = iota
	ombLateness
	ombBlocked
	ombE2E
	ombFailed
	ombRTT
)

// samples are the counts of a period, in the order of ombTags.
type samples [len(ombTags)]logged

// logged is a distribution of a log. Its buckets lack the exact maximum, which each line has separately.
type logged struct {
	measure.Counts
	largest int64
}

func (c *logged) merge(l *result.Line) {
	c.Merge(l.Counts)
	c.largest = max(c.largest, l.Max)
}

// at returns the value of a percentile, 0 without samples.
func (c *logged) at(p float64) int64 {
	if p >= 100 {
		return c.largest
	}
	return min(c.Percentile(p), c.largest)
}

// OMB writes the run of the result folder dir as a result of the OpenMessaging Benchmark, with its fields,
// meanings and units. It reads the folder's files; the error is about one of them, or of w.
func OMB(w io.Writer, dir string) error {
	saved, err := result.Read(dir)
	if err != nil {
		return err
	}
	r := saved.Result
	began, length := float64(r.WindowFrom())/1e9, windowLength(r)
	all := new(samples)
	parts := make([]samples, max(1, int(length/period)))
	// A row begins up to a second late, so it belongs to the nearest second.
	partOf := func(second float64) int {
		return min(max(0, int(math.Round(second-began))/period), len(parts)-1)
	}
	if err := eachLine(dir, func(tag int, l *result.Line) {
		parts[partOf(float64(l.From)/1e9)][tag].merge(l)
		all[tag].merge(l)
	}); err != nil {
		return err
	}
	out, err := ombHead(dir, r)
	if err != nil {
		return err
	}
	rows := make([]struct {
		took                float64
		confirmed, received uint64
		backlog             uint64
	}, len(parts))
	for i, x := range r.Intervals {
		if x.Phase != measure.Measure.String() {
			continue
		}
		took := 1.0
		if i+1 < len(r.Intervals) {
			took = r.Intervals[i+1].TS - x.TS
		}
		row := &rows[partOf(x.TS)]
		row.took += took
		row.confirmed, row.received, row.backlog = row.confirmed+x.Confirmed, row.received+x.Received, x.Backlog
	}
	var published, errs, consumed []float64
	var backlog []uint64
	for i := range parts {
		per := func(n uint64) float64 { return float64(n) / max(rows[i].took, 1e-3) }
		published, consumed, backlog = append(published, per(rows[i].confirmed)), append(consumed, per(rows[i].received)), append(backlog, rows[i].backlog)
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
		for p := range ticks(all.confirmed().Total() + all[ombE2E].Total()) {
			steps[number(p)] = of(p)
		}
		out["aggregated"+name+"Quantiles"] = steps
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// windowLength returns the length of the measured window, in seconds.
func windowLength(r *result.Result) float64 {
	length := r.Throughput.SendS
	if r.Consuming() || length == 0 {
		length = r.Throughput.ReceiveS
	}
	if length == 0 {
		length = r.Run.MeasureS
	}
	return length
}

// eachLine calls visit with each line of the folder's log with a tag of ombTags.
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

// ombHead returns the benchmark's fields other than figures.
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

// percentiles are the benchmark's, by the suffix of its fields.
var percentiles = []struct {
	suffix string
	p      float64
}{{"50pct", 50}, {"75pct", 75}, {"95pct", 95}, {"99pct", 99}, {"999pct", 99.9}, {"9999pct", 99.99}, {"Max", 100}}

// quantiles returns the benchmark's three distributions by percent, in its units: ms, and whole µs for the
// publish delay. That is start - due, the sum of two values that weir stores separately: a percentile of it
// is at least the greater of theirs.
func (s *samples) quantiles() map[string]func(p float64) float64 {
	ms := func(c *logged) func(float64) float64 {
		return func(p float64) float64 { return float64(c.at(p)) / 1e6 }
	}
	return map[string]func(float64) float64{
		"PublishLatency": ms(s.confirmed()), "EndToEndLatency": ms(&s[ombE2E]),
		"PublishDelayLatency": func(p float64) float64 {
			return math.Floor(float64(max(s[ombLateness].at(p), s[ombBlocked].at(p))) / 1e3)
		},
	}
}

// confirmed is the confirmation latency. A reply confirms a request if the client reports nothing before
// it.
func (s *samples) confirmed() *logged {
	if s[ombService].Total() == 0 {
		return &s[ombRTT]
	}
	return &s[ombService]
}

// each calls set with the name and value of each of the benchmark's latencies.
func (s *samples) each(set func(name string, v float64)) {
	for name, of := range s.quantiles() {
		name = strings.ToLower(name[:1]) + name[1:]
		for _, x := range percentiles {
			set(name+x.suffix, of(x.p))
		}
	}
	set("publishLatencyAvg", s.confirmed().Mean()/1e6)
	set("endToEndLatencyAvg", s[ombE2E].Mean()/1e6)
	set("publishDelayLatencyAvg", (s[ombLateness].Mean()+s[ombBlocked].Mean())/1e3)
}

// ticks yields percents, a hundred in each half of the remainder, until it is less than one of n samples;
// then 100.
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
