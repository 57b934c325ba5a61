// Package iris drives Project Iris: publish and subscribe, broadcasts, requests, and tunnels, by way
// of the relay that each node of Iris has for the programs of its host. page.md says what weir's
// terms mean here.
//
// A relay lets a connection be a member of one cluster, so a consumer has one for each destination.
// Markers prove that a subscription is in force. A marker is a message that begins with 16 bytes
// which only drivers of one run know; no consumer delivers it. A node spreads what it sends over
// five groups in turn. So five markers in a row go through all groups.
package iris

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/keeper"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

// Patterns of Iris.
const (
	patternPublish   = "publish"
	patternBroadcast = "broadcast"
	patternRequest   = "request"
	patternTunnel    = "tunnel"
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "iris",
		Title:   "Iris",
		Summary: "Messages between clusters of programs, by nodes that find one another; without storage, at most once.",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Subscriptions: true, // with the patterns publish and broadcast
			Competing:     true, // with the patterns request and tunnel
			Requests:      true, // with the pattern request
			Settle:        []driver.Settle{driver.SettleNone},
			Guarantees:    []driver.Guarantee{driver.Written, driver.Received},
			Delivery:      driver.AtMostOnce,
			Ordering:      driver.PerDestination, // with the pattern tunnel
		},
		New: func() driver.Config {
			return &Config{
				Address: []string{servers.Like}, Pattern: patternPublish, RequestTimeout: 5 * time.Second, Workers: 16, TunnelBuffer: 64 << 20,
				Timeout: 10 * time.Second, ReconnectWait: 250 * time.Millisecond,
			}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address        []string      `option:"address" help:"Relays of the nodes, as host:port. A node serves programs of its own host only. Producers and consumers are spread over them."`
	Namespace      string        `option:"namespace" file:"yes" help:"File of the number of a process in the network namespace of the nodes; without it they are in weir's own. To enter another takes root."`
	Pattern        string        `option:"pattern" allowed:"publish,broadcast,request,tunnel" firm:"request" help:"publish: to the subscribers of a topic. broadcast: to all members of a cluster. request: to one member of a cluster, which replies. tunnel: by a stream to one member of a cluster."`
	RequestTimeout time.Duration `option:"request-timeout" min:"1ms" max:"1h" unit:"1ms" help:"With pattern request, how long a relay waits for a reply."`
	Workers        int           `option:"workers" min:"1" max:"4096" help:"With pattern request, most requests of one producer under way at a time; each has a connection."`
	TunnelBuffer   int64         `option:"tunnel-buffer" size:"bytes" min:"128KiB" max:"1GiB" help:"With pattern tunnel, how many bytes a consumer lets its relay send before weir has accepted them, by each tunnel."`
	Timeout        time.Duration `option:"timeout" min:"3s" max:"5m" help:"Longest time to connect, and longest time of one call."`
	ReconnectWait  time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause before each attempt to reconnect. The attempts never end."`
}

// servers describes valid addresses.
var servers = endpoint.Kind{Schemes: []string{"tcp"}, Port: "55555", Like: "127.0.0.1:55555"}

// Validate reports every invalid setting, joined.
func (c *Config) Validate() error {
	all, err := servers.All("address", c.Address)
	if len(c.Address) == 0 {
		err = &driver.OptionError{Name: "address", Err: errors.New("is empty (an address such as " + servers.Like + ")")}
	}
	for _, e := range all {
		if c.Namespace != "" && net.ParseIP(e.Host) == nil {
			err = errors.Join(err, &driver.OptionError{Name: "address", Err: errors.New("is not an IP address (with the option namespace)")})
		}
	}
	return err
}

func (c *Config) Narrow(to driver.Capabilities) driver.Capabilities {
	to.Competing, to.Requests = c.toOne(), c.Pattern == patternRequest
	to.Subscriptions = !to.Competing
	if c.Pattern != patternTunnel {
		to.Ordering = driver.Unordered
	}
	return to
}

// Known implements driver.GuaranteePredictor.
func (c *Config) Known(driver.Servers) driver.Known { return driver.KnownOf(c, "pattern") }

