// Package metrics exposes a run in progress to Prometheus, and pushes it to OpenTelemetry: counters, gauges
// and native histograms, updated by the run's readings once a second.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirmq/weir/measure"
)

// loopback is the host of a server given only a port.
const loopback = "127.0.0.1"

// Path is the URL path of the metrics.
const Path = "/metrics"

// Address parses an address to listen on: PORT, :PORT or HOST:PORT; the first two mean this host only. Port
// 0 picks a free one.
func Address(s string) (string, error) {
	const allowed = "PORT, :PORT or HOST:PORT, such as :9464; without a host only this one can read it"
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Contains(s, ":") {
			return "", fmt.Errorf("%q is not an address (%s)", s, allowed)
		}
		host, port = "", s
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q has no port from 0 to 65535 (%s)", s, allowed)
	} else {
		port = strconv.FormatUint(n, 10)
	}
	if host == "" {
		host = loopback
	}
	return net.JoinHostPort(host, port), nil
}

// Figures are the metrics of the latest run. The zero value has none. Methods may be called from any
// goroutine.
type Figures struct {
	mu      sync.Mutex
	labels  [][2]string
	begun   bool
	phase   string
	backlog uint64
	sum     measure.Snapshot
	plan    Plan
	at      int64 // of the latest interval's end, ns since the run's start
}

// A Plan counts the messages of an open loop's schedule.
type Plan struct {
	WarmUp int64                 // end of the warm-up, ns since the run's start
	Before func(ns int64) uint64 // messages that are due before an instant; nil: nothing is planned
}

// Begin starts the metrics of a new run: its name, its number among others from 1, and its driver become
// labels of every series.
func (f *Figures) Begin(name string, number int, driver string, plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels = [][2]string{{"driver", driver}, {"number", strconv.Itoa(number)}, {"run", name}}
	f.begun, f.phase, f.backlog = true, "", 0
	f.sum, f.plan, f.at = measure.Snapshot{}, plan, 0
}

// Phase starts a phase of the run: warmup, measure, drain.
func (f *Figures) Phase(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase = name
}

// Interval adds an interval. It does not retain iv.
func (f *Figures) Interval(iv *measure.Interval) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backlog, f.at = iv.Backlog.Waiting(), max(f.at, iv.To)
	f.sum.Add(iv)
}

// A Server serves figures to Prometheus. Its methods may be called from any goroutine.
type Server struct {
	http   *http.Server
	at     string
	served chan error
}

// Listen serves f at an address from Address until Close.
func Listen(ctx context.Context, address string, f *Figures) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for Prometheus: %w", err)
	}
	s := &Server{at: l.Addr().String(), served: make(chan error, 1)}
	const most, limit = 4, 10 * time.Second // concurrent requests, and time for each
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, promhttp.HandlerFor(f, promhttp.HandlerOpts{MaxRequestsInFlight: most, Timeout: limit}))
	s.http = &http.Server{Handler: mux, ReadTimeout: limit, WriteTimeout: 2 * limit, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	go func() { s.served <- s.http.Serve(l) }()
	return s, nil
}

// URL returns the URL of the metrics.
func (s *Server) URL() string { return "http://" + s.at + Path }

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("serving Prometheus: %w", err)
	}
	return nil
}
