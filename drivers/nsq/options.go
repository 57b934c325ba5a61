package nsq

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/clientpath"
)

// Kinds of topics and channels.
const (
	durable   = "durable"
	ephemeral = "ephemeral"
)

// defaultAddress is where nsqd listens by the vendor's default.
const defaultAddress = "127.0.0.1:4150"

// Config is the driver's settings.
type Config struct {
	clientpath.Option
	Address  []string          `option:"address" help:"Servers (nsqd, TCP), as host:port or URL (tcp, tls); none: those that lookupd lists, or else 127.0.0.1:4150."`
	HTTP     []string          `option:"http" help:"HTTP addresses of these servers, in their order, as host:port or URL (http, https); none: as lookupd says, or else the port after that of address."`
	Lookupd  []string          `option:"lookupd" help:"nsqlookupd servers (HTTP), as host:port or URL; consumers then find the servers of a topic through them."`
	Token    driver.Secret     `option:"token" help:"Secret given to servers that want AUTH."`
	TLS      driver.TLSOptions `option:"tls"`
	Topics   string            `option:"topics" allowed:"durable,ephemeral" help:"Kind of the topics made: ephemeral ones are in memory only and drop what finds no room there."`
	Channels string            `option:"channels" allowed:"durable,ephemeral" help:"Kind of the channels made: ephemeral ones are in memory only, drop what finds no room there, and go with their last consumer."`

	MsgTimeout          time.Duration `option:"msg-timeout" help:"After how long a server delivers again what was not settled; 0: the server's own (1m by default)."`
	RequeueDelay        time.Duration `option:"requeue-delay" help:"How long a server holds back a message that a consumer refused."`
	OutputBuffer        int64         `option:"output-buffer" size:"bytes" help:"How much a server gathers for a consumer before it sends; 0: each message at once."`
	OutputBufferTimeout time.Duration `option:"output-buffer-timeout" help:"How long it gathers at most; servers take 25ms and more."`
	Heartbeat           time.Duration `option:"heartbeat" help:"How often a server asks whether the client is there; two silences end the connection, on either side."`
	WriteTimeout        time.Duration `option:"write-timeout" help:"How long the client waits for the network to take its bytes before it gives the connection up."`
	ReconnectWait       time.Duration `option:"reconnect-wait" help:"Pause between two attempts to connect again; it goes on for ever."`
	LookupdPoll         time.Duration `option:"lookupd-poll" help:"How often a consumer asks lookupd for servers that it does not know yet."`

	Server Server `option:"server"`
}

// Server is the settings of a server that weir starts; these are its defaults.
type Server struct {
	MemQueueSize int           `option:"mem-queue-size" help:"Server that weir starts: messages that a topic and a channel keep in memory each before they write to disk; 0: all go to disk."`
	SyncEvery    int           `option:"sync-every" help:"Server that weir starts: messages written or read between two fsyncs of a queue on disk."`
	SyncTimeout  time.Duration `option:"sync-timeout" help:"Server that weir starts: longest time between two fsyncs of a queue on disk."`
	MaxMsgSize   int           `option:"max-msg-size" help:"Server that weir starts: largest message, in bytes."`
	Discovery    string        `option:"discovery" allowed:"direct,lookupd" help:"Server that weir starts: how consumers find the servers of a topic: they are told, or ask nsqlookupd."`
	MaxRdyCount  int           `option:"max-rdy-count" help:"Server that weir starts: most messages under way to one consumer."`
}

// ClientPath implements driver.Labelled.
func (c *Config) ClientPath() string {
	return c.Label("weir's own publisher over the client's connection", "Producer.PublishAsync")
}

// PublishBlocks implements driver.Labelled.
func (*Config) PublishBlocks() bool { return true }

// validate reports what nsqd would not take.
func (s Server) validate() error {
	var errs []error
	for _, n := range []struct {
		name   string
		v, low int
	}{
		{"mem-queue-size", s.MemQueueSize, 0},
		{"sync-every", s.SyncEvery, 1},
		{"sync-timeout", int(s.SyncTimeout.Milliseconds()), 1},
		{"max-msg-size", s.MaxMsgSize, 1},
		{"max-rdy-count", s.MaxRdyCount, 1},
	} {
		if n.v < n.low {
			errs = append(errs, &driver.OptionError{Name: driver.ServerPrefix + n.name, Err: fmt.Errorf("%d (%d or more)", n.v, n.low)})
		}
	}
	return errors.Join(errs...)
}

// newConfig returns the defaults.
func newConfig() *Config {
	return &Config{
		Option: clientpath.Default(),
		Topics: durable, Channels: durable,
		// The client's own.
		OutputBuffer: 16 << 10, OutputBufferTimeout: 250 * time.Millisecond,
		// The client's own, 30 s, finds a server that fell silent after a minute;
		// a run is shorter.
		Heartbeat: 10 * time.Second,
		// The client's own, 1 s, is shorter than many a pause of a disk.
		WriteTimeout:  10 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		LookupdPoll:   5 * time.Second,
		Server:        Server{MemQueueSize: 10_000, SyncEvery: 2500, SyncTimeout: 2 * time.Second, MaxMsgSize: 1 << 20, MaxRdyCount: 2500, Discovery: "direct"},
	}
}

