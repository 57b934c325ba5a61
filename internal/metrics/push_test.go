package metrics

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlp "go.opentelemetry.io/proto/otlp/metrics/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/weirmq/weir/internal/must"
)

func TestCollectors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://127.0.0.1:4318": "http://127.0.0.1:4318/v1/metrics", "https://a/": "https://a/v1/metrics", "http://a:9090/api/v1/otlp/v1/metrics": "http://a:9090/api/v1/otlp/v1/metrics",
	} {
		if got, err := Collector(in); err != nil || got != want {
			t.Errorf("Collector(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"": "is not a URL of OTLP", "127.0.0.1:4318": "is not a URL of OTLP", "grpc://a:4317": "is not a URL of OTLP", "http://": "is not a URL of OTLP", "http://u:secret@a": "OTEL_EXPORTER_OTLP_HEADERS",
	} {
		if got, err := Collector(in); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Collector(%q) = %q, %v; want an error with %q", in, got, err, want)
		}
	}
}

// receiver takes pushes as a collector does, and keeps the last one.
type receiver struct {
	status int

	mu   sync.Mutex
	last *collector.ExportMetricsServiceRequest
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	got := new(collector.ExportMetricsServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, got)
	}
	if err != nil || q.URL.Path != otlpPath {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.last = got
	r.mu.Unlock()
	if r.status != 0 {
		w.WriteHeader(r.status)
	}
}

// Decoded with OpenTelemetry's own definitions of the format.
func TestPushContainsRunFigures(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := &receiver{}
	s := httptest.NewServer(r)
	defer s.Close()
	at := must.Get(Collector(s.URL))(t)
	p := must.Get(Pushing(t.Context(), at, "1.2.3", filled(), nil, func(err error) { t.Error(err) }))(t)
	p.Flush(t.Context())
	if pushes, failures := p.Close(t.Context()); pushes < 2 || failures != 0 {
		t.Errorf("%d pushes, %d failures; want 2 or more, and none", pushes, failures)
	}
	about, metrics := map[string]string{}, map[string]*otlp.Metric{}
	for _, a := range r.last.GetResourceMetrics()[0].GetResource().GetAttributes() {
		about[a.GetKey()] = a.GetValue().GetStringValue()
	}
	for _, m := range r.last.GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics() {
		metrics[m.GetName()] = m
	}
	if about["service.name"] != "weir" || about["service.version"] != "1.2.3" {
		t.Errorf("the resource is %v", about)
	}
	sent := metrics["weir_messages_sent_total"].GetSum()
	if !sent.GetIsMonotonic() || sent.GetAggregationTemporality() != otlp.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
		t.Errorf("sent is no cumulative counter: %v", sent)
	}
	var all float64
	for _, d := range sent.GetDataPoints() {
		all += d.GetAsDouble()
	}
	if all != 10 {
		t.Errorf("%v sent; want 10", all)
	}
	for _, d := range metrics["weir_message_duration_seconds"].GetExponentialHistogram().GetDataPoints() {
		var n uint64
		for _, c := range d.GetPositive().GetBucketCounts() {
			n += c
		}
		if d.GetCount() != 24 || d.GetScale() != schema || n+d.GetZeroCount() != d.GetCount() {
			t.Errorf("a histogram of %d, scale %d, with %d in buckets and %d zeros; want 24 in all, scale %d", d.GetCount(), d.GetScale(), n, d.GetZeroCount(), schema)
		}
	}
	if n := len(metrics["weir_message_duration_seconds"].GetExponentialHistogram().GetDataPoints()); n == 0 {
		t.Error("there are no exponential histograms")
	}
}

// Later pushes continue.
func TestFailingCollectorIsReportedOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := httptest.NewServer(&receiver{status: http.StatusServiceUnavailable})
	defer s.Close()
	var errs []error
	p := must.Get(Pushing(t.Context(), s.URL+otlpPath, "", filled(), nil, func(err error) { errs = append(errs, err) }))(t)
	p.Flush(t.Context())
	p.Flush(t.Context())
	if pushes, failures := p.Close(context.Background()); pushes < 3 || failures != pushes || len(errs) != 1 {
		t.Errorf("%d pushes, %d failures, told %v; want three or more, all, and one", pushes, failures, errs)
	}
}
