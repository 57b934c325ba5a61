package pulsar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// A link creates the brokers' clients: one for each producer and consumer, so that each has its own
// connection.
type link struct {
	cfg     *Config
	brokers endpoint.List
	tls     *tls.Config // nil: none
	auth    client.Authentication
}

func newLink(cfg *Config) (link, error) {
	l := link{cfg: cfg}
	var err error
	if l.brokers, err = brokers.All("address", cfg.Address); err != nil {
		return l, err
	}
	if l.brokers.Secure() || cfg.TLS != (driver.TLSOptions{}) {
		if l.tls, err = cfg.TLS.Config(); err != nil {
			return l, err
		}
	}
	switch {
	case !cfg.Token.IsZero():
		l.auth = client.NewAuthenticationToken(cfg.Token.Reveal())
	case cfg.User != "":
		l.auth, err = client.NewAuthenticationBasic(cfg.User, cfg.Password.Reveal())
	case cfg.TLS.Cert != "":
		l.auth = client.NewAuthenticationTLS(cfg.TLS.Cert, cfg.TLS.Key)
	}
	return l, err
}

// greet connects to each broker, because the client reports neither that no server listens nor that
// a certificate is refused, but retries until it times out.
func (l *link) greet(ctx context.Context) error {
	for _, b := range l.brokers {
		var c net.Conn
		var err error
		if l.tls != nil {
			c, err = (&tls.Dialer{Config: l.tls}).DialContext(ctx, "tcp", b.HostPort())
		} else {
			c, err = (&net.Dialer{}).DialContext(ctx, "tcp", b.HostPort())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", b.HostPort(), words.Unreachable(err))
		}
		_ = c.Close()
	}
	return nil
}

// client returns a client, and the last reason why it could not connect. It has not connected yet.
func (l *link) client() (client.Client, *complaint, error) {
	scheme := "pulsar://"
	if l.tls != nil {
		scheme = "pulsar+ssl://"
	}
	why := &complaint{last: &reason{}}
	c, err := client.NewClient(client.ClientOptions{
		URL: scheme + strings.Join(l.brokers.HostPorts(), ","), TLSConfig: l.tls, Authentication: l.auth,
		ConnectionTimeout: l.cfg.Timeout, OperationTimeout: l.cfg.Timeout, KeepAliveInterval: l.cfg.KeepAlive,
		MemoryLimitBytes:  -1, // the producers' slots and the consumers' queues are limited
		MetricsRegisterer: prometheus.NewRegistry(),
		Logger:            log.NewLoggerWithSlog(slog.New(why)),
	})
	return c, why, words.Cause(err)
}

// A complaint receives the client's log. It keeps the reason for a failed connection, because the
// client's errors say only "connection error".
type complaint struct {
	last *reason
	err  string // of the next record
}

// A reason is a client's last reason.
type reason struct {
	mu   sync.Mutex
	text string

	blocked func(why string) // called when the broker has no room for a producer; nil: ignored
}

// quota matches a broker's answer to a producer of a topic with too large a backlog.
var quota = regexp.MustCompile(`ProducerBlockedQuotaExceeded\w*`)

// Enabled implements slog.Handler. Records below warning are not even created.
func (c *complaint) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (c *complaint) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	if c.err != "" {
		text = strings.TrimSuffix(text, ".") + ": " + c.err
	}
	if code := quota.FindString(c.err); code != "" && c.last.blocked != nil {
		c.last.blocked("the topic's backlog is above its quota (" + code + ")")
	}
	for _, begin := range []string{"Failed to connect to broker", "Failed to perform initial handshake", "Failed to establish connection"} {
		if strings.HasPrefix(text, begin) {
			c.last.mu.Lock()
			c.last.text = text
			c.last.mu.Unlock()
		}
	}
	return nil
}

func (c *complaint) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "error" {
			return &complaint{c.last, a.Value.String()}
		}
	}
	return c
}

func (c *complaint) WithGroup(string) slog.Handler { return c }

