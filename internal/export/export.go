// Package export writes results in formats of other programs: CSV for spreadsheets, JUnit XML for build
// servers, Go's benchmark format for benchstat, and OpenMetrics for Prometheus. Each includes the verdict.
// It computes nothing: all values are from the results. Only OMB has no verdict, and reads the samples.
package export

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

// A Run is a result, and its folder as shown.
type Run struct {
	Dir    string
	Result *result.Result
}

// name distinguishes a run among several.
func (r Run) name() string {
	if n := r.Result.Run.Name; n != "" {
		return n
	}
	return r.Dir
}

// Formats returns the names of the formats, sorted.
func Formats() []string {
	return []string{"benchstat", "csv", "junit", "openmetrics"}
}

// Write writes runs to w in a format of Formats. The error is that of w.
func Write(w io.Writer, format string, runs []Run) error {
	switch format {
	case "benchstat":
		return benchstat(w, runs)
	case "csv":
		return writeCSV(w, runs)
	case "junit":
		return junit(w, runs)
	case "openmetrics":
		return openMetrics(w, runs)
	}
	return fmt.Errorf("writing results as %q: no such format (%s)", format, strings.Join(Formats(), ", "))
}

// Units of a Figure.
const (
	unitNS       = "ns"
	unitMessages = "messages"
	unitPerS     = "messages/s"
	unitBytesS   = "bytes/s"
)

// A Figure is one number of a run, named as in objectives.
type Figure struct {
	Name  string  // "e2e.p99", "send.service.p50", "lost", "sent.rate"
	Of    string  // "e2e", "send.service", "sent", "lost": its source
	P     float64 // percent; 100 is the maximum; 0: not a percentile
	Unit  string
	Value result.Value
	Low   *float64 // 95 % interval, in Unit; nil if unknown
	High  *float64
	Weak  bool // a percentile with too few samples
}

// Latencies returns the names of the latencies of a run, with which those of their figures begin.
func Latencies() []string {
	return []string{"send", "send.service", "send.system", "e2e", "e2e.service", "e2e.system", "rtt", "rtt.service"}
}

// Figures returns the figures of the measured window: distributions, rates and counts, without missing
// ones.
func Figures(r *result.Result) []Figure {
	var out []Figure
	for _, name := range append(Latencies(), "settle") {
		out = append(out, ofDistribution(r, name, r.Dist(name))...)
	}
	s := &r.Latency.Send
	out = append(out, ofDistribution(r, "hop", s.Hop)...)
	out = append(out, ofDistribution(r, "lateness", s.Lateness)...)
	out = append(out, ofDistribution(r, "blocked", s.Blocked)...)
	t := &r.Throughput
	rate := func(name, unit string, v float64) {
		out = append(out, Figure{Name: name, Of: strings.TrimSuffix(strings.TrimSuffix(name, ".rate"), ".bytes"), Unit: unit, Value: result.Exactly(v)})
	}
	if !r.Consuming() {
		rate("offered.rate", unitPerS, t.OfferedPerS)
		rate("sent.rate", unitPerS, t.SentPerS)
		rate("confirmed.rate", unitPerS, t.ConfirmedPerS)
		rate("sent.bytes", unitBytesS, t.SentBytesPerS)
	}
	if perS, known := t.Received(); known {
		rate("received.rate", unitPerS, perS)
	}
	if t.ReceivedBytesPerS != nil {
		rate("received.bytes", unitBytesS, *t.ReceivedBytesPerS)
	}
	counts := reflect.ValueOf(r.Messages)
	for i := range counts.NumField() {
		name, _, _ := strings.Cut(counts.Type().Field(i).Tag.Get("json"), ",")
		out = append(out, Figure{Name: name, Of: name, Unit: unitMessages, Value: result.Exactly(float64(counts.Field(i).Uint()))})
	}
	return out
}

// ofDistribution returns the figures of a distribution. A sample has percentiles only.
func ofDistribution(r *result.Result, name string, d *result.Dist) []Figure {
	if d == nil {
		return nil
	}
	var out []Figure
	sampled := judge.OfSystem(name)
	for i := range d.Percentiles {
		p := &d.Percentiles[i]
		f := Figure{Name: name + ".p" + number(p.P), Of: name, P: p.P, Unit: unitNS, Value: p.Value(), Low: toFloat(p.LoNS), High: toFloat(p.HiNS)}
		if p.P == 100 {
			f.Name = name + ".max"
		}
		if f.Weak = !judge.Known(&r.Verdict, f.Name, p); p.P < 100 || !sampled {
			out = append(out, f)
		}
	}
	if sampled {
		return append(out, Figure{Name: name + ".samples", Of: name, Unit: unitMessages, Value: result.Exactly(float64(d.Count))})
	}
	if d.MeanNS != nil {
		out = append(out, Figure{Name: name + ".mean", Of: name, Unit: unitNS, Value: result.Exactly(*d.MeanNS)})
	}
	if d.MinNS != nil {
		out = append(out, Figure{Name: name + ".min", Of: name, Unit: unitNS, Value: result.Exactly(float64(*d.MinNS))})
	}
	return append(out, Figure{Name: name + ".samples", Of: name, Unit: unitMessages, Value: result.Exactly(float64(d.Count))})
}

func toFloat(ns *int64) *float64 {
	if ns == nil {
		return nil
	}
	f := float64(*ns)
	return &f
}

// Flat returns the supported figures that are not mere bounds, by name.
func Flat(r *result.Result) map[string]float64 {
	flat := map[string]float64{}
	for _, f := range Figures(r) {
		if v, exact := f.Value.Exact(); exact && !f.Weak {
			flat[f.Name] = v
		}
	}
	return flat
}

// shown returns the figures for formats that compare or monitor: the supported ones, without auxiliary
// counts.
func shown(r *result.Result) []Figure {
	return slices.DeleteFunc(Figures(r), func(f Figure) bool { return f.Weak || strings.HasSuffix(f.Name, ".samples") })
}

// number formats a value with all its digits.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
