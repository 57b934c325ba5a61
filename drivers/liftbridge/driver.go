// Package liftbridge drives Liftbridge, a commit log on top of NATS. page.md says what weir's terms
// mean here.
//
// The leader of the partition has written a confirmed message to its log; with acks all, so has each
// replica in sync (server/partition.go). No server syncs a log (server/commitlog).
//
// The client tries to connect again for 250 ms. After that its publisher is dead, so the producer
// makes a new client. Acknowledgements that a lost connection carried come as timeouts. A context of
// Connect would end the publisher, too, so it gets none. The publisher has no lock. One goroutine
// uses it.
package liftbridge

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	client "github.com/liftbridge-io/go-liftbridge/v2"
	proto "github.com/liftbridge-io/liftbridge-api/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/retry"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

var servers = endpoint.Kind{Schemes: []string{"liftbridge"}, Port: "9292", Like: "127.0.0.1:9292"}

// largest is the servers' replication.max.bytes, minus the envelope.
const largest = 1_000_000

// Definition returns the driver.
func Definition() driver.Definition {
	return driver.Definition{
		Name:    "liftbridge",
		Title:   "Liftbridge",
		Summary: "Commit logs on top of NATS, replicated to other servers.",
		Client:  "github.com/liftbridge-io/go-liftbridge/v2",
		Capabilities: driver.Capabilities{
			Consume: true, Partitions: true, Replicas: true, Keys: true, Subscriptions: true, Retains: true, Leaders: true,
			Settle:     []driver.Settle{driver.SettleNone},
			Guarantees: []driver.Guarantee{driver.Buffered, driver.Received, driver.Replicated},
			Delivery:   driver.AtLeastOnce, Ordering: driver.PerPartition,
			MaxPayload: largest,
		},
		New: func() driver.Config {
			return &Config{Address: []string{servers.Like}, Acks: "leader", MinInsync: 1, Timeout: 5 * time.Second, ReconnectWait: 250 * time.Millisecond}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address       []string      `option:"address" help:"Servers to begin with, as host:port; they name the others."`
	Acks          string        `option:"acks" allowed:"leader,all,none" firm:"all" help:"Replicas that have written a message before it is acknowledged: the leader, or all that are in sync; none: no acknowledgement."`
	MinInsync     int           `option:"min-insync" min:"1" firm:"2,3" help:"Replicas that must be in sync for a message to be committed, in streams that weir makes (min.insync.replicas); at most all."`
	Timeout       time.Duration `option:"timeout" min:"1s" max:"5m" help:"Longest time of a question and of an acknowledgement."`
	ReconnectWait time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause before each attempt to connect or subscribe again. The attempts never end."`
	Version       string        `option:"version" help:"Version of the servers, which they do not report."`
}

// Validate reports every invalid setting, joined.
func (c *Config) Validate() error {
	_, err := servers.All("address", c.Address)
	faults := driver.Faults{err}
	if len(c.Address) == 0 {
		faults.Add("address", "is empty (one server or more)")
	}
	return faults.Join()
}

// Known implements driver.GuaranteePredictor.
func (c *Config) Known(s driver.Servers) driver.Known {
	k := driver.KnownOf(c, "acks")
	if s.Nodes > 0 {
		k["min-insync"] = driver.Of(min(c.MinInsync, s.Replicas), s.Replicas)
	}
	return k
}

// words maps errors to the contract's.
var words = failure.Map{Is: func(err error) error {
	switch {
	case errors.Is(err, client.ErrAckTimeout), status.Code(err) == codes.DeadlineExceeded:
		return driver.ErrTimeout
	case status.Code(err) == codes.Unavailable, status.Code(err) == codes.Canceled:
		return driver.ErrDisconnected
	case strings.Contains(err.Error(), "replication size"):
		return driver.ErrTooLarge
	case status.Code(err) == codes.InvalidArgument:
		return driver.ErrUnsupported
	}
	return nil
}}

// connect creates a client with the first server that answers.
func (c *Config) connect(ctx context.Context) (client.Client, error) {
	all, last := servers.All("address", c.Address)
	for _, at := range all.HostPorts() {
		var k client.Client
		k, last = c.connectTo(ctx, at)
		if last == nil {
			return k, nil
		}
	}
	return nil, words.Unreachable(last)
}

// slowConnect is the longest that connecting by a live server takes while another of three is dead: the client asks two
// servers for their list of servers, and each waits 3 s (defaultFetchBrokerInfoTimeout) for the dead one's answer.
const slowConnect = 10 * time.Second

// connectTo connects to the servers by one of them.
func (c *Config) connectTo(ctx context.Context, at string) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, max(c.Timeout, slowConnect))
	defer cancel()
	var k client.Client
	var err error
	if !gate.Within(ctx, func() {
		k, err = client.Connect([]string{at}, client.AckWaitTime(c.Timeout), client.ResubscribeWaitTime(0))
	}, func() { end(k) }) {
		return nil, fmt.Errorf("%w: %s does not answer", driver.ErrUnreachable, at)
	}
	return k, err
}

// end closes a client, which may wait for the network.
func end(k client.Client) {
	if k != nil {
		_ = gate.End(context.Background(), time.Second, func() { _ = k.Close() })
	}
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg      Config
	run      driver.Run
	client   client.Client
	declared known.Table[string, int]   // stream replicas
	parts    known.Table[string, *part] // of subscriptions with consumers in this process
}

// Open connects, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	k, err := c.connect(ctx)
	return &conn{cfg: *c, run: run, client: k}, err
}

