package rabbitmq

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/clientpath"
)

// Kinds of queues; where it is auto the number of replicas decides.
const (
	auto    = "auto"
	classic = "classic"
	quorum  = "quorum"
)

// Kinds of exchanges beside those that carry the vendor's own names.
const (
	byDefault = "default" // the one without a name
	direct    = "direct"
	fanout    = "fanout"
	topic     = "topic"
)

// What the names of existing destinations are.
const (
	areQueues    = "queue"
	areExchanges = "exchange"
)

const (
	persistent = "persistent"
	transient  = "transient"
	server     = "server" // what the server has by default
)

// Vendor's defaults.
const (
	defaultAddress = "127.0.0.1:5672"
	guest          = "guest"
)

// Config is the driver's settings.
type Config struct {
	clientpath.Option
	Address  []string          `option:"address" help:"Nodes of one cluster, as host:port or URL (amqp, amqps); none: 127.0.0.1:5672."`
	User     string            `option:"user" help:"User; guest may only connect over loopback, unless the server says otherwise."`
	Password driver.Secret     `option:"password" help:"Password of the user; that of guest is guest where none is given."`
	Vhost    string            `option:"vhost" help:"Virtual host."`
	TLS      driver.TLSOptions `option:"tls"`

	Queue          string `option:"queue" allowed:"auto,classic,quorum" help:"Type of the queues made; auto: quorum where a destination has replicas, else classic."`
	ClassicVersion string `option:"classic-version" allowed:"server,1,2" help:"How classic queues store messages, on servers from 3.10 to 3.13; server: as they are set to."`
	Durable        bool   `option:"durable" help:"Queues and exchanges survive a restart of the server; quorum queues always do."`
	DeliveryMode   string `option:"delivery-mode" allowed:"persistent,transient" help:"Whether classic queues that are durable keep messages over a restart; quorum queues keep all."`
	Confirm        bool   `option:"confirm" help:"The server confirms each message; without, a message counts as sent when the operating system has taken its bytes."`
	Mandatory      bool   `option:"mandatory" help:"A message that no queue takes fails; without, the server drops it without a word."`
	MaxLength      int64  `option:"max-length" help:"Most messages that a queue made holds; 0: any number."`
	Overflow       string `option:"overflow" allowed:"drop-head,reject-publish" help:"What a queue that is full does: drop its oldest message, or refuse the new one."`

	Exchange   string `option:"exchange" allowed:"fanout,direct,topic,default" help:"Kind of the exchange before the queues; default has none of its own, and only one subscription."`
	Existing   string `option:"existing" allowed:"queue,exchange" help:"What the names of existing destinations are."`
	RoutingKey string `option:"routing-key" help:"Routing key of messages to an existing exchange, and by which subscriptions are bound to it; none: the destination's name, and for a topic exchange # to bind by."`

	Management []string `option:"management" help:"URLs of the management plugin's HTTP interface, the first that answers is used: tells the nodes, and what queues there really are; none: what AMQP tells."`

	Heartbeat     time.Duration `option:"heartbeat" help:"How often either side says that it is there; one and a half without a word end the connection."`
	ReconnectWait time.Duration `option:"reconnect-wait" help:"Pause between two attempts to connect again."`
	ReconnectFor  time.Duration `option:"reconnect-for" help:"How long attempts to connect again go on before a consumer ends and a producer gives up."`
	ReopenAfter   time.Duration `option:"reopen-after" help:"How long the server may refuse every message of a destination (basic.nack) before a producer opens a new channel, at the next address; each time in vain doubles it, up to eight times. 0: never."`

	Server Server `option:"server"`
}

// Server is the settings of a server that weir starts; these are its defaults.
type Server struct {
	MaxMessageSize int    `option:"max-message-size" help:"Server that weir starts: largest message, in bytes."`
	ClassicVersion string `option:"classic-version" allowed:"1,2" help:"Server that weir starts: how classic queues store messages; 2 never syncs them."`
	Memory         string `option:"memory" help:"Server that weir starts: memory of a node above which it blocks connections that publish."`
}

// newConfig returns the defaults.
func newConfig() *Config {
	return &Config{
		Option: clientpath.Default(),
		User:   guest, Vhost: "/",
		Queue: auto, ClassicVersion: server, Durable: true, DeliveryMode: persistent, Confirm: true, Mandatory: true, Overflow: "drop-head",
		Exchange: fanout, Existing: areQueues,
		// The client's own.
		Heartbeat:     10 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		ReconnectFor:  time.Minute,
		ReopenAfter:   2 * time.Second,
		Server:        Server{MaxMessageSize: 128 << 20, ClassicVersion: "1", Memory: "2GB"},
	}
}

