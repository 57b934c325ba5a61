// Package redisstreams drives Redis Streams, and Valkey's: logs in memory, read by consumer groups
// that acknowledge. page.md says what is what; cluster.go what differs where the streams are spread
// over the masters of a Redis Cluster. This comment adds details.
//
// A group's position is the last entry handed out, so that one which is to begin at an ID is made
// with the ID before. Connections are named for their consumer, so that CLIENT LIST tells whether it
// is there. Entries of a host that vanished without closing its connections are claimed after
// claim-after. Each consumer looks for entries to claim (XAUTOCLAIM) twice in that time, after its
// own acknowledgements have been confirmed.
//
// An append-only file is written, and with appendfsync always synced, before the answers go out
// (server.c beforeSleep: flushAppendOnlyFile comes before handleClientsWithPendingWrites). With
// no-appendfsync-on-rewrite yes there is no sync during a rewrite, and always is worth what no is.
// Too few replicas within wait-timeout fail the messages with ErrTimeout: they are stored and may be
// delivered.
//
// A producer gives its connection up when its server was silent for ack-timeout, and makes another;
// what the server finds on the first one later, messages that have failed, may get behind what came
// by the second.
//
// # How the client behaves
//
// Single messages leave by a redisconn.Pipe. The client copies the payload into its write buffer on
// a goroutine of its own, so that the bytes are its until the message completes. Retries are off: an
// XADD without its answer may have been done. Batches, and all messages with wait-replicas or
// wait-aof, leave by the client's Pipeline, one call at a time a producer, because WAIT holds up its
// connection: a batch is one call, and what has gathered behind it meanwhile, at most 10,000
// messages, is the next. While there is no connection messages fail at once, or when an attempt to
// make one has failed. With several addresses the next connection is one to the server that is the
// master then; a server that answers READONLY is left.
//
// Beside redis-benchmark, which sends one prepared buffer again and again and does not look at the
// answers, a message of 1 KiB costs the server the same processor time (2.2 us), and weir 2.1 us
// instead of 0.45 us. The engine has 0.15 us of it and this driver as much; the rest is go-redis's
// and the runtime's. On a crowded host of two cores the medians of seven rounds in turns were
// 222,000 a second to 229,000 on one connection with 100 under way, 294,000 to 257,000 with 1000,
// and 217,000 to 280,000 on four with 100 each, where the processors are used up. (redis-benchmark
// 7.0 does not replace __data__ in a command of one's own: with that it sends eight bytes, and seems
// much faster.)
package redisstreams

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/redisconn"
	"github.com/weirmq/weir/drivers/internal/redisserver"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files, redisserver.Clusters())

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "redis-streams",
		Title:   "Redis Streams",
		Summary: "Logs in memory, with an append-only file if wished, read by consumer groups that acknowledge.",
		Client:  "github.com/redis/go-redis/v9",
		Capabilities: driver.Capabilities{
			Leaders:         true,
			Partitions:      true, // with cluster
			Consume:         true,
			Keys:            true,
			Batch:           true,
			Subscriptions:   true,
			Competing:       true,
			Nack:            true, // through claim-after
			SettleConfirmed: true,
			Retains:         true, // the group is created when the consumer is opened
			Resumes:         true,
			Replays:         []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Settle:          []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto},
			Guarantees:      []driver.Guarantee{driver.Received, driver.Replicated, driver.Persisted},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.PerDestination,
		},
		New:  func() driver.Config { return newConfig() },
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	redisconn.Options
	Cluster      bool             `option:"cluster" help:"The servers are a Redis Cluster: streams are spread over its masters, and address is any of its servers."`
	ClaimAfter   time.Duration    `option:"claim-after" min:"1ms" help:"After how long an entry that was delivered and not acknowledged is claimed and delivered again."`
	MaxLen       int64            `option:"max-len" min:"0" help:"Most entries of a stream, the oldest being cut off whether read or not; 0: no limit."`
	MaxLenExact  bool             `option:"max-len-exact" help:"Keep to max-len exactly rather than by whole nodes of the stream, which costs more."`
	WaitReplicas int              `option:"wait-replicas" min:"0" firm:"1,2" help:"How many replicas must have a message before it completes (WAIT)."`
	WaitAOF      bool             `option:"wait-aof" help:"Wait until the message is synced in the append-only file of the server, and of wait-replicas replicas (WAITAOF, Redis 7.2 and later)."`
	WaitTimeout  time.Duration    `option:"wait-timeout" min:"1ms" help:"How long the server waits for that; then the message has failed."`
	Server       redisconn.Server `option:"server"`
}

func newConfig() *Config {
	return &Config{
		Options:     redisconn.Defaults(),
		ClaimAfter:  10 * time.Second,
		WaitTimeout: 5 * time.Second,
		Server:      redisconn.ServerDefaults(),
	}
}

// Validate reports every fault that option bounds do not catch, joined.
func (c *Config) Validate() error {
	faults := driver.Faults{c.Options.Validate()}
	if c.MaxLenExact && c.MaxLen == 0 {
		faults.Add("max-len-exact", "is given without max-len")
	}
	if c.waits() && c.WaitTimeout >= c.AckTimeout {
		faults.Add("wait-timeout", "%v is not below ack-timeout, %v", c.WaitTimeout, c.AckTimeout)
	}
	return faults.Join()
}

