// Package hub runs the NATS server at which a fleet meets, inside the coordinator's
// process, and connects to one.
//
// On every connection, on loopback as elsewhere, it asks for TLS 1.3, a token of its
// keep (package admission), and a signature by which it knows the process again.
//
// There are two accounts. In one the agents and the coordinator meet; in the other, the
// books, JetStream is, and only the coordinator. What is published below
// weir.fleet.report in the first goes to the second, where a stream may take it, and its
// confirmation comes back. Nothing else passes. One account would not do: a server
// confirms a message to whatever subject the message names for that, and with the names
// of JetStream's own requests an agent had streams purged so.
//
// Whoever came in over the network, be it from another host or this one, is an agent,
// known by the key that signed its connection. An agent may
//
//   - publish and subscribe below subjects of its own: its joins, how it stands, its
//     reports, the orders for it, questions to it, and answers to its own questions;
//   - subscribe to the coordinator's beacon, and to the orders that are for all;
//   - ask the coordinator for its clock, and others how they are, which is all that a
//     survey needs;
//   - answer once what it was asked;
//   - be a micro-service, and look for others ($SRV).
//
// All else is refused to it: what others are told, what they tell, and JetStream, with
// all streams and buckets.
//
// Streams are kept in a folder: a hub that is started again with it, and on the same
// address, has them and the same certificate, and its clients come back by themselves.
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

// What a connection may use.
const (
	MaxPayload = 8 << 20 // B, of one message
	maxConns   = 1024
	maxSubs    = 1024     // of one connection
	maxPending = 32 << 20 // B that wait for one connection; one that is slower is closed
	maxMemory  = 256 << 20
)

// Bounds of waiting.
const (
	startLimit  = 20 * time.Second
	stopLimit   = 5 * time.Second
	authLimit   = 2 * time.Second // from the connection to its credentials, and for the TLS handshake
	answerLimit = time.Minute     // from a question to an agent to its answer
	writeLimit  = 5 * time.Second // for the network to take bytes
	pingEvery   = 5 * time.Second // two silences end a connection
	maxPingsOut = 2
	poll        = 5 * time.Millisecond
)

// Why a hub does not start.
var (
	// ErrInsecure: it would be open to others, without TLS and tokens.
	ErrInsecure = errors.New("not without TLS and tokens")
	// ErrPortTaken: another process listens there.
	ErrPortTaken = errors.New("port taken")
	// ErrInUse: another hub has the folder.
	ErrInUse = errors.New("folder in use by another hub")
)

// Options of a hub.
type Options struct {
	Listen string           // HOST:PORT; "": 127.0.0.1:0. Port 0 picks a free one
	Keep   *admission.Keep  // of certificate and tokens
	Dir    string           // for the streams; made where it is missing
	Log    *slog.Logger     // nil: none
	Now    func() time.Time // by which tokens end; nil: time.Now
}

// A Hub is a server that runs. Its methods may be called by any goroutine.
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

// Start starts a hub and returns when its clients are answered and JetStream is
// usable, within ctx and at most 20 s. Close ends it; ctx, once Start has returned, does
// not. Refused are to start without a keep (ErrInsecure), a port that is taken
// (ErrPortTaken) and a folder that another hub has (ErrInUse).
//
// What the server warns of goes to the log, and whom it refused and why: with the
// remote address, never with a token.
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
	// The server itself reports a busy port as a readiness that never comes.
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
	h.auth = &authenticator{keep: o.Keep, now: o.Now, said: h.logger, fleetKey: rand.Text(), booksKey: rand.Text()}
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

// Full reports whether the disk of the hub's folder had no room for what was to be
// stored, at any time since Start. A stream that met that takes nothing more.
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
	so.NoSigs = true // the caller's process decides what its signals mean
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
	// Clients know where it is; the addresses of this host's other networks only
	// delay their coming back.
	so.Cluster.NoAdvertise = true
	so.TLSConfig = o.Keep.TLS()
	so.TLS = true
	so.TLSHandshakeFirst = true // nothing is said in the clear, so nothing can be put into it
	so.AlwaysEnableNonce = true // which connections sign
	return so, nil
}

// listenAddress reads HOST:PORT.
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

// Addr returns HOST:PORT where the hub listens.
func (h *Hub) Addr() string { return h.addr.String() }

// JoinURL returns how agents get here by a host name or address that they reach this
// host by; "" is the one that the hub listens on, which serves where it does not listen
// on all. The token is one of the keep's.
func (h *Hub) JoinURL(host string, token admission.Token) admission.Address {
	if host == "" {
		host = h.addr.IP.String()
	}
	return admission.Address{Scheme: admission.SchemeWeir, Host: net.JoinHostPort(host, strconv.Itoa(h.addr.Port)), Pin: h.keep.Pin(), Token: token}
}

// OwnURL is how agents of this host and user get here (admission.Address.IsOwn). ok is
// false where the hub does not listen on loopback.
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

// Dial connects the coordinator itself, within the process, to where its agents are.
// There is no JetStream there. The options are added to those of Dial, the function.
func (h *Hub) Dial(ctx context.Context, name string, log *slog.Logger, more ...nats.Option) (*nats.Conn, error) {
	return h.dial(ctx, h.auth.fleetKey, name, log, more)
}

// DialBooks connects the coordinator to where JetStream is, and where the agents'
// reports come in.
func (h *Hub) DialBooks(ctx context.Context, name string, log *slog.Logger, more ...nats.Option) (*nats.Conn, error) {
	return h.dial(ctx, h.auth.booksKey, name, log, more)
}

func (h *Hub) dial(ctx context.Context, key, name string, log *slog.Logger, more []nats.Option) (*nats.Conn, error) {
	own := []nats.Option{nats.InProcessServer(h.server), nats.Token(key)}
	return dial(ctx, "the hub of this process", name, log, new(farewell), append(own, more...))
}

// Tick tells, from time to time, how many lines of the log were left out.
func (h *Hub) Tick() { h.logger.log.Tick() }

// Clients returns how many connections there are, the coordinator's own among them.
func (h *Hub) Clients() int { return h.server.NumClients() }

// Close tells the clients that the hub ends, and ends it, within 6 s. Streams stay in their
// folder. It is idempotent.
func (h *Hub) Close() {
	h.close.Do(func() {
		h.logger.log.End()
		if h.logger.loud.Swap(false) { // what the end does to connections is not news
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
			// The lock stays: the folder is still in use.
			h.log.Warn("the fleet's hub did not stop in time", "limit", stopLimit)
		}
	})
}