// ClientPath implements driver.Labelled.
func (c *Config) ClientPath() string {
	own, call := "its publisher over weir's own coalescing socket", "PublishWithContext"
	if c.Confirm {
		own += ", confirmations from raw frames"
		call += ", NotifyPublish"
	}
	return c.Label(own, call)
}

// PublishBlocks implements driver.Labelled: without the wire the client writes
// within the call.
func (c *Config) PublishBlocks() bool { return c.ByVendor() }

// Validate reports every fault in the settings, joined. It reads no files.
func (c *Config) Validate() error {
	var errs []error
	bad := func(name, format string, v ...any) {
		errs = append(errs, &driver.OptionError{Name: name, Err: fmt.Errorf(format, v...)})
	}
	for _, a := range c.Address {
		if _, _, err := parseAddress(a); err != nil {
			bad("address", "%w", err)
		}
	}
	for _, m := range c.Management {
		if _, err := parseURL(m); err != nil {
			bad("management", "%w", err)
		}
	}
	if c.User == "" {
		bad("user", "is empty (a user's name)")
	}
	if c.Vhost == "" {
		bad("vhost", "is empty (/ is the vendor's own)")
	}
	if err := c.TLS.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Queue == quorum && !c.Durable {
		bad("durable", "is no, and quorum queues are always durable (yes)")
	}
	if c.MaxLength < 0 {
		bad("max-length", "%d (0 or more)", c.MaxLength)
	}
	if len(c.RoutingKey) > mostName {
		bad("routing-key", "has %d bytes (up to %d)", len(c.RoutingKey), mostName)
	}
	for _, d := range []struct {
		name         string
		v, low, high time.Duration
	}{
		{"heartbeat", c.Heartbeat, time.Second, 10 * time.Minute},
		{"reconnect-wait", c.ReconnectWait, time.Millisecond, time.Minute},
		{"reconnect-for", c.ReconnectFor, 0, time.Hour},
		{"reopen-after", c.ReopenAfter, 0, time.Hour},
	} {
		if d.v < d.low || d.v > d.high {
			bad(d.name, "%v (%v to %v)", d.v, d.low, d.high)
		}
	}
	if n := c.Server.MaxMessageSize; n < 1 || n > 512<<20 {
		bad("server.max-message-size", "%d (1 to %d)", n, 512<<20)
	}
	if _, err := driver.ParseSize(c.Server.Memory); err != nil {
		bad("server.memory", "%w", err)
	}
	return errors.Join(errs...)
}

// parseAddress reads the address of a node; secure says that it asks for TLS. Its
// errors do not repeat it: somebody may have written a password into it.
func parseAddress(a string) (hostport string, secure bool, err error) {
	if scheme, rest, ok := strings.Cut(a, "://"); ok {
		switch scheme {
		case "amqp":
		case "amqps":
			secure = true
		default:
			return "", false, fmt.Errorf("scheme %q (amqp, amqps)", scheme)
		}
		a = strings.TrimSuffix(rest, "/")
	}
	if strings.ContainsAny(a, "@/ ") {
		return "", false, errors.New("holds more than a host and a port (user, password and vhost are options)")
	}
	if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
		return "", false, errors.New("is not an address such as 127.0.0.1:5672")
	}
	return a, secure, nil
}

// parseURL reads the address of the management plugin. Its errors do not repeat it.
func parseURL(a string) (*url.URL, error) {
	if !strings.Contains(a, "://") {
		a = "http://" + a
	}
	u, err := url.Parse(a)
	if err != nil || u.Host == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("is not an address such as http://127.0.0.1:15672")
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// addresses returns those of the nodes.
func (c *Config) addresses() []string {
	if len(c.Address) == 0 {
		return []string{defaultAddress}
	}
	var out []string
	for _, a := range c.Address {
		if hostport, _, err := parseAddress(a); err == nil {
			out = append(out, hostport)
		}
	}
	return out
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

// password returns what the user is known by.
func (c *Config) password() string {
	if p := c.Password.Reveal(); p != "" || c.User != guest {
		return p
	}
	return guest
}
