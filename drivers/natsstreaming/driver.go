// Package natsstreaming drives NATS Streaming (STAN), the log on top of a NATS server that JetStream
// has replaced. page.md says what weir's terms mean here. This comment adds details.
//
// Declare makes a channel by a subscription that it ends again. Delete removes the subscriptions
// that the Conn has made on a channel; one of the same name that is declared again is the old one.
// The durable name of weir's queue groups is weir. On a channel that exists without weir a
// subscription is the durable queue group weir:weir-<run>-<subscription>, which Conn.Close removes.
//
// The store is flushed before a PubAck, and synced too with file_sync (nats-streaming-server 0.25.6,
// server/server.go, ioLoop). A cluster has written the Raft log of a quorum and the leader's store;
// it syncs both with cluster_sync and neither without, whatever file_sync says (stores and
// raft_log.go). A cluster has no memory store. A server counts as one that holds a copy when it has
// the destination's channel: its role alone would not say that it is in the same cluster.
//
// With settle auto the driver acknowledges every message when Deliver has returned, as the client's
// automatic mode does, so that an end of Run leaves nothing half done.
//
// # How the client behaves
//
// stan.go finds an acknowledgement's message by its GUID in a map, under one lock, with a timer for
// each message. Its limit of acknowledgements is set to the producer's in-flight limit, and so never
// blocks. Messages are copied within PublishAsync; none is ever abandoned to it. A message that
// meets no leader fails only after ack-timeout: the client ignores NATS's answer that no server
// takes it. What blocks is the NATS client (see natsconn).
//
// A session (what stan.Connect makes) lives on a NATS connection and outlives its loss, as long as
// the server remembers the session, but acknowledgements sent meanwhile are gone. When its
// connection breaks, a producer ends its session, which fails what is in flight, and makes another
// as soon as there is a connection. A consumer keeps its session. When the server does not know it
// (a server in memory that was restarted), the client gives it up for good, and the driver makes
// another and subscribes again.
package natsstreaming

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// MaxPayload is the largest message: the vendor's recommended upper bound for a server's
// max_payload, which defaults to 1 MiB (https://docs.nats.io/reference/faq).
const MaxPayload = 8 << 20

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "nats-streaming",
		Title:   "NATS Streaming (STAN)",
		Summary: "Channels kept in files or memory on top of NATS; no longer supported by its makers.",
		Client:  "github.com/nats-io/stan.go",
		Capabilities: driver.Capabilities{
			Leaders:       true,
			Consume:       true,
			Replicas:      true,
			Subscriptions: true,
			Competing:     true,
			Nack:          true, // after ack-wait
			Retains:       true, // the group is created when its first consumer is opened
			PublishBlocks: true,
			Resumes:       true,
			Replays:       []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Settle:        []driver.Settle{driver.SettleEach, driver.SettleAuto},
			Guarantees:    []driver.Guarantee{driver.Received, driver.Replicated, driver.Persisted},
			Delivery:      driver.AtLeastOnce,
			Ordering:      driver.PerDestination,
			MaxPayload:    MaxPayload,
		},
		New:  func() driver.Config { return newConfig() },
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	natsconn.Options
	ClusterID           string        `option:"cluster-id" help:"Name of the streaming cluster, which one server has too."`
	DiscoverPrefix      string        `option:"discover-prefix" help:"Subject at which the servers are asked for a session, as they are configured."`
	RequestTimeout      time.Duration `option:"request-timeout" min:"1ms" help:"How long the client waits for the answer to a request for a session or a subscription."`
	AckTimeout          time.Duration `option:"ack-timeout" min:"1ms" help:"How long a producer waits for the acknowledgement of a message."`
	AckWait             time.Duration `option:"ack-wait" min:"1s" unit:"1s" help:"After how long the server delivers again what was not acknowledged, refused messages included; whole seconds."`
	SessionPingInterval time.Duration `option:"session-ping-interval" min:"1s" unit:"1s" help:"How often the client asks whether the server still knows its session; whole seconds."`
	SessionPingsOut     int           `option:"session-pings-out" min:"2" help:"How many of these may go unanswered before the session counts as lost."`
	Monitor             []string      `option:"monitor" help:"Monitoring addresses (http://host:8222) of the servers, asked for their store, their cluster and backlogs."`
	Sync                string        `option:"sync" allowed:"unknown,no,yes" firm:"yes" help:"Whether the servers sync a message before they acknowledge it: file_sync of a single server, its default, and cluster_sync of a cluster. They do not report it."`
	Server              Server        `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	Store         string        `option:"store" allowed:"file,memory" help:"Server that weir starts: where channels keep their messages; a cluster takes file only."`
	FileSync      bool          `option:"file-sync" firm:"yes" help:"Server that weir starts: sync a channel's file before each confirmation."`
	ClusterSync   bool          `option:"cluster-sync" firm:"yes" help:"Server that weir starts: sync the Raft log at each write, where there are 3 nodes."`
	MaxMsgs       int           `option:"max-msgs" min:"0" help:"Server that weir starts: messages that a channel keeps before it drops the oldest, consumed or not; 0: all."`
	MaxBytes      int64         `option:"max-bytes" min:"0" help:"Server that weir starts: bytes that a channel keeps before it drops the oldest, consumed or not; 0: all."`
	MaxInactivity time.Duration `option:"max-inactivity" min:"0s" help:"Server that weir starts: after how long without messages and subscriptions it removes a channel; 0s: never."`
}

func newConfig() *Config {
	return &Config{
		Options:        natsconn.Defaults(),
		ClusterID:      "test-cluster", // the server's default
		DiscoverPrefix: stan.DefaultDiscoverPrefix,
		// The client's default, 2 s, is shorter than an election.
		RequestTimeout: 5 * time.Second,
		AckTimeout:     stan.DefaultAckWait,
		AckWait:        stan.DefaultAckWait,
		// As in the client: 7 minutes. If a server reports that it does not know the session, that
		// is accepted at once.
		SessionPingInterval: stan.DefaultPingInterval * time.Second,
		SessionPingsOut:     stan.DefaultPingMaxOut,
		Sync:                "unknown",
		Server:              Server{Store: "file", FileSync: true, MaxMsgs: 1_000_000, MaxBytes: 1_024_000_000},
	}
}

// clusterIDs matches the cluster names that the server accepts.
var clusterIDs = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Validate reports every invalid setting, joined.
func (c *Config) Validate() error {
	_, monitor := natsconn.Monitors.All("monitor", c.Monitor)
	faults := driver.Faults{c.Options.Validate(), monitor}
	if !clusterIDs.MatchString(c.ClusterID) {
		faults.Add("cluster-id", "%q is not a name of a cluster (letters, digits, - and _)", c.ClusterID)
	}
	if _, err := natsconn.CheckSubject(c.DiscoverPrefix); err != nil {
		faults.Add("discover-prefix", "%w", err)
	}
	return faults.Join()
}

// Narrow implements driver.Narrowed: only the monitoring addresses report the leader.
func (c *Config) Narrow(to driver.Capabilities) driver.Capabilities {
	to.Leaders = to.Leaders && len(c.Monitor) > 0
	return to
}

// Open connects, and briefly starts a session, which proves that the cluster name is right and that
// the cluster has a leader. It takes up to 4 s for the connection and 5 s for the rest.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	monitors, err := newMonitors(c)
	if err != nil {
		return nil, err
	}
	link, err := natsconn.Connect(ctx, &c.Options, run, "control", natsconn.Events{})
	if err != nil {
		return nil, err
	}
	x := &conn{
		cfg: *c, run: run, link: link, monitors: monitors,
		prefix: "weir-" + natsconn.Token(run.ID) + "-" + rand.Text()[:8],
	}
	limited, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if err = retry.While(limited, askPause, passing, func() error { return x.with(ctx, nil) }); err == nil {
		err = monitors.check(ctx)
	}
	if err != nil {
		monitors.web.Close()
		_ = link.Close(ctx)
		return nil, err
	}
	return x, nil
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg      Config
	run      driver.Run
	link     *natsconn.Link
	monitors *monitors
	prefix   string // of client IDs, which must be unique in the system
	sessions atomic.Uint64

	ends     natsconn.Ends // open consumers
	channels sync.Map      // names; declared, or used if they exist without weir
	begun    sync.Map      // groups used by this Conn's consumers; true: kept for the user
}

// clientID returns a unique client ID.
func (c *conn) clientID() string {
	return fmt.Sprintf("%s-%d", c.prefix, c.sessions.Add(1))
}

// Close removes the groups created on existing channels, and closes the control connection.
func (c *conn) Close(ctx context.Context) error {
	var err error
	if c.run.Existing {
		err = c.removeGroups(ctx, func(string) bool { return true })
	}
	c.monitors.web.Close()
	return errors.Join(err, c.link.Close(ctx))
}