// ask sends a request, within ctx and the option timeout, and repeats it while the servers have no
// leader.
func (c *conn) ask(ctx context.Context, question func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	unled := func(err error) bool { return status.Code(err) == codes.Internal }
	return words.Unreachable(retry.While(ctx, 20*time.Millisecond, unled, func() error { return question(ctx) }))
}

func (c *conn) stream(destination string) string { return names.Of(c.run, 200, destination) }

// Declare creates the streams.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		s := c.stream(d.Name)
		c.declared.Note(s, d.Replicas)
		return c.ask(ctx, func(ctx context.Context) error {
			err := c.client.CreateStream(ctx, s, s, client.Partitions(int32(d.Partitions)),
				client.ReplicationFactor(int32(d.Replicas)), client.MinISR(min(c.cfg.MinInsync, d.Replicas)))
			if err != nil && !errors.Is(err, client.ErrStreamExists) {
				return err
			}
			return c.everywhere(ctx, s)
		})
	})
}

// everywhere waits until every server knows a stream, because the client may use any of them.
func (c *conn) everywhere(ctx context.Context, stream string) error {
	m, err := c.client.FetchMetadata(ctx)
	if err != nil {
		return err
	}
	return each.AtOnce(m.Addrs(), func(at string) error {
		missing := errors.New("a server does not know the stream, or who leads it")
		return retry.While(ctx, 5*time.Millisecond, func(err error) bool { return errors.Is(err, missing) }, func() error {
			return visit(at, func(k proto.APIClient) error {
				m, err := k.FetchMetadata(ctx, &proto.FetchMetadataRequest{Streams: []string{stream}})
				if err == nil && !led(m) {
					return missing
				}
				return err
			})
		})
	})
}

// led reports whether a server knows a stream and the addresses of its leaders.
func led(m *proto.FetchMetadataResponse) bool {
	for _, p := range m.StreamMetadata[0].Partitions {
		if !slices.ContainsFunc(m.Brokers, func(b *proto.Broker) bool { return b.Id == p.Leader }) {
			return false
		}
	}
	return m.StreamMetadata[0].Error == proto.StreamMetadata_OK
}

// visit queries one particular server, which the client cannot select, or only from an outdated
// list.
func visit(at string, ask func(proto.APIClient) error) error {
	k, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	return errors.Join(ask(proto.NewAPIClient(k)), k.Close())
}

// Delete removes the streams.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		s := c.stream(d.Name)
		c.declared.Forget(s)
		for name, p := range c.parts.All() {
			if p.stream == s {
				c.parts.Forget(name)
			}
		}
		return c.ask(ctx, func(ctx context.Context) error {
			err := c.client.DeleteStream(ctx, s)
			if errors.Is(err, client.ErrNoSuchStream) {
				return nil
			}
			return err
		})
	})
}

// metadata asks for the servers and all streams.
func (c *conn) metadata(ctx context.Context) (m *client.Metadata, err error) {
	err = c.ask(ctx, func(ctx context.Context) error { m, err = c.client.FetchMetadata(ctx); return err })
	return m, err
}

// partitions returns the partition count of a stream, which must exist.
func (c *conn) partitions(ctx context.Context, stream string) (n int32, err error) {
	m, err := c.metadata(ctx)
	if err == nil {
		if n = m.PartitionCountForStream(stream); n == 0 {
			err = fmt.Errorf("there is no stream %s: %w", stream, driver.ErrUnsupported)
		}
	}
	return n, err
}

// next asks a partition's leader for the offset of the next message.
func (c *conn) next(ctx context.Context, stream string, partition int32) (next int64, err error) {
	m, err := c.metadata(ctx)
	if err != nil {
		return 0, err
	}
	s := m.GetStream(stream)
	if s == nil || s.GetPartition(partition).Leader() == nil {
		return 0, fmt.Errorf("%w: partition %d has no leader now", driver.ErrUnreachable, partition)
	}
	err = c.ask(ctx, func(ctx context.Context) error {
		return visit(s.GetPartition(partition).Leader().Addr(), func(k proto.APIClient) error {
			p, err := k.FetchPartitionMetadata(ctx, &proto.FetchPartitionMetadataRequest{Stream: stream, Partition: partition})
			next = p.GetMetadata().GetNewestOffset() + 1
			return err
		})
	})
	return next, err
}

// Backlog implements driver.Backlogger: the messages after the subscription's positions.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (sum uint64, err error) {
		for i := int32(0); err == nil; i++ {
			p, ok := c.parts.Get(name(subscription, d, i))
			if !ok {
				break
			}
			var next int64
			next, err = c.next(ctx, p.stream, i)
			sum += uint64(max(0, next-p.place.Load()))
		}
		return sum, err
	})
}

// Facts asks for the servers and the leaders. The servers report no settings.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "Liftbridge", Version: cmp.Or(c.cfg.Version, "not told"), Settings: map[string]string{"acks": c.cfg.Acks}}
	k := driver.KnownOf(&c.cfg, "acks")
	m, err := c.metadata(ctx)
	if err != nil {
		return f, err
	}
	f.Nodes = len(m.Brokers())
	for s, replicas := range c.declared.All() {
		n := min(c.cfg.MinInsync, replicas)
		k["min-insync"], f.Settings["min.insync.replicas"] = driver.Of(n, replicas), strconv.Itoa(n)
		for i := range m.PartitionCountForStream(s) {
			if l := m.GetStream(s).GetPartition(i).Leader(); l != nil {
				f.Leaders = append(f.Leaders, l.Addr())
			}
		}
	}
	f.Confirms = page.Confirmations.Of(k)
	return f, nil
}

// Close ends the connection.
func (c *conn) Close(context.Context) error {
	end(c.client)
	return nil
}
