// Package hub runs the NATS server at which a fleet meets, inside the coordinator's process, and connects
// clients to one.
//
// Every connection, even on loopback, requires TLS 1.3, a token of the server's keep (package admission),
// and a signature that identifies the process.
//
// There are two accounts. Agents and coordinator meet in the first; the second, "books", has JetStream, and
// only the coordinator. Messages below weir.fleet.report are exported from the first to the second, where a
// stream stores them, and the acknowledgement is passed back. Nothing else passes. A single account would be
// unsafe: a server acknowledges a message to any subject that the message names, so an agent could name
// JetStream's own requests and have streams purged.
//
// Every client that connects over the network, from another host or this one, is an agent, identified by
// the key that signed its connection. An agent may
//
//   - publish and subscribe below its own subjects: its joins, its standing, its reports, orders and
//     queries for it, and answers to its own queries;
//   - subscribe to the coordinator's beacon, and to the orders for all;
//   - ask the coordinator for its clock, and others for their state, which is all that a survey needs;
//   - answer each request once;
//   - be a micro-service, and look for others ($SRV).
//
// It may do nothing else: read what is sent to or by other agents, or use JetStream with its streams and
// buckets.
//
// Streams are kept in a folder: a hub restarted with that folder, on the same address, has them and the
// same certificate, and its clients reconnect automatically.
package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/flock"
)

// Limits for connections.
const (
	MaxPayload = 8 << 20 // B, of a message
	maxConns   = 1024
	maxSubs    = 1024     // per connection
	maxPending = 32 << 20 // B that wait for a connection; slower ones are closed
	maxMemory  = 256 << 20
)

// Time limits.
const (
	startLimit  = 20 * time.Second
	stopLimit   = 5 * time.Second
	authLimit   = 2 * time.Second // for credentials after connecting, and for the TLS handshake
	answerLimit = time.Minute     // for an agent to answer a query
	writeLimit  = 5 * time.Second // for a network write
	pingEvery   = 5 * time.Second // two missed pings end a connection
	maxPingsOut = 2
	poll        = 5 * time.Millisecond
)

// The reasons why a hub does not start.
var (
	// ErrInsecure refuses a hub open to others without TLS and tokens.
	ErrInsecure = errors.New("not without TLS and tokens")
	// ErrPortTaken says that another process listens on the port.
	ErrPortTaken = errors.New("port taken")
	// ErrInUse says that another hub uses the folder.
	ErrInUse = errors.New("folder in use by another hub")
)

// Options of a hub.
type Options struct {
	Listen string           // HOST:PORT; "": 127.0.0.1:0. Port 0 picks a free one
	Keep   *admission.Keep  // has certificate and tokens
	Dir    string           // for the streams; created if missing
	Log    *slog.Logger     // nil: none
	Now    func() time.Time // clock for token expiry; nil: time.Now
}

// A Hub is a running server. Its methods may be called from any goroutine.
type Hub struct {
	server *server.Server
	keep   *admission.Keep
	addr   *net.TCPAddr
	auth   *authenticator
	log    *slog.Logger
	logger *logger
	locked *os.File
	close  sync.Once
}

// Start starts a hub and returns when it answers clients and JetStream is usable, within ctx and at most 20
// s. Close ends it; once Start has returned, ctx does not. It refuses to start without a keep
// (ErrInsecure), on a port that is taken (ErrPortTaken) and with a folder that another hub uses (ErrInUse).
//
// The log gets the server's warnings, and refused clients with the reason and remote address, never with a
// token.
func Start(ctx context.Context, o Options) (*Hub, error) {
	h, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("starting the fleet's hub: %w", err)
	}
	return h, nil
}

func start(ctx context.Context, o Options) (*Hub, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	host, port, err := listenAddress(o.Listen)
	if err != nil {
		return nil, err
	}
	if o.Keep == nil {
		return nil, fmt.Errorf("listening on %s: %w", o.Listen, ErrInsecure)
	}
	if o.Dir == "" {
		return nil, errors.New("no folder")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	// The server itself reports a busy port only as never becoming ready.
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: %w", ErrPortTaken, err)
	}
	if err != nil {
		return nil, err
	}
	_ = l.Close()
	locked, err := flock.Try(filepath.Join(o.Dir, "lock"))
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, o.Dir)
	}
	if err != nil {
		return nil, err
	}
	h := &Hub{keep: o.Keep, log: o.Log, locked: locked, logger: newLogger(o.Log)}
	h.auth = &authenticator{keep: o.Keep, now: o.Now, said: h.logger, fleetKey: rand.Text(), reportsKey: rand.Text()}
	so, err := settings(host, port, o)
	if err == nil {
		so.CustomClientAuthentication = h.auth
		h.server, err = server.NewServer(so)
	}
	if err == nil {
		err = h.auth.accounts(h.server)
	}
	if err != nil {
		_ = locked.Close()
		return nil, err
	}
	h.server.SetLoggerV2(h.logger, false, false, false)
	h.server.Start()
	if err := h.await(ctx); err != nil {
		h.Close()
		return nil, err
	}
	h.addr, _ = h.server.Addr().(*net.TCPAddr)
	h.logger.loud.Store(true)
	return h, nil
}

// Full reports whether, since Start, the disk of the hub's folder lacked room for something to be stored. A
// stream that met that accepts nothing more.
func (h *Hub) Full() bool { return h.logger.full.Load() }

