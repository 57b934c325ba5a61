// Package eventstore drives EventStoreDB, and KurrentDB as it is called since 2025: a stream of
// events, read by a persistent subscription. page.md says what weir's terms mean here. It was never
// run against either: no registry has a server, and its tests use a stand-in.
//
// The client finds the leader of a cluster, and connects again when a server is gone. When it finds
// none, it is of no more use: this package then makes another.
package eventstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

// largest limits the bytes of a message passed to the client: the server accepts appends of 1 MiB
// (its default), including the event's other data.
const largest = 1_000_000

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "eventstore",
		Title:   "EventStoreDB",
		Summary: "Streams of events with persistent subscriptions; tested against a stand-in, never against a server.",
		Client:  "github.com/kurrent-io/KurrentDB-Client-Go",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Subscriptions: true,
			Competing:     true,
			Nack:          true,
			Retains:       true,
			Settle:        []driver.Settle{driver.SettleEach},
			Guarantees:    []driver.Guarantee{driver.Received, driver.Persisted},
			Delivery:      driver.AtLeastOnce,
			Ordering:      driver.Unordered,
			MaxPayload:    largest,
		},
		New: func() driver.Config {
			return &Config{
				Address: []string{servers.Like}, Strategy: string(kurrentdb.ConsumerStrategyRoundRobin), Buffer: 100,
				MessageTimeout: 30 * time.Second, MaxRetries: 10, Timeout: 10 * time.Second, ReconnectWait: 250 * time.Millisecond,
			}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address        []string      `option:"address" help:"Servers, as host:port; https:// asks for TLS."`
	User           string        `option:"user" help:"User; takes TLS."`
	Password       driver.Secret `option:"password" help:"Password of user."`
	CA             string        `option:"ca" file:"yes" help:"File of the authorities trusted with TLS (PEM); none: the system's."`
	Flushes        bool          `option:"flushes" firm:"yes" help:"Say yes if the servers flush each event to disk before they confirm it, as they do unless they are told otherwise. They do not report it."`
	Strategy       string        `option:"strategy" allowed:"RoundRobin,DispatchToSingle,Pinned" help:"How the server shares a subscription's events among its consumers."`
	Buffer         int           `option:"buffer" min:"1" max:"65535" help:"Events that the server sends to a consumer before their settlement, where a scenario has no prefetch."`
	MessageTimeout time.Duration `option:"message-timeout" min:"1s" max:"1h" unit:"1ms" help:"After it, the server gives an event that is not settled to a consumer again."`
	MaxRetries     int           `option:"max-retries" min:"0" max:"1000000" help:"How often the server delivers an event again before it parks it. weir counts a parked one as lost."`
	Timeout        time.Duration `option:"timeout" min:"3s" max:"5m" help:"Longest time of one call."`
	ReconnectWait  time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause of a consumer before each attempt to reconnect. The attempts never end."`
}

// servers describes valid addresses.
var servers = endpoint.Kind{Schemes: []string{"http"}, Secure: []string{"https"}, Port: "2113", Like: "127.0.0.1:2113"}

// Validate reports every invalid setting, joined.
func (c *Config) Validate() error {
	all, err := servers.All("address", c.Address)
	faults := driver.Faults{err}
	if len(c.Address) == 0 {
		faults.Add("address", "is empty (an address such as %s)", servers.Like)
	}
	if c.User != "" && len(all) > 0 && !all.Secure() {
		faults.Add("user", "the client sends it with TLS only (an address such as https://127.0.0.1:2113)")
	}
	return faults.Join()
}

// Known implements driver.GuaranteePredictor. The servers do not report whether they flush.
func (c *Config) Known(s driver.Servers) driver.Known {
	k := driver.KnownOf(c, "flushes")
	if s.Nodes > 0 {
		k["nodes"] = strconv.Itoa(s.Nodes)
	}
	return k
}

// Open connects, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	x := &conn{cfg: *c, run: run}
	x.link = x.connect(run, "control")
	if _, err := x.Facts(ctx); err != nil {
		x.link.close()
		return nil, err
	}
	return x, nil
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg  Config
	run  driver.Run
	link *link // for requests

	groups known.Table[[2]string, string] // stream and group, made by this Conn: the stream of each
}

func (c *conn) stream(destination string) (string, error) {
	if c.run.Existing && (destination == "" || strings.HasPrefix(destination, "$")) {
		return "", fmt.Errorf("the stream name is reserved: %w", driver.ErrUnsupported)
	}
	return names.Of(c.run, 200, destination), nil
}

func (c *conn) group(subscription string) string {
	return names.Join(200, "weir", c.run.ID, subscription)
}

func (c *Config) settings() *kurrentdb.PersistentSubscriptionSettings {
	s := kurrentdb.SubscriptionSettingsDefault()
	s.ConsumerStrategyName = kurrentdb.ConsumerStrategy(c.Strategy)
	s.MessageTimeout = int32(min(c.MessageTimeout.Milliseconds(), math.MaxInt32))
	s.MaxRetryCount = int32(c.MaxRetries)
	return &s
}

