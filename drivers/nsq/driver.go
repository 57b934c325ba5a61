// Package nsq drives NSQ: topics that copy each message to channels, on servers that know nothing
// of each other. page.md says what weir's terms mean here. This comment adds details.
//
// Where destinations exist already, a subscription is a channel weir.<run>.<subscription>, which
// Conn.Close removes. A weir that is killed leaves it, and nsqd gathers messages in it until
// somebody removes it. Choose channels: ephemeral where that matters more than a message that finds
// no room. What a topic was given before it had any channel goes to its first one. With several
// servers, the producers are dealt over them.
//
// The answer to a PUB does not wait for a sync, with sync-every 1 neither: go-diskqueue's ioLoop
// answers the write, then syncs. A killed nsqd delivers again what it had read since its last sync,
// as a first attempt. nsqd looks after a channel's timeouts from 5 s after it was made.
//
// # How the client behaves
//
// The client's Producer publishes. It writes on a goroutine of its own. When its connection is lost,
// weir makes another Producer: the client would connect again within the next call, and writes then
// what its ending goroutine still reads. A Producer that is ended while answers are on their way may
// leave a goroutine behind.
//
// Consumers use the layer below, go-nsq's Conn: framing, IDENTIFY, TLS, AUTH, heartbeats, buffers.
// The Consumer above it does not report a lost connection, and sends no more for a while after a
// message was refused (its backoff). It silently gives up a message after five attempts, looks for
// its server again once a minute, and cannot tell when it is subscribed.
//
// Each PUB, MPUB, FIN and REQ is written by itself; a PUB within Publish, which may wait for the
// network (PublishBlocks). What was in flight when a connection broke may have been queued. Reads,
// and the answers to heartbeats, are the client's goroutine's; between it and Deliver there is one
// queue, as long as the prefetch.
package nsq

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/httpapi"
	"github.com/weirmq/weir/drivers/internal/known"
)

// removeLimit limits how long Close may remove channels.
const removeLimit = 5 * time.Second

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "nsq",
		Title:   "NSQ",
		Summary: "Topics copied to channels, in memory or on disk, without order and without replicas.",
		Client:  "github.com/nsqio/go-nsq",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Batch:         true,
			Subscriptions: true,
			Competing:     true,
			Nack:          true,
			Retains:       true, // the channel is created when the consumer is opened
			PublishBlocks: true,
			Settle:        []driver.Settle{driver.SettleEach},
			Guarantees:    []driver.Guarantee{driver.Received},
			Delivery:      driver.AtLeastOnce,
			Ordering:      driver.Unordered,
			// Each server's own limit applies (max-msg-size, 1 MiB by default), which a producer
			// asks for when it is opened.
		},
		New:  func() driver.Config { return newConfig() },
		Page: page,
	}
}

// Open connects, within ctx and 10 s per server.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	t, err := c.TLS.Config()
	if err != nil {
		return nil, err
	}
	settings, err := c.client(t)
	if err != nil {
		return nil, err
	}
	x := &conn{cfg: *c, run: run, settings: settings, api: httpapi.New("NSQ", t, askLimit)}
	lookupds, err := webs.All("lookupd", c.Lookupd)
	if err != nil {
		return nil, err
	}
	for _, l := range lookupds {
		x.lookupds = append(x.lookupds, l.String())
	}
	nodes, err := x.find(ctx)
	if err == nil {
		err = each.AtOnce(nodes, func(n *node) error { return x.check(ctx, n) })
	}
	if err != nil {
		x.api.Close()
		return nil, err
	}
	x.nodes = nodes
	return x, nil
}

// A placed is a channel of a topic on a server.
type placed struct {
	node           *node
	topic, channel string
	source         int32 // index of the topic in a consumer's destinations
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg      Config
	run      driver.Run
	settings *client.Config
	api      *httpapi.Client
	lookupds []string
	nodes    []*node

	channels known.Table[placed, struct{}] // created on existing topics

	mu    sync.Mutex
	found []*node // by lookupd, during the run
}

// everywhere returns all servers known so far.
func (c *conn) everywhere() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.nodes, c.found)
}

// meet adds a server from lookupd, unless it is already known.
func (c *conn) meet(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func(k *node) bool { return k.address == n.address }
	if !slices.ContainsFunc(c.nodes, same) && !slices.ContainsFunc(c.found, same) {
		c.found = append(c.found, n)
	}
}

// Declare creates the topics on every server.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		topic, err := c.topic(d.Name)
		if err != nil {
			return err
		}
		return each.AtOnce(c.nodes, func(n *node) error {
			return c.api.Post(ctx, n.api, "/topic/create", url.Values{"topic": {topic}})
		})
	})
}

// Delete removes the topics with their channels from every server, and then from the nsqlookupds,
// which remember topics that no server has.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		topic, err := c.topic(d.Name)
		if err != nil {
			return err
		}
		remove := func(base string) error {
			if err := c.api.Post(ctx, base, "/topic/delete", url.Values{"topic": {topic}}); !isMissing(err) {
				return err
			}
			return nil
		}
		err = each.AtOnce(c.everywhere(), func(n *node) error { return remove(n.api) })
		for _, l := range c.lookupds {
			err = errors.Join(err, remove(l))
		}
		return err
	})
}

// declareChannel creates a channel, which receives its topic's messages from then on.
func (c *conn) declareChannel(ctx context.Context, p placed) error {
	if c.run.Existing {
		c.channels.Note(p, struct{}{}) // before creating it: the answer may be lost
	} else if isEphemeral(p.topic) {
		// An ephemeral topic goes with its last channel, possibly of another subscription.
		if err := c.api.Post(ctx, p.node.api, "/topic/create", url.Values{"topic": {p.topic}}); err != nil {
			return err
		}
	}
	return c.api.Post(ctx, p.node.api, "/channel/create", url.Values{"topic": {p.topic}, "channel": {p.channel}})
}

// Close removes the channels created on existing topics.
func (c *conn) Close(ctx context.Context) error {
	defer c.api.Close()
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	var errs []error
	for p := range c.channels.All() {
		err := c.api.Post(ctx, p.node.api, "/channel/delete", url.Values{"topic": {p.topic}, "channel": {p.channel}})
		if err != nil && !isMissing(err) {
			errs = append(errs, fmt.Errorf("channel %s stays at topic %s: %w", p.channel, p.topic, err))
		}
	}
	return errors.Join(errs...)
}

// isEphemeral reports whether a topic or a channel exists in memory only.
func isEphemeral(name string) bool { return strings.HasSuffix(name, ephemeralSuffix) }
