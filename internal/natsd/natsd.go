// Package natsd runs NATS servers inside the calling process: a single server, or a cluster on
// loopback. `start: embedded` uses it, in a separate process, never in the measuring one.
//
// By default the servers listen on 127.0.0.1 and require no credentials. Clients may read one thing
// that a NATS server otherwise shows only to its system account: its own settings (VarzSubject). From
// these a driver learns from the running server itself whether writes are synced.
package natsd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// loopback is the default listen address.
const loopback = "127.0.0.1"

// VarzSubject is the request that every server of a cluster answers with its settings (server.Varz in
// server.ServerAPIResponse). It is the server's own subject, exported here from the system account to
// the clients' account.
const VarzSubject = "$SYS.REQ.SERVER.PING.VARZ"

// MaxPayload is the largest message accepted: the upper bound that the vendor recommends for
// max_payload (https://docs.nats.io/reference/faq, "maximum message size"). A NATS server's default is
// 1 MiB, headers included.
const MaxPayload = 8 << 20

// Time limits of Run.
const (
	startLimit = 20 * time.Second // until clients are answered, or the meta leader exists
	stopLimit  = 5 * time.Second
	poll       = 5 * time.Millisecond
)

// ErrPortTaken is returned when another process listens on the requested port.
var ErrPortTaken = errors.New("port taken")

// Options configures the servers.
type Options struct {
	Dir          string        // an existing folder, for JetStream
	Nodes        int           // 1, or at least 3 for a cluster; 0 means 1
	Port         int           // of the first node; 0 picks a free port. Other nodes always get a free one
	Bind         string        // listen address; "": 127.0.0.1
	SyncInterval time.Duration // interval of syncing file storage; 0: the server's default, 2 minutes
	SyncAlways   bool          // sync before each acknowledgement
}

// host is where the servers listen.
func (o *Options) host() string { return cmp.Or(o.Bind, loopback) }

// CheckNodes rejects a number of servers that makes no useful cluster.
func CheckNodes(n int) error {
	if n < 1 || n == 2 || n > 9 {
		return fmt.Errorf("%d nodes (1, or 3 to 9: two have no majority without each other)", n)
	}
	return nil
}

// Validate returns every fault in o, joined.
func (o Options) Validate() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("no folder"))
	}
	errs = append(errs, CheckNodes(max(o.Nodes, 1)))
	if o.Nodes < 0 {
		errs = append(errs, fmt.Errorf("%d nodes", o.Nodes))
	}
	if o.Port < 0 || o.Port > 65535 {
		errs = append(errs, fmt.Errorf("port %d (0 to 65535)", o.Port))
	}
	if o.SyncInterval < 0 {
		errs = append(errs, fmt.Errorf("sync interval %v is negative", o.SyncInterval))
	}
	if o.SyncAlways && o.SyncInterval > 0 {
		errs = append(errs, errors.New("sync always and a sync interval exclude each other"))
	}
	return errors.Join(errs...)
}

// Run starts the servers and calls ready once with their URLs when clients are served (and the cluster
// has elected its JetStream leader). When ctx ends it stops the servers within 5 s and returns nil.
// Any other end is an error; a busy port is ErrPortTaken. Server warnings go to log; before ready and
// after the end of ctx, when a cluster's nodes cannot find each other, they are logged at level debug.
func Run(ctx context.Context, o Options, ready func(address []string), log *slog.Logger) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("nats server: %w", err)
	}
	o.Nodes = max(o.Nodes, 1)
	if o.Port != 0 {
		// The server itself would report a busy port only as never becoming ready.
		l, err := net.Listen("tcp", net.JoinHostPort(o.host(), strconv.Itoa(o.Port)))
		if err != nil {
			return fmt.Errorf("nats server: %w: %w", ErrPortTaken, err)
		}
		_ = l.Close()
	}
	return retry(ctx, o, func(n int) ([]int, error) { return freePorts(o.host(), n) }, ready, log)
}

// startAttempts is how often servers are started with new ports, when a port that was free when chosen
// was taken before a server bound it.
const startAttempts = 3

// retry calls serve, with route ports between the nodes from the given function.
func retry(ctx context.Context, o Options, ports func(n int) ([]int, error), ready func(address []string), log *slog.Logger) error {
	for attempt := 1; ; attempt++ {
		routes, err := ports(o.Nodes)
		if err != nil {
			return fmt.Errorf("nats server: %w", err)
		}
		err = serve(ctx, o, routes, ready, log)
		if attempt == startAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		log.Debug("a port was taken meanwhile: starting again with others", "attempt", attempt, "why", err)
	}
}

