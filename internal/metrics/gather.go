package metrics

import (
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirmq/weir/measure"
)

// The schema of the native histograms: 2^schema buckets per doubling, so that a bucket is 2.2 % wide. Less
// than a nanosecond counts as zero.
const (
	schema        = 5
	zeroThreshold = 1e-9
	nanosecond    = 1e9 // per second
)

// Gather implements prometheus.Gatherer: the figures so far, families sorted by name.
func (s *Figures) Gather() ([]*dto.MetricFamily, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		return nil, nil
	}
	backlog := float64(s.backlog)
	families := []*dto.MetricFamily{
		family("weir_backlog_messages", "Messages that are confirmed and may still come: without dead letters, and with lost ones as far as the run does not know yet.", dto.MetricType_GAUGE, "",
			s.metric(&dto.Metric{Gauge: &dto.Gauge{Value: &backlog}})),
		s.durations(),
	}
	for _, c := range []struct {
		name, help string
		of         func(*measure.Counters) uint64
	}{
		{"scheduled", "Messages that were due.", func(c *measure.Counters) uint64 { return c.Scheduled }},
		{"sent", "Messages that the client was given.", func(c *measure.Counters) uint64 { return c.Sent }},
		{"dropped", "Messages that were due and not sent, since the generator was full.", func(c *measure.Counters) uint64 { return c.Dropped }},
		{"confirmed", "Messages that the system confirmed.", func(c *measure.Counters) uint64 { return c.Confirmed }},
		{"failed", "Messages that the system or its client refused.", func(c *measure.Counters) uint64 { return c.Failed }},
		{"received", "Messages that consumers received, duplicates among them.", func(c *measure.Counters) uint64 { return c.Received }},
	} {
		f := family("weir_messages_"+c.name+"_total", c.help, dto.MetricType_COUNTER, "")
		for p := range measure.NumPhases {
			f.Metric = append(f.Metric, s.counter(c.of(&s.sum.Counters[p]), [2]string{"phase", p.String()}))
		}
		families = append(families, f)
	}
	families = append(families,
		family("weir_payload_sent_bytes_total", "Payload that was sent in the measured window.", dto.MetricType_COUNTER, "bytes", s.counter(s.sum.Window.SentBytes)),
		family("weir_payload_received_bytes_total", "Payload that was received in the measured window.", dto.MetricType_COUNTER, "bytes", s.counter(s.sum.Window.ReceivedBytes)))
	if p := s.plan; p.Before != nil {
		warmUp := p.Before(min(s.at, p.WarmUp))
		families = append(families, family("weir_messages_planned_total", "Messages that the schedule has by now, whether the generator keeps up or not. Absent in a closed loop.", dto.MetricType_COUNTER, "",
			s.counter(warmUp, [2]string{"phase", measure.WarmUp.String()}), s.counter(p.Before(s.at)-warmUp, [2]string{"phase", measure.Measure.String()})))
	}
	if s.phase != "" {
		one := 1.0
		families = append(families, family("weir_phase_info", "1 for the current part of the run: warmup, measure or drain.", dto.MetricType_GAUGE, "",
			s.metric(&dto.Metric{Gauge: &dto.Gauge{Value: &one}}, [2]string{"phase", s.phase})))
	}
	families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 })
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families, nil
}

// durations returns the distributions with samples.
func (s *Figures) durations() *dto.MetricFamily {
	f := family("weir_message_duration_seconds", "Latencies by distribution, in the words of the glossary.", dto.MetricType_HISTOGRAM, "")
	for k := range measure.NumKinds {
		for p := range measure.NumPhases {
			if c := &s.sum.Kinds[k][p]; c.Total() > 0 {
				f.Metric = append(f.Metric, s.metric(&dto.Metric{Histogram: histogram(c)}, [2]string{"distribution", k.String()}, [2]string{"phase", p.String()}))
			}
		}
	}
	return f
}

func family(name, help string, kind dto.MetricType, unit string, metrics ...*dto.Metric) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: &name, Help: &help, Type: kind.Enum(), Metric: metrics}
	if unit != "" {
		f.Unit = &unit
	}
	return f
}

func (s *Figures) counter(n uint64, labels ...[2]string) *dto.Metric {
	v := float64(n)
	return s.metric(&dto.Metric{Counter: &dto.Counter{Value: &v}}, labels...)
}

// metric sets m's labels, sorted by name.
func (s *Figures) metric(m *dto.Metric, labels ...[2]string) *dto.Metric {
	all := append(slices.Clone(s.labels), labels...)
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	for i := range all {
		m.Label = append(m.Label, &dto.LabelPair{Name: &all[i][0], Value: &all[i][1]})
	}
	return m
}

// bounds are the bounds of classic buckets, in ns, for readers without native histograms.
func bounds() []int64 {
	var b []int64
	for v := int64(1_000); v <= 10_000_000_000; v *= 10 {
		b = append(b, v, 5*v/2, 5*v)
	}
	return b
}

// histogram converts c, which has samples, to seconds, with native and classic buckets.
func histogram(c *measure.Counts) *dto.Histogram {
	total, sum := c.Total(), c.Mean()*float64(c.Total())/nanosecond
	sch, threshold, zeros := int32(schema), float64(zeroThreshold), uint64(0)
	h := &dto.Histogram{SampleCount: &total, SampleSum: &sum, Schema: &sch, ZeroThreshold: &threshold, ZeroCount: &zeros}
	for _, b := range bounds() {
		n, le := c.Below(b), float64(b)/nanosecond
		h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: &n, UpperBound: &le})
	}
	last, count, before := int32(math.MinInt32), int64(0), int64(0)
	flush := func() {
		if count > 0 {
			h.PositiveDelta = append(h.PositiveDelta, count-before)
			before, count = count, 0
		}
	}
	for v, n := range c.Buckets() {
		if v == 0 {
			zeros += n
			continue
		}
		i := int32(math.Ceil(math.Log2(float64(v)/nanosecond) * (1 << schema)))
		if i != last {
			flush()
			h.PositiveSpan = follow(h.PositiveSpan, last, i)
			last = i
		}
		count += int64(n) // #nosec G115 -- messages of a run are fewer
	}
	flush()
	return h
}

// follow appends bucket i, which comes after last, to the spans.
func follow(spans []*dto.BucketSpan, last, i int32) []*dto.BucketSpan {
	n := len(spans)
	if n > 0 && i == last+1 {
		*spans[n-1].Length++
		return spans
	}
	offset, length := i, uint32(1)
	if n > 0 {
		offset = i - last - 1
	}
	return append(spans, &dto.BucketSpan{Offset: &offset, Length: &length})
}