// subscribe creates a group at the end of a stream; an existing group is left unchanged.
func (c *conn) subscribe(ctx context.Context, stream, group string) error {
	err := c.link.do(ctx, func(ctx context.Context, k *kurrentdb.Client) error {
		err := k.CreatePersistentSubscription(ctx, stream, group, kurrentdb.PersistentStreamSubscriptionOptions{
			Settings: c.cfg.settings(), StartFrom: kurrentdb.End{},
		})
		if code(err) == kurrentdb.ErrorCodeResourceAlreadyExists {
			return nil
		}
		return err
	})
	if err == nil {
		c.groups.Note([2]string{stream, group}, stream)
	}
	return err
}

// Declare does nothing: the server creates a stream with its first event.
func (c *conn) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete deletes this Conn's groups, and the streams.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		stream, err := c.stream(d.Name)
		if err == nil {
			err = c.unsubscribe(ctx, known.Having(&c.groups, stream))
		}
		if err == nil {
			err = c.link.do(ctx, func(ctx context.Context, k *kurrentdb.Client) error {
				_, err := k.DeleteStream(ctx, stream, kurrentdb.DeleteStreamOptions{})
				return absent(err)
			})
		}
		return err
	})
}

// unsubscribe deletes groups.
func (c *conn) unsubscribe(ctx context.Context, groups [][2]string) error {
	var errs []error
	for _, g := range groups {
		c.groups.Forget(g)
		errs = append(errs, c.link.do(ctx, func(ctx context.Context, k *kurrentdb.Client) error {
			return absent(k.DeletePersistentSubscription(ctx, g[0], g[1], kurrentdb.DeletePersistentSubscriptionOptions{}))
		}))
	}
	return errors.Join(errs...)
}

// Facts asks a server for its version and the nodes it knows.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "EventStoreDB", Settings: map[string]string{"flushes": "not told by the protocol", "strategy": c.cfg.Strategy}}
	err := c.link.ask(ctx, func(ctx context.Context, k *kurrentdb.Client) error {
		v, err := k.GetServerVersion()
		if err != nil {
			return err
		}
		f.Version = fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
		members, err := k.Gossip(ctx)
		for _, m := range members {
			if m.GetIsAlive() {
				f.Nodes++
			}
		}
		return err
	})
	if err != nil {
		return driver.Facts{}, err
	}
	f.Nodes = max(f.Nodes, 1)
	f.Confirms = page.Confirmations.Of(c.cfg.Known(driver.Servers{Nodes: f.Nodes}))
	if c.cfg.Flushes {
		f.Settings["flushes"] = "yes (option flushes)"
	}
	return f, nil
}

// Backlog implements driver.Backlogger: events that the server holds for the group, plus events of
// the stream that the group has not reached.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (n uint64, err error) {
		stream, err := c.stream(d)
		if err == nil {
			err = c.link.ask(ctx, func(ctx context.Context, k *kurrentdb.Client) (err error) {
				n, err = left(ctx, k, stream, c.group(subscription))
				return err
			})
		}
		return n, err
	})
}

// left returns how many events of a stream a group has still to receive.
func left(ctx context.Context, k *kurrentdb.Client, stream, group string) (uint64, error) {
	last, any, err := end(ctx, k, stream) // before the group, which may advance meanwhile
	if err != nil {
		return 0, err
	}
	info, err := k.GetPersistentSubscriptionInfo(ctx, stream, group, kurrentdb.GetPersistentSubscriptionOptions{})
	if err != nil {
		return 0, err
	}
	s := info.Stats
	n := uint64(max(0, s.ReadBufferCount) + max(0, s.LiveBufferCount) + max(0, s.RetryBufferCount) + max(0, s.TotalInFlightMessages))
	if known := s.LastKnownEventRevision; any && known != nil && last > *known {
		n += last - *known
	}
	return n, nil
}

// end returns the number of a stream's last event; any is false if it has none.
func end(ctx context.Context, k *kurrentdb.Client, stream string) (last uint64, any bool, err error) {
	r, err := k.ReadStream(ctx, stream, kurrentdb.ReadStreamOptions{Direction: kurrentdb.Backwards, From: kurrentdb.End{}}, 1)
	if err != nil {
		return 0, false, absent(err)
	}
	defer r.Close()
	e, err := r.Recv()
	if err != nil {
		return 0, false, absent(err)
	}
	return e.OriginalEvent().EventNumber, true, nil
}

// Close deletes the groups of remaining streams, and closes the connection.
func (c *conn) Close(ctx context.Context) error {
	var err error
	if c.run.Existing {
		err = c.unsubscribe(ctx, slices.Collect(maps.Keys(c.groups.All())))
	}
	c.link.close()
	return err
}

var _ driver.GuaranteePredictor = (*Config)(nil)
