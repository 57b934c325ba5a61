// Package pulsar drives Apache Pulsar by the project's own client for Go. page.md says what weir's
// terms mean here.
//
// The client has no way to say that a connection was lost. But it asks for a policy of pauses each
// time it begins to connect again, and so the driver knows (link.go). After the end of a producer,
// one of its goroutines stays until the option send-timeout is over.
package pulsar

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

// The values of the option subscription-type.
const (
	shared    = "shared"
	exclusive = "exclusive"
	failover  = "failover"
	keyShared = "key_shared"
)

// maxPayload leaves room for a message's metadata in the broker's maxMessageSize, 5 MiB by default.
const maxPayload = 5<<20 - 1<<10

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "pulsar",
		Title:   "Apache Pulsar",
		Summary: "Persistent topics of Apache Pulsar, with its four types of subscription.",
		Client:  "github.com/apache/pulsar-client-go",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Partitions:    true,
			Keys:          true,
			Subscriptions: true,
			Competing:     true,
			Nack:          true,
			DeadLetters:   true, // see Narrow
			Retains:       true, // a subscription keeps its position in the topic
			Resumes:       true,
			Replays:       []driver.Start{driver.AtEarliest, driver.AtLatest},
			Settle:        []driver.Settle{driver.SettleEach},
			Guarantees:    []driver.Guarantee{driver.Received, driver.Replicated, driver.Persisted},
			Delivery:      driver.AtLeastOnce,
			Ordering:      driver.Unordered, // for a shared subscription; see Narrow
			MaxPayload:    maxPayload,
		},
		New: func() driver.Config {
			return &Config{
				Address: []string{brokers.Like}, Admin: []string{admins.Like}, Namespace: "public/default", JournalSync: unknown,
				Type: shared, Batching: true, BatchDelay: time.Millisecond, BatchMessages: 1000, BatchSize: 128 << 10, Compression: none,
				AckDelay: 100 * time.Millisecond, NackDelay: time.Second, SendTimeout: 30 * time.Second,
				Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, ReconnectWait: 250 * time.Millisecond,
				Server: Server{Sync: "yes", Heap: "384m", Java: 1, Write: 2, Ack: 2},
			}
		},
		Page: page,
	}
}

// Further values of options.
const (
	unknown = "unknown"
	none    = "none"
)

// Config holds the driver's settings.
type Config struct {
	Address  []string          `option:"address" help:"Brokers of one cluster, or its proxy, as host:port or URL (pulsar, pulsar+ssl)."`
	Admin    []string          `option:"admin" help:"Their web services, as host:port or URL (http, https): the driver makes, counts and deletes topics there."`
	Token    driver.Secret     `option:"token" help:"Token (JWT) that the brokers and their web services ask for."`
	User     string            `option:"user" help:"User, where the brokers check a name and a password (basic authentication)."`
	Password driver.Secret     `option:"password" help:"Password of user."`
	TLS      driver.TLSOptions `option:"tls"`

	Namespace   string `option:"namespace" help:"Namespace of topics that weir makes, as tenant/namespace. It must exist."`
	JournalSync string `option:"journal-sync" allowed:"unknown,no,yes" firm:"yes" help:"Whether the bookies sync their journals before they answer (journalSyncData). The brokers do not report it."`
	Type        string `option:"subscription-type" allowed:"shared,exclusive,failover,key_shared" help:"Type of each subscription: how its consumers divide the messages."`

	Batching      bool          `option:"batching" help:"Producers gather messages into one entry of the topic. With subscription-type key_shared each entry has one key."`
	BatchDelay    time.Duration `option:"batch-delay" min:"1ms" max:"10s" help:"Most time that the client waits for further messages of an entry. The client's own default is 10ms."`
	BatchMessages int           `option:"batch-messages" min:"1" max:"100000" help:"Most messages of an entry."`
	BatchSize     int64         `option:"batch-size" size:"bytes" min:"1" max:"5242880" help:"Most bytes of an entry."`
	Compression   string        `option:"compression" allowed:"none,lz4,zlib,zstd,snappy" help:"How the client compresses entries."`

	AckDelay    time.Duration `option:"ack-delay" min:"0s" max:"1m" help:"Most time that the client gathers acknowledgements, up to 1,000; 0s: it sends each at once."`
	NackDelay   time.Duration `option:"nack-delay" min:"100ms" max:"1h" help:"After how long the client asks for a refused message again. The client's own default is 1m."`
	SendTimeout time.Duration `option:"send-timeout" min:"0s" max:"1h" help:"How long the client waits for a confirmation, all its attempts together; 0s: without end."`

	Timeout       time.Duration `option:"timeout" min:"1s" max:"5m" help:"Timeout for connecting, and for each request."`
	KeepAlive     time.Duration `option:"keep-alive" min:"1s" max:"10m" help:"How often the client asks the broker for a sign of life. It gives up a connection after twice that time without one."`
	ReconnectWait time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause between attempts to reconnect. The attempts never end."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	Sync  string `option:"sync" allowed:"no,yes" firm:"yes" help:"Server that weir starts: sync the journal before an answer."`
	Heap  string `option:"heap" help:"Server that weir starts: largest heap, as -Xmx takes it."`
	Java  int    `option:"compiler" allowed:"1,4" help:"Server that weir starts: highest tier of Java's compiler; 1 is fast soon, 4 is faster after minutes."`
	Write int    `option:"write-quorum" min:"1" max:"3" help:"Servers of recipe pulsar-cluster: how many of three bookies get a message."`
	Ack   int    `option:"ack-quorum" min:"1" max:"3" help:"Servers of recipe pulsar-cluster: how many of them answer before a message is confirmed; at most write-quorum."`
}