// waits reports whether messages wait for more than the server's answer.
func (c *Config) waits() bool { return c.WaitReplicas > 0 || c.WaitAOF }

// Minimum server versions: for XAUTOCLAIM that skips deleted entries, and the lag of a group; for
// WAITAOF.
const (
	needMajor, needMinor = 7, 0
	aofMajor, aofMinor   = 7, 2
)

// Open connects, within ctx and 10 s.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	x := &conn{cfg: *c, run: run}
	var err error
	if c.Cluster {
		x.cluster, err = redisconn.OpenCluster(ctx, &x.cfg.Options, run)
	} else {
		x.link, err = redisconn.Open(ctx, &x.cfg.Options, run)
	}
	if err != nil {
		return nil, err
	}
	links, err := x.servers(ctx)
	for _, link := range links {
		if err == nil {
			err = c.check(ctx, link)
		}
	}
	if err != nil {
		_ = x.Close(ctx)
		return nil, err
	}
	return x, nil
}

// check returns an error for a server that lacks a requested feature.
func (c *Config) check(ctx context.Context, link *redisconn.Link) error {
	s, err := link.State(ctx)
	switch {
	case err != nil:
		return err
	case s.Cluster && !c.Cluster:
		return fmt.Errorf("the server is a node of a Redis Cluster (set the option cluster): %w", driver.ErrUnsupported)
	case !redisconn.AtLeast(s.Version, needMajor, needMinor):
		return fmt.Errorf("%s %s is too old (%d.%d or later): %w", s.Name, s.Version, needMajor, needMinor, driver.ErrUnsupported)
	case c.WaitAOF && !redisconn.AtLeast(s.Version, aofMajor, aofMinor):
		return fmt.Errorf("%s %s has no WAITAOF (%d.%d or later): %w", s.Name, s.Version, aofMajor, aofMinor, driver.ErrUnsupported)
	case c.WaitAOF && !s.AppendOnly():
		return fmt.Errorf("wait-aof: the server writes no append-only file (appendonly: no): %w", driver.ErrUnsupported)
	case c.WaitAOF && s.AppendFsync() == "no":
		return fmt.Errorf("wait-aof: the server never reports a sync of its append-only file (appendfsync: no): %w", driver.ErrUnsupported)
	}
	return nil
}

// A conn is one run's connection to the server.
type conn struct {
	cfg     Config
	run     driver.Run
	link    *redisconn.Link    // nil with cluster
	cluster *redisconn.Cluster // nil without

	durable  known.Table[string, struct{}] // subscriptions with remaining groups under their own names
	declared known.Table[string, []string] // destinations, with the keys of their streams
	groups   known.Table[group, struct{}]  // created on existing streams
}

// A group is a consumer group of a stream.
type group struct{ key, name string }

// Declare creates the streams, empty.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		keys, err := c.direct(ctx, d)
		for _, key := range keys {
			if err == nil {
				err = c.makeStream(ctx, key)
			}
		}
		if err == nil {
			c.declared.Note(d.Name, keys)
		}
		return redisconn.Cause(err)
	})
}

// makeStream creates an empty stream, by creating a group on it.
func (c *conn) makeStream(ctx context.Context, key string) error {
	g := group{key, "weir-declares"}
	if err := c.makeGroup(ctx, g, oldest); err != nil {
		return err
	}
	return c.destroyGroup(ctx, g)
}

// Delete removes the streams.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		keys, err := c.streams(ctx, d.Name)
		if errors.Is(err, driver.ErrUnsupported) {
			return nil // there is none
		}
		if c.directed() {
			keys = append(keys, redisconn.Key(c.run, d.Name))
		}
		for _, key := range keys {
			var link *redisconn.Link
			if err == nil {
				link, err = c.at(ctx, key)
			}
			if err == nil {
				err = link.Unlink(ctx, key).Err()
			}
		}
		if err == nil {
			c.declared.Forget(d.Name)
		}
		return redisconn.Cause(err)
	})
}

// existing returns an error if a destination that should exist is not a stream.
func (c *conn) existing(ctx context.Context, destination string) error {
	if !c.run.Existing {
		return nil
	}
	link, err := c.at(ctx, destination)
	if err != nil {
		return redisconn.Cause(err)
	}
	kind, err := link.Type(ctx, destination).Result()
	switch {
	case err != nil:
		return redisconn.Cause(err)
	case kind == "none":
		return fmt.Errorf("there is no stream of this name: %w", driver.ErrUnsupported)
	case kind != "stream":
		return fmt.Errorf("the key is a %s, no stream: %w", kind, driver.ErrUnsupported)
	}
	return nil
}

// Close removes the groups created on existing streams, and closes the control connection.
func (c *conn) Close(ctx context.Context) error {
	err := c.removeGroups(ctx)
	if c.cluster != nil {
		return errors.Join(err, c.cluster.Close(ctx))
	}
	return errors.Join(err, c.link.Close(ctx))
}
