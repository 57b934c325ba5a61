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

// How often figures are pushed, and how long one push may take: a collector that does not
// answer gets no other before.
const (
	pushEvery = time.Second
	pushLimit = 5 * time.Second
)

// otlpPath is where a collector takes metrics, by the specification of OTLP over HTTP.
const otlpPath = "/v1/metrics"

// Collector returns the URL to push to. It takes http and https; without a path it is
// /v1/metrics.
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

// A Push pushes figures to an OpenTelemetry collector. Its methods may be called from any
// goroutine.
type Push struct {
	reader   *metric.PeriodicReader
	provider *metric.MeterProvider
	counting *counting
}

// Dial makes a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Pushing pushes f once a second to a URL that Collector returned, until Close. Headers and
// certificates are those of the variables OTEL_EXPORTER_OTLP_*, as the OpenTelemetry SDK
// reads them. dial makes the connections; nil: as any other of this process, and then
// those certificates count. failed is called once, from another goroutine, when a push fails first.
func Pushing(ctx context.Context, collector, version string, f *Figures, dial Dial, failed func(error)) (*Push, error) {
	// A push that fails is not tried again: the next one has the same sums and more.
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

// Flush pushes what the figures are now. It takes 5 s at most.
func (p *Push) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	_ = p.reader.ForceFlush(ctx) // the exporter counts it
}

// Close pushes a last time, and returns how many pushes there were and how many failed.
func (p *Push) Close(ctx context.Context) (pushes, failures uint64) {
	ctx, cancel := context.WithTimeout(ctx, 2*pushLimit)
	defer cancel()
	_ = p.provider.Shutdown(ctx) // the exporter counts it
	return p.counting.pushes.Load(), p.counting.failures.Load()
}

// counting is an exporter that counts what becomes of each push, and keeps errors from the
// SDK, which has one handler for a whole process.
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