// Formats of addresses.
var (
	brokers = endpoint.Kind{
		Schemes: []string{"pulsar"}, Secure: []string{"pulsar+ssl"}, Port: "6650", Ports: map[string]string{"pulsar+ssl": "6651"},
		Like: "127.0.0.1:6650",
	}
	admins = endpoint.Kind{
		Schemes: []string{"http"}, Secure: []string{"https"}, Port: "8080", Ports: map[string]string{"https": "8443"},
		Like: "127.0.0.1:8080",
	}
)

// namespaceName matches valid namespaces.
var namespaceName = regexp.MustCompile(`^[\w=:.-]+/[\w=:.-]+$`)

// Validate reports every fault that option bounds do not catch, joined.
func (c *Config) Validate() error {
	at, err := brokers.All("address", c.Address)
	_, adminErr := admins.All("admin", c.Admin)
	faults := driver.Faults{err, adminErr, c.TLS.Validate()}
	if len(c.Address) == 0 {
		faults.Add("address", "is empty (a broker, such as %s)", brokers.Like)
	}
	if len(c.Admin) == 0 {
		faults.Add("admin", "is empty (a web service, such as %s)", admins.Like)
	}
	if slices.ContainsFunc(at, func(e endpoint.Endpoint) bool { return e.Secure != at.Secure() }) {
		faults.Add("address", "has addresses with TLS and without (all are one or the other)")
	}
	if !namespaceName.MatchString(c.Namespace) {
		faults.Add("namespace", "%q (tenant/namespace, such as public/default)", c.Namespace)
	}
	if (c.User == "") != c.Password.IsZero() {
		faults.Add("password", "user and password go together")
	}
	if c.User != "" && !c.Token.IsZero() {
		faults.Add("token", "goes without user and password")
	}
	if c.Server.Ack > c.Server.Write {
		faults.Add("server.ack-quorum", "%d is more than server.write-quorum, %d", c.Server.Ack, c.Server.Write)
	}
	return faults.Join()
}

// Narrow implements driver.Narrowed. For a shared or key_shared subscription, brokers count the
// deliveries of a message, and count an entry with several messages as one.
func (c *Config) Narrow(to driver.Capabilities) driver.Capabilities {
	to.DeadLetters = to.DeadLetters && !c.Batching && (c.Type == shared || c.Type == keyShared)
	switch c.Type {
	case exclusive:
		to.Competing, to.Ordering = false, driver.PerPartition
	case failover:
		to.Ordering = driver.PerPartition
	case keyShared:
		to.Ordering = driver.PerKey
	}
	return to
}