// Validate reports every fault in the settings, joined. It reads no files.
func (c *Config) Validate() error {
	errs := []error{c.Server.validate(), c.TLS.Validate()}
	bad := func(name, format string, v ...any) {
		errs = append(errs, &driver.OptionError{Name: name, Err: fmt.Errorf(format, v...)})
	}
	for _, a := range c.Address {
		if _, _, err := parseAddress(a); err != nil {
			bad("address", "%w", err)
		}
	}
	for _, l := range []struct {
		name string
		urls []string
	}{{"http", c.HTTP}, {"lookupd", c.Lookupd}} {
		for _, a := range l.urls {
			if _, err := parseURL(a); err != nil {
				bad(l.name, "%w", err)
			}
		}
	}
	if n := len(c.HTTP); n > 0 && n != max(1, len(c.Address)) {
		bad("http", "has %d addresses, and address has %d (one each, or none)", n, len(c.Address))
	}
	for _, d := range []struct {
		name      string
		v         time.Duration
		low, high time.Duration
	}{
		// What the client or every server refuses.
		{"heartbeat", c.Heartbeat, time.Second, time.Minute},
		{"write-timeout", c.WriteTimeout, 100 * time.Millisecond, 5 * time.Minute},
		{"output-buffer-timeout", c.OutputBufferTimeout, time.Millisecond, 30 * time.Second},
		{"requeue-delay", c.RequeueDelay, 0, time.Hour},
		{"reconnect-wait", c.ReconnectWait, time.Millisecond, time.Minute},
		{"lookupd-poll", c.LookupdPoll, 10 * time.Millisecond, 5 * time.Minute},
	} {
		if d.v < d.low || d.v > d.high {
			bad(d.name, "%v (%v to %v)", d.v, d.low, d.high)
		}
	}
	if c.MsgTimeout != 0 && c.MsgTimeout < time.Second {
		bad("msg-timeout", "%v (0, or 1s and more)", c.MsgTimeout)
	}
	if c.OutputBuffer != 0 && c.OutputBuffer < 64 {
		bad("output-buffer", "%s (0, or 64B and more)", driver.FormatSize(c.OutputBuffer))
	}
	return errors.Join(errs...)
}

// parseAddress reads the address of an nsqd; secure says that it asks for TLS.
func parseAddress(a string) (hostport string, secure bool, err error) {
	if scheme, rest, ok := strings.Cut(a, "://"); ok {
		switch scheme {
		case "tcp":
		case "tls":
			secure = true
		default:
			return "", false, fmt.Errorf("scheme %q (tcp, tls)", scheme)
		}
		a = strings.TrimSuffix(rest, "/")
	}
	host, port, err := net.SplitHostPort(a)
	if err != nil || host == "" || port == "" || strings.ContainsAny(a, "@/ ") {
		return "", false, errors.New("is not an address such as 127.0.0.1:4150")
	}
	return a, secure, nil
}

// parseURL reads the address of an HTTP interface. Its errors do not repeat it.
func parseURL(a string) (*url.URL, error) {
	if !strings.Contains(a, "://") {
		a = "http://" + a
	}
	u, err := url.Parse(a)
	if err != nil || u.Host == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("is not an address such as http://127.0.0.1:4151")
	}
	u.Path, u.RawQuery, u.Fragment = "", "", ""
	return u, nil
}

// secure reports whether TLS was asked for.
func (c *Config) secure() bool {
	if c.TLS != (driver.TLSOptions{}) {
		return true
	}
	for _, a := range c.Address {
		if _, tls, err := parseAddress(a); err == nil && tls {
			return true
		}
	}
	return false
}

// client returns the settings of the client library.
func (c *Config) client(t *tls.Config) (*client.Config, error) {
	n := client.NewConfig()
	n.ClientID = "weir"
	n.DialTimeout = connectLimit
	n.HeartbeatInterval, n.ReadTimeout = c.Heartbeat, 2*c.Heartbeat
	n.WriteTimeout = c.WriteTimeout
	n.MsgTimeout = c.MsgTimeout
	n.OutputBufferSize, n.OutputBufferTimeout = c.OutputBuffer, c.OutputBufferTimeout
	if c.OutputBuffer == 0 {
		// A size of -1 turns the timeout off as well. The timeout alone must not
		// be off: nsqd then keeps what it has gathered until there is more.
		n.OutputBufferSize = -1
	}
	n.AuthSecret = c.Token.Reveal()
	if c.secure() {
		n.TlsV1, n.TlsConfig = true, t
	}
	if err := n.Validate(); err != nil {
		return nil, fmt.Errorf("settings of the client: %w", err)
	}
	return n, nil
}
