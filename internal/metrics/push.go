package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// The interval of pushes, and the time limit of each, during which no other push starts.
const (
	pushEvery = time.Second
	pushLimit = 5 * time.Second
)

// otlpPath is the default path of a collector, by the specification of OTLP over HTTP.
const otlpPath = "/v1/metrics"

// Collector parses the URL to push to. It accepts http and https; the default path is /v1/metrics.
func Collector(s string) (string, error) {
	const allowed = "a URL of OTLP over HTTP, such as http://127.0.0.1:4318"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("is not %s", allowed) // it may hold a password
	case u.User != nil:
		return "", errors.New("has a user: set OTEL_EXPORTER_OTLP_HEADERS for what authenticates")
	case u.Path == "" || u.Path == "/":
		u.Path = otlpPath
	}
	return u.String(), nil
}

// A Push pushes figures to an OpenTelemetry collector. Its methods may be called from any goroutine.
type Push struct {
	reader   *metric.PeriodicReader
	provider *metric.MeterProvider
	counting *counting
}

// Dial opens a connection, like net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Pushing pushes f once a second to a URL from Collector, until Close. Headers and certificates come from
// the variables OTEL_EXPORTER_OTLP_*, as the OpenTelemetry SDK reads them. dial opens connections; only
// with nil, the process's default, do those certificates apply. failed is called once, from another
// goroutine, at the first failed push.
func Pushing(ctx context.Context, collector, version string, f *Figures, dial Dial, failed func(error)) (*Push, error) {
	// Failed pushes are not retried: the next one has the same cumulative sums.
	options := []otlpmetrichttp.Option{
		otlpmetrichttp.WithEndpointURL(collector), otlpmetrichttp.WithTimeout(pushLimit), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: false}),
	}
	if dial != nil {
		options = append(options, otlpmetrichttp.WithHTTPClient(&http.Client{Timeout: pushLimit, Transport: &http.Transport{DialContext: dial, MaxIdleConns: 1}}))
	}
	to, err := otlpmetrichttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing the push to OpenTelemetry: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	about := resource.NewSchemaless(attribute.String("service.name", "weir"), attribute.String("service.version", version), attribute.String("host.name", host))
	p := &Push{counting: &counting{Exporter: to, failed: failed}}
	p.reader = metric.NewPeriodicReader(p.counting, metric.WithInterval(pushEvery), metric.WithTimeout(pushLimit),
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(f))))
	p.provider = metric.NewMeterProvider(metric.WithReader(p.reader), metric.WithResource(about))
	return p, nil
}

// Flush pushes the current figures. It takes at most 5 s.
func (p *Push) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	_ = p.reader.ForceFlush(ctx) // the exporter counts it
}

// Close pushes a last time, and returns the number of pushes and of failed ones.
func (p *Push) Close(ctx context.Context) (pushes, failures uint64) {
	ctx, cancel := context.WithTimeout(ctx, 2*pushLimit)
	defer cancel()
	_ = p.provider.Shutdown(ctx) // the exporter counts it
	return p.counting.pushes.Load(), p.counting.failures.Load()
}

// counting is an exporter that counts pushes and failures, and hides errors from the SDK, whose error
// handler is global.
type counting struct {
	metric.Exporter
	pushes, failures atomic.Uint64
	once             sync.Once
	failed           func(error)
}

// Export implements metric.Exporter.
func (c *counting) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if len(m.ScopeMetrics) == 0 {
		return nil // no run has begun
	}
	c.pushes.Add(1)
	if err := c.Exporter.Export(ctx, m); err != nil {
		c.failures.Add(1)
		c.once.Do(func() { c.failed(err) })
	}
	return nil
}
