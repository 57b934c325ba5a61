// Package rabbitmqstream drives the streams of RabbitMQ by their own protocol: logs with
// replicas, read by offset. page.md says what is what.
//
// The vendor's client publishes and receives. Its calls ignore their context, and it does not
// report where a stream ends, or the server's version, and cannot create a stream with a number
// of replicas. Questions therefore go by a connection of weir's own, in frames.go and
// control.go.
package rabbitmqstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/keeper"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files, rabbitserver.Streams())

const (
	longest      = 255     // bytes of a name
	defaultFrame = 1 << 20 // the server's and the client's default
	overhead     = 64      // most bytes of a frame besides a single message
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "rabbitmq-stream",
		Title:   "RabbitMQ Streams",
		Summary: "Logs with replicas, read by offset, over RabbitMQ's stream protocol.",
		Client:  "github.com/rabbitmq/rabbitmq-stream-go-client",
		Capabilities: driver.Capabilities{
			Consume: true, Replicas: true, Batch: true, Subscriptions: true, Retains: true, Resumes: true,
			Replays:    []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Settle:     []driver.Settle{driver.SettleBatch, driver.SettleEach},
			Guarantees: []driver.Guarantee{driver.Received, driver.Replicated},
			Delivery:   driver.AtLeastOnce, Ordering: driver.PerDestination,
			MaxPayload: defaultFrame - overhead,
		},
		New: func() driver.Config {
			return &Config{
				User: rabbitserver.Guest, Vhost: "/", SubEntry: 1, Compression: "none", Credits: 10,
				Timeout: 4 * time.Second, ConfirmTimeout: 30 * time.Second, Heartbeat: time.Minute,
				ReconnectWait: 250 * time.Millisecond, ReconnectFor: time.Minute,
				Server: Server{FrameMax: defaultFrame, Memory: "2GB"},
			}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address  []string          `option:"address" help:"Nodes of one cluster, as host:port or URL (rabbitmq-stream, rabbitmq-stream+tls); none: 127.0.0.1:5552."`
	User     string            `option:"user" help:"User; guest may only connect over loopback, unless the server says otherwise."`
	Password driver.Secret     `option:"password" help:"Password of the user; that of guest is guest where none is given."`
	Vhost    string            `option:"vhost" help:"Virtual host."`
	TLS      driver.TLSOptions `option:"tls"`

	Dedup        bool   `option:"dedup" help:"Producers have names and number their messages. They send what was in flight on a lost connection again, and the server drops what it has."`
	SubEntry     int    `option:"sub-entry" min:"1" max:"1000" help:"Messages that the client packs into one entry of the stream; 1: it does not. A producer sends what waits, so entries of few messages are common."`
	Compression  string `option:"compression" allowed:"none,gzip,snappy,lz4,zstd" help:"How an entry of several messages is compressed; needs sub-entry above 1."`
	MaxLength    int64  `option:"max-length" size:"bytes" min:"0" help:"Size above which a stream that weir makes drops its oldest segments; 0: none."`
	Segment      int64  `option:"segment" size:"bytes" min:"0" help:"Size of a file of a stream that weir makes; 0: the server's default, 500 MB."`
	Credits      int    `option:"credits" min:"1" max:"1000" help:"Chunks that the server may send to a consumer ahead."`
	SocketBuffer int64  `option:"socket-buffer" size:"bytes" min:"0" max:"67108864" help:"Size of the send and receive buffers of the client's sockets; 0: as the operating system sizes them. The client's own default is 8KiB."`

	Timeout        time.Duration `option:"timeout" min:"1s" max:"1m" help:"Longest time to connect to one node, and longest time of one question."`
	ConfirmTimeout time.Duration `option:"confirm-timeout" min:"1s" max:"10m" help:"How long the client waits for a confirmation. It looks once in this time, so that a message fails up to twice as late."`
	Heartbeat      time.Duration `option:"heartbeat" min:"3s" max:"10m" unit:"1s" help:"How often either side says that it is there."`
	ReconnectWait  time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause between attempts to reconnect."`
	ReconnectFor   time.Duration `option:"reconnect-for" min:"0s" max:"1h" help:"How long to try to reconnect before a consumer ends and a producer gives up."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	FrameMax int    `option:"frame-max" min:"4096" max:"67108864" help:"Server that weir starts: largest frame of the stream protocol, in bytes."`
	Memory   string `option:"memory" help:"Server that weir starts: memory of a node above which it blocks connections that publish."`
}

// servers describes valid addresses.
var servers = endpoint.Kind{
	Schemes: []string{"rabbitmq-stream"}, Secure: []string{"rabbitmq-stream+tls"}, Port: "5552", Like: "127.0.0.1:5552",
}

// Validate reports every invalid setting, joined. It reads no files.
func (c *Config) Validate() error {
	_, err := servers.All("address", c.Address)
	faults := driver.Faults{err, c.TLS.Validate()}
	if c.User == "" {
		faults.Add("user", "is empty (a user's name)")
	}
	if c.Vhost == "" {
		faults.Add("vhost", "is empty (/ is the vendor's own)")
	}
	if c.Dedup && c.SubEntry > 1 {
		faults.Add("dedup", "is yes with sub-entry above 1 (the client numbers entries then, not messages)")
	}
	if c.Compression != "none" && c.SubEntry < 2 {
		faults.Add("compression", "needs sub-entry above 1 (the client compresses entries of several messages only)")
	}
	if _, err := driver.ParseSize(c.Server.Memory); err != nil {
		faults.Add("server.memory", "%w", err)
	}
	return faults.Join()
}

// tls returns the TLS settings for a node; nil: no TLS.
func (c *Config) tls(at endpoint.Endpoint) (*tls.Config, error) { return at.TLS(c.TLS) }

// answers maps the server's error answers, which keep the connection usable.
func answers(err error) (is error, ok bool) {
	var c code
	if !errors.As(err, &c) || errors.Is(err, driver.ErrDisconnected) {
		return nil, false
	}
	if is, _ = clientErrors.Find(c); errors.Is(is, driver.ErrDisconnected) {
		is = nil // the stream's state, not the connection's
	}
	return is, true
}

// A conn is one run's connection to the cluster.
type conn struct {
	cfg     Config
	run     driver.Run
	nodes   endpoint.List
	control *keeper.Keeper[*control]

	streams known.Table[string, struct{}] // published to or declared

	mu      sync.Mutex
	places  map[spot]*atomic.Uint64 // offset of the next message, for subscriptions with a consumer here
	durable map[string]bool         // subscriptions with names of their own
}

// A spot identifies a subscription's position in a stream.
type spot struct{ subscription, stream string }

// Open connects to each node once, within ctx and the option timeout per node.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	silence()
	x := &conn{cfg: *c, run: run, places: map[spot]*atomic.Uint64{}, durable: map[string]bool{}}
	addresses := c.Address
	if len(addresses) == 0 {
		addresses = []string{servers.Like}
	}
	var err error
	if x.nodes, err = servers.All("address", addresses); err != nil {
		return nil, err
	}
	for _, n := range x.nodes {
		if err := x.greet(ctx, n); err != nil {
			return nil, err
		}
	}
	x.control, err = keeper.Open(ctx, keeper.Plan[*control]{
		Name: "control", Run: run, Limit: c.Timeout, Wait: c.ReconnectWait, Answer: answers,
		Connect: func(ctx context.Context, s *sockets.Set) (*control, error) {
			var errs []error
			for _, n := range x.nodes {
				k, err := c.dial(ctx, s, n, "weir "+run.ID+" control")
				if err == nil {
					return k, nil
				}
				errs = append(errs, fmt.Errorf("%s: %w", n.HostPort(), err))
			}
			return nil, errors.Join(errs...)
		},
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// greet signs in to one node, within ctx and the option timeout.
func (c *conn) greet(ctx context.Context, at endpoint.Endpoint) error {
	return c.visit(ctx, at, func(*control) error { return nil })
}

// visit queries one node on a separate connection.
func (c *conn) visit(ctx context.Context, at endpoint.Endpoint, f func(*control) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var s sockets.Set
	k, err := c.cfg.dial(ctx, &s, at, "weir "+c.run.ID+" question")
	if err == nil {
		stop := context.AfterFunc(ctx, k.end)
		err = f(k)
		stop()
		k.end()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at.HostPort(), errorMap.Unreachable(err))
	}
	return nil
}

func (c *conn) stream(destination string) string { return names.Of(c.run, longest, destination) }

// errNotReady means that the cluster has not yet created all parts of a stream.
var errNotReady = errors.New("the stream has no leader, or not all replicas yet")

// Declare creates the streams and waits, within ctx and the option timeout, until each has a leader
// and its replicas.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error { return c.declare(ctx, d) })
}

func (c *conn) declare(ctx context.Context, d driver.Destination) error {
	arguments := map[string]string{"initial-cluster-size": strconv.Itoa(max(1, d.Replicas))}
	if c.cfg.MaxLength > 0 {
		arguments["max-length-bytes"] = strconv.FormatInt(c.cfg.MaxLength, 10)
	}
	if c.cfg.Segment > 0 {
		arguments["stream-max-segment-size-bytes"] = strconv.FormatInt(c.cfg.Segment, 10)
	}
	stream := c.stream(d.Name)
	if err := c.control.Ask(ctx, func(k *control) error { return k.create(stream, arguments) }); err != nil {
		return err
	}
	has := 0
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	err := retry.While(limited, 20*time.Millisecond, func(err error) bool { return errors.Is(err, errNotReady) }, func() error {
		t, err := c.where(ctx, stream) // no timeout, which would hide what the cluster created
		if has = t.members; err == nil && has < d.Replicas {
			return errNotReady
		}
		return err
	})
	if errors.Is(err, errNotReady) && has > 0 {
		return fmt.Errorf("%d replicas: the cluster made %d: %w", d.Replicas, has, driver.ErrUnsupported)
	}
	if err == nil {
		c.streams.Note(stream, struct{}{})
	}
	return err
}

// where returns the location of a stream. If it currently has no leader, the error is errNotReady.
func (c *conn) where(ctx context.Context, stream string) (t topology, err error) {
	err = c.control.Ask(ctx, func(k *control) error { t, err = k.topology(stream); return err })
	if err == nil && t.leader == "" {
		err = errNotReady
	}
	return t, err
}

func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		stream := c.stream(d.Name)
		err := c.control.Ask(ctx, func(k *control) error { return k.remove(stream) })
		if err == nil {
			c.streams.Forget(stream)
		}
		return err
	})
}

// Facts locates the streams. The server does not sync before it confirms.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "RabbitMQ", Nodes: len(c.nodes), Settings: map[string]string{
		"dedup": strconv.FormatBool(c.cfg.Dedup), "sub-entry": strconv.Itoa(c.cfg.SubEntry), "compression": c.cfg.Compression,
	}}
	err := c.control.Ask(ctx, func(k *control) error {
		f.Version, f.Name = k.server["version"], cmp.Or(k.server["product"], f.Name)
		f.Settings["frame-max"] = strconv.FormatUint(uint64(k.frameMax), 10)
		// The connection may predate a restart: only the answer counts.
		_, err := k.topology("weir")
		if errors.Is(err, code(codeMissing)) {
			return nil
		}
		return err
	})
	if err != nil {
		return f, err
	}
	least := 0
	for _, s := range known.Names(&c.streams) {
		t, err := c.where(ctx, s)
		if err != nil && !errors.Is(err, errNotReady) {
			return f, err
		}
		if least == 0 || t.members < least {
			least = t.members
		}
		f.Nodes = max(f.Nodes, t.members)
	}
	f.Confirms = page.Confirmations.Of(driver.Known{"replication": strconv.Itoa(least)})
	if least > 0 {
		f.Settings["members"] = strconv.Itoa(least)
	}
	return f, nil
}

// Known implements driver.GuaranteePredictor.
func (c *Config) Known(s driver.Servers) driver.Known {
	if s.Nodes == 0 {
		return nil
	}
	return driver.Known{"replication": strconv.Itoa(s.Replicas)}
}

// onLeader queries the leader of a stream: only the leader has everything that was confirmed.
func (c *conn) onLeader(ctx context.Context, stream string, f func(*control) error) error {
	t, err := c.where(ctx, stream)
	if err != nil {
		return errorMap.Unreachable(err)
	}
	other := false
	err = c.control.Ask(ctx, func(k *control) error {
		if other = k.address != t.leader; other {
			return nil
		}
		return f(k)
	})
	if err != nil || !other {
		return err
	}
	at, err := servers.Parse(t.leader)
	if err != nil {
		return err
	}
	at.Secure = c.nodes.Secure()
	return c.visit(ctx, at, f)
}

// end returns the offset of a stream's next message.
func (c *conn) end(ctx context.Context, stream string) (next uint64, err error) {
	err = c.onLeader(ctx, stream, func(k *control) error {
		last, _, err := k.at(stream, fromLast, 0)
		next = last.first + uint64(last.records)
		return err
	})
	return next, err
}

// Backlog implements driver.Backlogger: the messages from the subscription's position to the end of
// each stream.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (uint64, error) {
		stream := c.stream(d)
		place, err := c.place(ctx, subscription, stream)
		if err != nil {
			return 0, err
		}
		next, err := c.end(ctx, stream)
		return max(next, place) - place, err
	})
}

// Close ends the connection.
func (c *conn) Close(context.Context) error {
	c.control.Close()
	return nil
}

// order returns the nodes, starting with the one at index.
func (c *conn) order(index int) endpoint.List {
	i := index % len(c.nodes)
	return slices.Concat(c.nodes[i:], c.nodes[:i])
}
