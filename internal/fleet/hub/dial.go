package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/natsdial"
)

// Limits of a client.
const (
	dialLimit       = 10 * time.Second // for the first connection, over all addresses of a host
	attemptLimit    = 3 * time.Second  // for each
	reconnectFirst  = 200 * time.Millisecond
	reconnectMost   = 2 * time.Second
	reconnectBuffer = 4 << 20 // bytes buffered during a reconnect; beyond that Publish fails
	clientPing      = 2 * time.Second
	clientPingsOut  = 3
)

// Dial connects the process self to the server at an address, within ctx and at most 10 s. Its errors are
// driver.ErrUnreachable if no server answers; admission.ErrScheme if it uses TLS and the URL does not, or
// the reverse; admission.ErrPin for another certificate, or one that this host's authorities do not know;
// driver.ErrAuth if it refused the credentials, with admission.ErrExpired if the token has expired by this
// host's clock; driver.ErrOverloaded if it is full and got as far as saying so.
//
// A lost connection is restored automatically, however long that takes; meanwhile up to 4 MiB of published
// messages wait. It is closed for good when its credentials are refused twice. Events go to the log.
// options follow Dial's own.
func Dial(ctx context.Context, a admission.Address, self *admission.Self, name string, log *slog.Logger, more ...nats.Option) (*nats.Conn, error) {
	if a.IsOwn() {
		return nil, fmt.Errorf("connecting to %s: %w: it has no fingerprint", a, admission.ErrPin)
	}
	d := &dialer{}
	scheme := "nats"
	config := a.TLS()
	options := []nats.Option{nats.SetCustomDialer(d)}
	if config != nil {
		scheme = "tls"
		if verify := config.VerifyConnection; verify != nil {
			config.VerifyConnection = d.noting(verify)
		}
		options = append(options, nats.Secure(config))
	}
	switch {
	case a.Scheme == admission.SchemeWeir:
		options = append(options, nats.TLSHandshakeFirst(), nats.Token(a.Token.Reveal()),
			nats.Nkey(self.ID(), self.Sign), nats.CustomInboxPrefix(Inbox(self.ID())))
	case !a.Password.IsZero():
		options = append(options, nats.UserInfo(a.User.Reveal(), a.Password.Reveal()))
	case !a.User.IsZero():
		options = append(options, nats.Token(a.User.Reveal()))
	}
	options = append(options, func(o *nats.Options) error {
		o.Servers = []string{scheme + "://" + a.Host}
		return nil
	})
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	// Connect has no context, but it only waits for the network, which ends with the socket.
	interrupt := context.AfterFunc(ctx, d.refuse)
	var f farewell
	nc, err := dial(ctx, a.String(), name, log, &f, append(options, more...))
	if err == nil && a.Scheme == admission.SchemeWeir {
		err = f.listen(nc)
	}
	if !interrupt() && err == nil {
		nc.Close()
		return nil, fmt.Errorf("connecting to %s: %w: %w", a, driver.ErrUnreachable, ctx.Err())
	}
	if err == nil {
		return nc, nil
	}
	if nc != nil { // it was closed again at once
		nc.Close()
		return nil, fmt.Errorf("connecting to %s: %w: %w", a, driver.ErrUnreachable, err)
	}
	why := d.why()
	if wrong := d.mismatch(ctx, a, err); wrong != nil {
		return nil, fmt.Errorf("connecting to %s: %w", a, wrong)
	}
	switch {
	case errors.Is(err, admission.ErrPin):
	case errors.Is(why, admission.ErrPin):
		err = fmt.Errorf("connecting to %s: %w", a, why)
	case errors.Is(err, driver.ErrAuth):
		if t := a.Token; a.Scheme == admission.SchemeWeir && !time.Now().Before(t.Ends()) {
			err = fmt.Errorf("%w: the token %w at %s", err, admission.ErrExpired, t.Ends().Format(time.RFC3339))
		}
	case why != nil:
		err = fmt.Errorf("connecting to %s: %w: %w", a, driver.ErrUnreachable, why)
	}
	return nil, err
}