// A conn is one run's connection to the cluster.
type conn struct {
	cfg   Config
	run   driver.Run
	link  link
	admin *admin

	topics known.Table[string, topic]   // declared or opened, by destination
	limits known.Table[string, int]     // maximum refusals by destination; 0: unlimited
	left   known.Table[owned, struct{}] // subscriptions that Close deletes
}

// An owned is a subscription on an existing topic.
type owned struct {
	topic        topic
	subscription string
}

// Open connects to each broker once and queries a web service, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	x := &conn{cfg: *c, run: run}
	var err error
	if x.link, err = newLink(&x.cfg); err != nil {
		return nil, err
	}
	if err := x.link.greet(ctx); err != nil {
		return nil, err
	}
	if x.admin, err = newAdmin(&x.cfg); err != nil {
		return nil, err
	}
	if _, err := x.Facts(ctx); err != nil {
		x.admin.http.Close()
		return nil, err
	}
	return x, nil
}

// longest is the maximum length of a topic or subscription name, in bytes.
const longest = 200

// topic returns the topic of a destination. An existing one must be there.
func (c *conn) topic(ctx context.Context, destination string) (topic, error) {
	return c.topics.Of(destination, func() (topic, error) {
		t, err := c.named(destination)
		if err == nil && c.run.Existing {
			return c.admin.find(ctx, t)
		}
		return t, err
	})
}

// named returns the topic of a destination, without asking the brokers.
func (c *conn) named(destination string) (topic, error) {
	return parseTopic(c.cfg.Namespace, names.Of(c.run, longest, destination))
}

// Declare creates the topics.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		t, err := c.named(d.Name)
		if err != nil {
			return err
		}
		if d.Partitions > 1 {
			t.partitions = d.Partitions
		}
		if err := c.admin.declare(ctx, t); err != nil {
			return err
		}
		c.topics.Note(d.Name, t)
		c.limits.Note(d.Name, d.Refusals)
		return nil
	})
}

// Delete deletes the topics with their subscriptions.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		t, err := c.named(d.Name)
		if err != nil {
			return err
		}
		if err := c.admin.remove(ctx, t); err != nil {
			return err
		}
		c.topics.Forget(d.Name)
		return nil
	})
}

func (c *conn) subscription(spec driver.ConsumerSpec) string {
	if spec.Durable {
		return spec.Subscription
	}
	return c.own(spec.Subscription)
}

// own returns the name of a subscription that ends with the run.
func (c *conn) own(subscription string) string {
	return names.Join(longest, "weir", c.run.ID, subscription)
}

// Backlog implements driver.Backlogger. The brokers count entries, each of which may contain many
// messages.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (uint64, error) {
		t, err := c.topic(ctx, d)
		if err != nil {
			return 0, err
		}
		all, err := c.admin.subscriptions(ctx, t)
		if err != nil {
			return 0, err
		}
		has, ok := all[c.own(subscription)]
		if !ok && c.run.Existing {
			has, ok = all[subscription]
		}
		if !ok {
			return 0, fmt.Errorf("there is no subscription %s: %w", subscription, driver.ErrUnsupported)
		}
		return has.Backlog, nil
	})
}

// Close deletes the subscriptions on existing topics.
func (c *conn) Close(ctx context.Context) error {
	defer c.admin.http.Close()
	var errs []error
	for o := range c.left.All() {
		errs = append(errs, c.admin.unsubscribe(ctx, o.topic, o.subscription))
	}
	return errors.Join(errs...)
}

var _ driver.Narrowed = (*Config)(nil)

// types maps the option subscription-type to the client's types.
var types = map[string]client.SubscriptionType{
	shared: client.Shared, exclusive: client.Exclusive, failover: client.Failover, keyShared: client.KeyShared,
}

// compressions maps the option compression to the client's types.
var compressions = map[string]client.CompressionType{
	none: client.NoCompression, "lz4": client.LZ4, "zlib": client.ZLib, "zstd": client.ZSTD, "snappy": client.SNAPPY,
}
