// Package nsq drives NSQ: topics that copy each message to channels, on servers
// that know nothing of each other.
//
// # Terms
//
// page.md says what the words mean. A channel keeps what comes from its making on; what a
// topic was given before it had any channel goes to the first one. With several servers
// the producers are dealt over them, and a consumer has a connection to each and to each
// topic: a connection subscribes to one channel of one topic. Its prefetch is dealt over
// these (RDY, at least 1 each, at most what the server allows, 2500 by default).
//
// With the option lookupd consumers find the servers of a topic through nsqlookupd
// (https://nsq.io/components/nsqlookupd.html), and keep asking for more while they run;
// without, they are those of the option address. Topics and channels are made and removed
// by nsqd's HTTP interface, which is also asked for settings and for backlogs.
//
// Where destinations exist already a topic must exist on one of the servers. A
// subscription is then a channel weir.<run>.<subscription>, which Conn.Close removes; a
// weir that is killed leaves it, and nsqd gathers messages in it until somebody removes
// it. Choose channels: ephemeral where that matters more than a message that finds no room.
//
// # What a confirmation means
//
// A message completes when nsqd answers OK to its PUB. It is then in the topic's
// queue: in memory, or where that is full (option server.mem-queue-size, 10000
// messages by default) or has no room at all (0) written to a file, which is
// synced each 2500 messages and each 2 s (sync-every, sync-timeout)
// (https://nsq.io/components/nsqd.html). The answer does not wait for that sync,
// with sync-every 1 neither: go-diskqueue's ioLoop answers the write, then syncs.
// A message is in memory only while it is under way to a consumer, even with a
// mem-queue-size of 0: an nsqd that is killed then delivers it again only if
// it had not yet noted that it was read (with each sync), and all that it had read
// since comes again, as a first attempt. So no setting gives more than received.
//
// An ephemeral topic or channel is in memory only, and drops without a word what
// finds no room there: PUB is answered with OK all the same.
//
// # Settling
//
// NSQ knows one way: FIN for each message. There is no answer to it. A message
// that Deliver refuses is given back (REQ) and comes again after requeue-delay.
// One that is not settled within msg-timeout comes again too (nsqd looks
// after a channel from 5 s after it was made), and so does, no sooner, what a
// consumer had when its connection broke. A delivery counts as
// redelivered when nsqd says that it is not the first attempt. Messages that a
// consumer has got and not looked at when it ends are given back too; who gets
// them next sees them as redelivered. There is no order: nsqd mixes what is in
// memory, on disk and given back
// (https://nsq.io/overview/features_and_guarantees.html).
//
// # How the client behaves
//
// The client's Producer publishes. It writes on a goroutine of its own. When its
// connection is lost weir makes another Producer: the client would connect again within
// the next call, and writes then what its ending goroutine still reads. A Producer that
// is ended while answers are on their way may leave a goroutine behind.
//
// Consumers use the layer below, go-nsq's Conn: framing, IDENTIFY, TLS, AUTH, heartbeats,
// buffers. The Consumer above it does not tell that a connection was lost, and sends no
// more for a while after a message was refused (its backoff). It gives up a message after
// five attempts without a word, looks for its server again once a minute, and cannot tell
// when it is subscribed.
//
// Each PUB, MPUB, FIN and REQ is written by itself; a PUB within Publish, which so may
// wait for the network (PublishBlocks). All messages of a batch are one MPUB. A write
// that waits for longer than write-timeout ends the connection. What was under way when
// a connection broke fails with ErrDisconnected and may have been queued; until there is
// a new one messages are refused. Reads, and the answers to heartbeats, are the client's
// goroutine's; between it and Deliver there is one queue, as long as the prefetch.
//
// nsqd itself gathers what it sends to a consumer: until there are 16 KiB or
// 250 ms are over (options output-buffer and output-buffer-timeout, which are the
// client's defaults), unless the consumer's prefetch is used up. At low rates this
// is most of the time that a message takes.
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