// settings returns the server's options.
func settings(host string, port int, o Options) (*server.Options, error) {
	so := &server.Options{}
	if err := so.ProcessConfigString(accounts); err != nil {
		return nil, err
	}
	so.ServerName = "weir-fleet"
	so.Host, so.Port = host, port
	if port == 0 {
		so.Port = server.RANDOM_PORT
	}
	so.NoSigs = true // the program handles its own signals
	so.JetStream, so.StoreDir = true, o.Dir
	so.JetStreamMaxMemory = maxMemory
	so.MaxPayload = MaxPayload
	so.MaxConn = maxConns
	so.MaxSubs = maxSubs
	so.MaxPending = maxPending
	so.WriteDeadline = writeLimit
	so.PingInterval, so.MaxPingsOut = pingEvery, maxPingsOut
	so.AuthTimeout, so.TLSTimeout = authLimit.Seconds(), authLimit.Seconds()
	so.MaxClosedClients = 100
	// Clients know the address; further addresses of this host would only delay their reconnects.
	so.Cluster.NoAdvertise = true
	so.TLSConfig = o.Keep.TLS()
	so.TLS = true
	so.TLSHandshakeFirst = true // nothing is sent in the clear, so nothing can be injected
	so.AlwaysEnableNonce = true // for connections to sign
	return so, nil
}

// listenAddress parses HOST:PORT.
func listenAddress(s string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(s)
	if err == nil {
		if port, err = strconv.Atoi(p); err == nil && (port < 0 || port > 65535) {
			err = errors.New("0 to 65535")
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("listening on %q: no HOST:PORT: %w", s, err)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, nil
}

// await returns when the server answers and JetStream is usable.
func (h *Hub) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if h.server.ReadyForConnections(time.Millisecond) && h.server.JetStreamEnabled() {
			return ctx.Err()
		}
		select {
		case <-tick.C:
		case err := <-h.logger.fatal:
			return err
		case <-ctx.Done():
			if last := h.logger.last.Load(); last != nil {
				return fmt.Errorf("not ready: %w (the server says: %s)", ctx.Err(), *last)
			}
			return fmt.Errorf("not ready: %w", ctx.Err())
		}
	}
}

// Addr returns HOST:PORT of the hub's listener.
func (h *Hub) Addr() string { return h.addr.String() }

// JoinURL returns the address for agents that reach this host by a host name or address; "" is the
// listener's, for hubs that do not listen on all. The token is from the keep.
func (h *Hub) JoinURL(host string, token admission.Token) admission.Address {
	if host == "" {
		host = h.addr.IP.String()
	}
	return admission.Address{Scheme: admission.SchemeWeir, Host: net.JoinHostPort(host, strconv.Itoa(h.addr.Port)), Pin: h.keep.Pin(), Token: token}
}

// OwnURL is the address for agents of this host and user (admission.Address.IsOwn). ok is false if the hub
// does not listen on loopback.
func (h *Hub) OwnURL() (a admission.Address, ok bool) {
	host := h.addr.IP.String()
	switch {
	case h.addr.IP.IsUnspecified():
		host = "127.0.0.1"
	case !h.addr.IP.IsLoopback():
		return admission.Address{}, false
	}
	return admission.Address{Scheme: admission.SchemeWeir, Host: net.JoinHostPort(host, strconv.Itoa(h.addr.Port))}, true
}

// Dial connects the coordinator, in process, to the account of its agents, which has no JetStream. options
// follow those of the function Dial.
func (h *Hub) Dial(ctx context.Context, name string, log *slog.Logger, more ...nats.Option) (*nats.Conn, error) {
	return h.dial(ctx, h.auth.fleetKey, name, log, more)
}

// DialReports connects the coordinator to the account with JetStream, which receives the agents' reports.
func (h *Hub) DialReports(ctx context.Context, name string, log *slog.Logger, more ...nats.Option) (*nats.Conn, error) {
	return h.dial(ctx, h.auth.reportsKey, name, log, more)
}

func (h *Hub) dial(ctx context.Context, key, name string, log *slog.Logger, more []nats.Option) (*nats.Conn, error) {
	own := []nats.Option{nats.InProcessServer(h.server), nats.Token(key)}
	return dial(ctx, "the hub of this process", name, log, new(farewell), append(own, more...))
}

// Tick reports from time to time how many log lines were suppressed.
func (h *Hub) Tick() { h.logger.log.Tick() }

// Clients returns the number of connections, including the coordinator's.
func (h *Hub) Clients() int { return h.server.NumClients() }

// Close announces the end to the clients, and stops the hub within 6 s. Streams stay in their folder. It is
// idempotent.
func (h *Hub) Close() {
	h.close.Do(func() {
		h.logger.log.End()
		if h.logger.loud.Swap(false) { // errors of connections are now expected
			h.bidFarewell()
		}
		done := make(chan struct{})
		go func() {
			h.server.Shutdown()
			h.server.WaitForShutdown()
			close(done)
		}()
		limit := time.NewTimer(stopLimit)
		defer limit.Stop()
		select {
		case <-done:
			_ = h.locked.Close()
		case <-limit.C:
			// Keep the lock: the folder is still in use.
			h.log.Warn("the fleet's hub did not stop in time", "limit", stopLimit)
		}
	})
}