// dial connects with the options common to all connections.
func dial(ctx context.Context, to, name string, log *slog.Logger, f *farewell, options []nats.Option) (*nats.Conn, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("connection", name)
	common := []nats.Option{
		nats.Name(name),
		nats.Timeout(attemptLimit),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(pause),
		nats.ReconnectBufSize(reconnectBuffer),
		nats.PingInterval(clientPing),
		nats.MaxPingsOutstanding(clientPingsOut),
		nats.DisconnectErrHandler(f.lost(log)),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { log.Debug("connection to the fleet not made again yet", "why", err) }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connection to the fleet made again", "server", nc.ConnectedUrlRedacted())
		}),
		nats.ClosedHandler(func(nc *nats.Conn) {
			if err := nc.LastError(); err != nil {
				log.Warn("connection to the fleet given up", "why", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Warn("fleet", "why", err, "subject", subject)
		}),
	}
	nc, err := natsdial.Connect(ctx, append(common, options...)...)
	switch {
	case err == nil:
		return nc, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("connecting to %s: %w: %w", to, driver.ErrUnreachable, ctx.Err())
	case errors.Is(err, admission.ErrPin):
		return nil, fmt.Errorf("connecting to %s: %w", to, err)
	case natsdial.IsAuth(err):
		return nil, fmt.Errorf("connecting to %s: %w: %w", to, driver.ErrAuth, err)
	case isFull(err):
		return nil, fmt.Errorf("connecting to %s: %w: %w", to, driver.ErrOverloaded, err)
	default:
		return nil, fmt.Errorf("connecting to %s: %w: %w", to, driver.ErrUnreachable, err)
	}
}

// isFull reports whether the server has reached its connection limit.
func isFull(err error) bool {
	return errors.Is(err, nats.ErrMaxConnectionsExceeded) || errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) ||
		strings.Contains(strings.ToLower(err.Error()), "maximum connections exceeded")
}

// pause is the delay before the next reconnect. It is random, so that agents that lost their hub together
// do not reconnect together.
func pause(attempts int) time.Duration {
	d := reconnectMost
	if n := max(attempts-1, 0); n < 4 {
		d = min(reconnectFirst<<n, reconnectMost)
	}
	return d/2 + rand.N(d/2)
}

// A dialer opens the client's sockets, and records why it failed.
type dialer struct {
	mu      sync.Mutex
	conn    net.Conn
	failed  error
	refused bool
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: attemptLimit, KeepAlive: 10 * time.Second}
	c, err := nd.Dial(network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = err
	if err != nil {
		return nil, err
	}
	if d.refused {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	d.conn = c
	return c, nil
}

// noting records a failed verification for why.
func (d *dialer) noting(verify func(tls.ConnectionState) error) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		err := verify(s)
		if err != nil {
			d.mu.Lock()
			d.failed = err
			d.mu.Unlock()
		}
		return err
	}
}

// why is the reason why the last connection failed; nil if it did not.
func (d *dialer) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// mismatch explains a connection that failed with err because of the URL's scheme, or because this host
// does not trust the certificate; nil otherwise.
func (d *dialer) mismatch(ctx context.Context, a admission.Address, err error) error {
	d.mu.Lock()
	reached := d.failed == nil && d.conn != nil
	d.mu.Unlock()
	var plain tls.RecordHeaderError
	var untrusted *tls.CertificateVerificationError
	switch {
	case !reached:
		return nil
	case errors.As(err, &plain) && a.Scheme == admission.SchemeWeir:
		return fmt.Errorf("%w: what listens there does not speak TLS, so it is not a coordinator of a fleet (nats://HOST:PORT of an existing NATS server)", admission.ErrScheme)
	case errors.As(err, &plain), errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: the server there does not speak TLS (nats://HOST:PORT)", admission.ErrScheme)
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w: %w (tls://HOST:PORT?pin=sha256:HEX takes one certificate)", admission.ErrPin, untrusted.Err)
	case a.Scheme != admission.SchemeWeir && errors.Is(err, io.EOF) && speaksTLS(ctx, a.Host):
		return fmt.Errorf("%w: the server there speaks TLS from its first byte, as the coordinator of a fleet does (the URL that weir fleet token prints; "+
			"weir://HOST:PORT for the coordinator's own user on its host)", admission.ErrScheme)
	}
	return nil
}

// speaksTLS reports whether a server answers a TLS handshake with TLS, even with a refusal.
func speaksTLS(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // nothing is sent over it
	c, err := d.DialContext(ctx, "tcp", host)
	if err == nil {
		_ = c.Close()
		return true
	}
	var refusal *net.OpError // a TLS alert
	return errors.As(err, &refusal) && refusal.Op == "remote error"
}

// refuse closes the current socket, and opens no more.
func (d *dialer) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = true
	if d.conn != nil {
		_ = d.conn.Close()
	}
}