// toOne reports whether a message goes to one member of a cluster.
func (c *Config) toOne() bool { return c.Pattern == patternRequest || c.Pattern == patternTunnel }

// A link is a maintained connection. It receives only answers to its own requests.
type link = keeper.Keeper[*session]

// at returns the address for the i-th connection.
func (c *Config) at(i int) string { return c.Address[i%len(c.Address)] }

// dial starts a session with a relay.
func (c *Config) dial(ctx context.Context, set *sockets.Set, address, cluster string) (*session, error) {
	at, err := servers.Parse(address)
	if err != nil {
		return nil, err
	}
	var socket net.Conn
	connect := func() (err error) {
		socket, err = set.Dial(ctx, "tcp", at.HostPort(), c.Timeout)
		return err
	}
	if c.Namespace == "" {
		err = connect()
	} else {
		err = within(c.Namespace, connect)
	}
	if err != nil {
		return nil, err
	}
	return newSession(ctx, socket, cluster)
}

// Open connects to every relay, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	if run.Existing {
		return nil, fmt.Errorf("destinations that exist: a topic or a cluster of Iris exists only while it is used: %w", driver.ErrUnsupported)
	}
	x := &conn{cfg: *c, run: run, deleted: map[string]int{}}
	token := sha256.Sum256([]byte("marker of run " + run.ID)) // the same in each process of the run
	x.token = string(token[:tokenSize])
	for _, address := range c.Address {
		l, err := x.connect(ctx, "control "+address, address)
		if err != nil {
			_ = x.Close(ctx)
			return nil, err
		}
		x.links = append(x.links, l)
	}
	if c.Pattern == patternRequest {
		return requesting{x}, nil
	}
	return x, nil
}

// A conn is one run's connection to the relays.
type conn struct {
	cfg       Config
	run       driver.Run
	token     string                     // prefix of markers
	links     []*link                    // one per relay
	producers known.Table[asked, string] // without subscription
	consumers known.Table[*consumer, string]

	mu      sync.Mutex
	deleted map[string]int // by destination: how often it was deleted
}

// connect opens and maintains a connection for the run.
func (c *conn) connect(ctx context.Context, name, address string) (*link, error) {
	return keeper.Open(ctx, keeper.Plan[*session]{
		Name: name, Run: c.run, Limit: max(c.cfg.Timeout, c.cfg.RequestTimeout+late), Wait: c.cfg.ReconnectWait, Answer: answers.Find,
		Connect: func(ctx context.Context, s *sockets.Set) (*session, error) { return c.cfg.dial(ctx, s, address, "") },
	})
}

// place returns the topic, or cluster, of a destination: a new one after each Delete.
func (c *conn) place(destination string) (string, error) {
	parts := []string{"weir", c.run.ID, destination}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.deleted[destination]; n > 0 {
		parts = append(parts, strconv.Itoa(n))
	}
	return names.Join(200, parts...), nil
}

// Declare does nothing: there is nothing to create.
func (c *conn) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete removes nothing. Messages in transit cannot be known, because Iris keeps no order in which
// a last message would arrive last. A destination that is created again therefore gets a new topic,
// or cluster, where they do not arrive.
func (c *conn) Delete(_ context.Context, ds ...driver.Destination) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range ds {
		c.deleted[d.Name]++
	}
	return nil
}

// Facts asks each relay. The protocol reports its own version, but nothing about the node.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	for _, l := range c.links {
		if err := l.Ask(ctx, c.asks); err != nil {
			return driver.Facts{}, err
		}
	}
	return driver.Facts{
		Name: "iris", Version: "relay protocol " + protocol, Nodes: len(c.links),
		Confirms: page.Confirmations.Of(c.cfg.Known(driver.Servers{})),
		Settings: map[string]string{"pattern": c.cfg.Pattern, "relays": strings.Join(c.cfg.Address, ", ")},
	}, nil
}

// Close closes the control connections.
func (c *conn) Close(context.Context) error {
	for _, l := range c.links {
		l.Close()
	}
	return nil
}

// requesting is a conn with the pattern request.
type requesting struct{ *conn }

var (
	_ driver.Narrowed           = (*Config)(nil)
	_ driver.GuaranteePredictor = (*Config)(nil)
)