// explain returns the meaning of an error from opening something.
func (c *complaint) explain(err error) error {
	if err == nil || !strings.Contains(err.Error(), "connection error") {
		return words.Cause(err)
	}
	c.last.mu.Lock()
	defer c.last.mu.Unlock()
	is := driver.ErrUnreachable
	if strings.Contains(strings.ToLower(c.last.text), "authenticat") {
		is = driver.ErrAuth
	}
	return fmt.Errorf("%w: %s", is, c.last.text)
}

// pauses returns the client's reconnect policy. The client requests a policy when it starts to
// reconnect, which calls lost; again is called on success. Both may be called on any goroutine.
func pauses(wait time.Duration, lost, again func()) func() backoff.Policy {
	return func() backoff.Policy {
		lost()
		return &pause{wait, again}
	}
}

// pausesLate is pauses for a consumer with dead letters. The client also requests a policy when it
// opens the dead-letter producer, and uses it only if that fails. lost is therefore called on first
// use.
func pausesLate(wait time.Duration, lost, again func()) func() backoff.Policy {
	return func() backoff.Policy { return &latePause{pause{wait, again}, sync.OnceFunc(lost)} }
}

// A latePause reports a lost connection on first use.
type latePause struct {
	pause
	lost func()
}

func (p *latePause) Next() time.Duration {
	p.lost()
	return p.pause.Next()
}

func (p *latePause) Reset() {
	p.lost()
	p.pause.Reset()
}

// A pause always has the same length.
type pause struct {
	wait  time.Duration
	again func()
}

func (p *pause) Next() time.Duration { return p.wait }

func (p *pause) IsMaxBackoffReached() bool { return false }

// Reset implements backoff.Policy. The client calls it when it is connected.
func (p *pause) Reset() { p.again() }

// The client's error values.
var table = failure.Table{
	client.ErrSendTimeout:                  driver.ErrTimeout,
	client.ErrProducerClosed:               driver.ErrClosed,
	client.ErrMessageTooLarge:              driver.ErrTooLarge,
	client.ErrMetaTooLarge:                 driver.ErrTooLarge,
	client.ErrSendQueueIsFull:              driver.ErrOverloaded,
	client.ErrMemoryBufferIsFull:           driver.ErrOverloaded,
	client.ErrProducerBlockedQuotaExceeded: driver.ErrBlocked,
	client.ErrTopicNotfound:                driver.ErrUnsupported,
	client.ErrTopicTerminated:              driver.ErrUnsupported,
	client.ErrProducerFenced:               driver.ErrUnsupported,
}

// texts lists parts of client errors that exist only as text: the server's error names
// (https://github.com/apache/pulsar/blob/v4.0.8/pulsar-common/src/main/proto/PulsarApi.proto,
// ServerError), and some of the client's own.
var texts = []struct {
	part string
	is   error
}{
	{"AuthenticationError", driver.ErrAuth},
	{"AuthorizationError", driver.ErrAuth},
	{"TopicNotFound", driver.ErrUnsupported},
	{"SubscriptionNotFound", driver.ErrUnsupported},
	{"ConsumerBusy", driver.ErrUnsupported},
	{"NotAllowedError", driver.ErrUnsupported},
	{"IncompatibleSchema", driver.ErrUnsupported},
	{"InvalidTopicName", driver.ErrUnsupported},
	{"TooManyRequests", driver.ErrOverloaded},
	{"ProducerBlockedQuota", driver.ErrBlocked},
	{"ServiceNotReady", driver.ErrUnreachable},
	{"connection error", driver.ErrUnreachable},
	{"connection closed", driver.ErrDisconnected},
	{"request timed out", driver.ErrTimeout},
	{"exceeds MaxMessageSize", driver.ErrTooLarge},
}

// request hides details that differ between a broker's answers.
var request = regexp.MustCompile(`(?i) ?\[?(request ?id|consumer ?id|producer ?id|id: /)[^\s,\]]*[\s:=]*[^\s,\]]*\]?`)

// words maps errors to the contract's.
var words = failure.Map{
	Is: func(err error) error {
		if is, ok := table.Find(err); ok {
			return is
		}
		for _, t := range texts {
			if strings.Contains(err.Error(), t.part) {
				return t.is
			}
		}
		return nil
	},
	Hide: request,
}

var errLost = errors.New("the client connects again")