// serve implements Run with given route ports.
func serve(ctx context.Context, o Options, routes []int, ready func(address []string), log *slog.Logger) error {
	all := options(o, routes)
	fatal := make(chan error, 1)
	said := &verbosity{}
	defer context.AfterFunc(ctx, said.lower)()
	var servers []*server.Server
	defer func() { stop(servers, log) }()
	for _, so := range all {
		s, err := server.NewServer(so)
		if err != nil {
			return fmt.Errorf("nats server %s: %w", so.ServerName, err)
		}
		s.SetLoggerV2(&logger{log.With("server", so.ServerName), said, fatal}, false, false, false)
		servers = append(servers, s)
	}
	for _, s := range servers {
		s.Start()
	}
	if err := await(ctx, servers, fatal); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		if last := said.last.Load(); last != nil {
			return fmt.Errorf("%w (a server says: %s)", err, *last)
		}
		return err
	}
	address := make([]string, len(servers))
	for i, s := range servers {
		if err := showSettings(s); err != nil {
			return fmt.Errorf("nats server %s: showing its settings: %w", s.Name(), err)
		}
		address[i] = "nats://" + s.Addr().String()
	}
	said.raise()
	defer said.lower() // the servers do not end at the same time
	ready(address)
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return err
	}
}

// options returns the options of each server.
func options(o Options, routes []int) []*server.Options {
	all := make([]*server.Options, o.Nodes)
	for i := range all {
		so := &server.Options{
			ServerName: fmt.Sprintf("weir-%d", i+1),
			Host:       o.host(),
			Port:       server.RANDOM_PORT,
			MaxPayload: MaxPayload,
			// The caller's process handles signals.
			NoSigs:       true,
			JetStream:    true,
			StoreDir:     filepath.Join(o.Dir, fmt.Sprintf("node-%d", i+1)),
			SyncInterval: o.SyncInterval,
			SyncAlways:   o.SyncAlways,
		}
		if i == 0 && o.Port != 0 {
			so.Port = o.Port
		}
		if o.Nodes > 1 {
			so.Cluster = server.ClusterOpts{Name: "weir", Host: o.host(), Port: routes[i]}
			for _, p := range routes {
				so.Routes = append(so.Routes, &url.URL{Scheme: "nats-route", Host: net.JoinHostPort(o.host(), strconv.Itoa(p))})
			}
		}
		all[i] = so
	}
	return all
}

// freePorts returns n ports that were free a moment ago: every node must know all routes before any
// node listens.
func freePorts(host string, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // held until all are found, so that they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// await returns when all servers answer and JetStream is usable.
func await(ctx context.Context, servers []*server.Server, fatal <-chan error) error {
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		missing := ""
		leader := len(servers) == 1
		for _, s := range servers {
			if !s.ReadyForConnections(time.Millisecond) {
				missing = s.Name() + " does not listen"
			} else if !s.JetStreamEnabled() {
				missing = s.Name() + " has no JetStream"
			} else if len(servers) > 1 && !s.JetStreamIsCurrent() {
				missing = s.Name() + " has not joined the cluster"
			}
			// A leader places replicas only on nodes that it has heard from.
			leader = leader || s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(servers)
		}
		if missing == "" && !leader {
			missing = "the cluster has no JetStream leader that sees all nodes"
		}
		if missing == "" {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-fatal:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("nats server: not ready after %v: %s", startLimit, missing)
		}
	}
}

// showSettings lets the clients' account request VarzSubject. As a stream, because in a cluster every
// node answers.
func showSettings(s *server.Server) error {
	sys, clients := s.SystemAccount(), s.GlobalAccount()
	if sys == nil || clients == nil {
		return errors.New("no system account")
	}
	if err := sys.AddServiceExportWithResponse(VarzSubject, server.Streamed, nil); err != nil {
		return err
	}
	return clients.AddServiceImport(sys, VarzSubject, VarzSubject)
}

// stop shuts down all servers in parallel, within stopLimit.
func stop(servers []*server.Server, log *slog.Logger) {
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		log.Warn("nats server did not stop in time", "limit", stopLimit)
	}
}

// A verbosity sets the level at which server warnings are logged.
type verbosity struct {
	loud atomic.Bool
	over atomic.Bool            // lower was called
	last atomic.Pointer[string] // last line of level error
}

// raise logs warnings as warnings, unless lower was called.
func (v *verbosity) raise() { v.loud.Store(true) }

// lower logs warnings at level debug from now on.
func (v *verbosity) lower() { v.over.Store(true) }

// level returns the level at which to log a line of level l.
func (v *verbosity) level(l slog.Level) slog.Level {
	if v.loud.Load() && !v.over.Load() {
		return l
	}
	return slog.LevelDebug
}

// A logger forwards a server's warnings. It drops other lines unformatted.
type logger struct {
	log   *slog.Logger
	said  *verbosity
	fatal chan<- error
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, v ...any) {
	l.log.Log(context.Background(), l.said.level(slog.LevelWarn), fmt.Sprintf(format, v...))
}

func (l *logger) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.said.last.Store(&text)
	l.log.Log(context.Background(), l.said.level(slog.LevelError), text)
}

// Fatalf ends Run, not the process.
func (l *logger) Fatalf(format string, v ...any) {
	err := fmt.Errorf("nats server: "+format, v...)
	for _, x := range v {
		// The server's format strings do not wrap errors.
		if cause, ok := x.(error); ok && errors.Is(cause, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w (%w)", err, syscall.EADDRINUSE)
		}
	}
	select {
	case l.fatal <- err:
	default: // the first reason is enough
	}
}
