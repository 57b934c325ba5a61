// Package jetstream drives NATS JetStream: streams that keep their messages. page.md says what
// weir's terms mean here. This comment adds details.
//
// A durable is created when its first consumer opens, and keeps later messages and those already in
// the stream. On streams that are not weir's it is weir-<run>-<subscription>; Conn.Close removes it,
// and the server does after an hour without a pull request. A stream of work-queue or interest
// retention loses what is acknowledged, as with any consumer of it, and one of work-queue retention
// delivers from the earliest on only. Each consumer of a durable that the user named must take all
// destinations of the subscription on that stream. Other consumers of that name are refused
// (wanted.check). What a consumer had received and not delivered it gives back when it ends (NAK).
//
// # What a confirmation means
//
// It is read from the stream and from the servers when they run (nats-server 2.15, server/): one
// replica in a file is written to the operating system (stream.go, AsyncFlush only for more), or
// with sync always opened with O_SYNC (filestore.go); of more a quorum has it in its log (raft.go),
// written without delay or synced (jetstream_cluster.go).
//
// A stream of persist mode "async" counts as memory. Whether a server syncs always is asked for by
// $SYS.REQ.SERVER.PING.VARZ, which weir's embedded server exports to its clients and an operator may
// export, and at the addresses of the option monitor. Every server that holds a replica must say so.
//
// # Settling
//
// One acknowledgement for many exists (ack policy all) but covers everything before it, what other
// consumers of the subscription are still working on included, and would be wrong for competing
// consumers. With ack-confirm the server is asked to confirm each acknowledgement (what the client
// calls DoubleAck), and those are the settlements reported. A refused message is NAKed, and
// delivered again at once; redelivery is read from the count in the message's reply subject.
//
// # How the client behaves
//
// nats.go's own asynchronous publisher (PublishMsgAsync with an ack handler) makes a future, a
// timer, a reply subject and three map operations for each message, parses its acknowledgement by
// reflection, retries where no service answered, and waits inside when too many are open. This
// driver publishes by the same client with a reply subject from a fixed table (natsconn.Publisher),
// which is also how the acknowledgement finds its message. In a cluster each message has a reply
// subject that no other had: a new leader confirms again what the one before had confirmed last.
// That is one allocation of 48 B. BenchmarkPublish compares the two: 3 allocations and 207 B a
// message (all the client's, for the acknowledgement received) against 17 and 951 B, 4.2 us against
// 6.4 us on a busy host of two cores.
//
// Consumers use Consume: pull requests of prefetch messages (500 where the scenario leaves it open)
// and at most 32 MiB, renewed at half, because the client drops what exceeds 64 MiB in its queue.
package jetstream

import (
	"context"
	"embed"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/settings"
	"github.com/weirmq/weir/internal/natsd"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files, natsconn.Recipe())

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "jetstream",
		Title:   "NATS JetStream",
		Summary: "Streams kept in files or memory, replicated, consumed by acknowledgement.",
		Client:  "github.com/nats-io/nats.go",
		Capabilities: driver.Capabilities{
			Leaders:         true,
			Consume:         true,
			Replicas:        true,
			Subscriptions:   true,
			Competing:       true,
			Nack:            true,
			SettleConfirmed: true, // with ack-confirm
			Retains:         true, // the durable is created when the consumer is opened
			PublishBlocks:   true,
			Resumes:         true,
			Replays:         []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Settle:          []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto, driver.SettleNone},
			Guarantees:      []driver.Guarantee{driver.Received, driver.Replicated, driver.Persisted},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.PerDestination,
			MaxPayload:      natsd.MaxPayload,
		},
		New:   func() driver.Config { return newConfig() },
		Serve: serve,
		Nodes: natsconn.CheckNodes,
		Page:  page,
	}
}

// Values of the option client-path.
const byWeir, byVendor = "weir", "vendor"

// Config holds the driver's settings.
type Config struct {
	natsconn.Options
	Path          string        `option:"client-path" allowed:"weir,vendor" help:"What publishes: weir's own publisher over the client's connection (weir), or the client's own (vendor)."`
	Storage       string        `option:"storage" allowed:"file,memory" firm:"file" help:"Where the streams keep their messages."`
	MaxBytes      int64         `option:"max-bytes" size:"bytes" min:"0" help:"Size above which a stream that weir makes drops its oldest messages, consumed or not; 0: none. Accounts of hosted services demand one."`
	AckTimeout    time.Duration `option:"ack-timeout" min:"1ms" help:"How long a producer waits for the acknowledgement of a message."`
	AckWait       time.Duration `option:"ack-wait" min:"1ms" help:"After how long the server delivers again what was not acknowledged."`
	MaxAckPending int           `option:"max-ack-pending" min:"-1" help:"Most messages of a subscription delivered and not acknowledged; -1: as many as are pulled."`
	AckConfirm    bool          `option:"ack-confirm" help:"Have the server confirm each acknowledgement; settlements are then measured."`
	Monitor       []string      `option:"monitor" help:"Monitoring addresses (http://host:8222) of the servers, asked whether they sync."`
	Server        Server        `option:"server"`
}

// Server holds the settings of an embedded server.
type Server struct {
	SyncAlways   bool          `option:"sync-always" firm:"yes" help:"The server that weir starts syncs files before each confirmation."`
	SyncInterval time.Duration `option:"sync-interval" min:"0s" help:"How often the server that weir starts syncs files otherwise; 0: its default, 2m."`
}

func newConfig() *Config {
	return &Config{
		Options: natsconn.Defaults(),
		Path:    byWeir,
		Storage: "file",
		// Longer than a fault pauses a broker.
		AckTimeout:    30 * time.Second,
		AckWait:       30 * time.Second, // the server's default
		MaxAckPending: -1,               // the server's default, 1000, would throttle competing consumers
	}
}

// Validate reports every invalid setting, joined.
func (c *Config) Validate() error {
	_, monitor := natsconn.Monitors.All("monitor", c.Monitor)
	faults := driver.Faults{c.Options.Validate(), monitor}
	if c.MaxAckPending == 0 {
		faults.Add("max-ack-pending", "0 (-1, or 1 or more)")
	}
	if c.Server.SyncAlways && c.Server.SyncInterval > 0 {
		faults.Add("server.sync-interval", "excludes server.sync-always")
	}
	return faults.Join()
}

// serve runs the embedded server with the settings in s.Options.
func serve(ctx context.Context, s driver.Service) error {
	c := newConfig()
	for name, value := range s.Options {
		if err := driver.SetOption(c, driver.ServerPrefix+name, value); err != nil {
			return err
		}
	}
	if err := driver.Check(c); err != nil {
		return err
	}
	return natsconn.Serve(ctx, s, natsd.Options{SyncAlways: c.Server.SyncAlways, SyncInterval: c.Server.SyncInterval})
}

// Intake implements driver.Refusing: the limits of a stream's queue of messages not yet stored,
// unless the server sets max_buffered_msgs and max_buffered_size. Subject, reply subject and
// headers count too. (https://github.com/nats-io/nats-server/blob/v2.15.2/server/stream.go,
// streamDefaultMaxQueueBytes)
func (c *Config) Intake() driver.Intake {
	return driver.Intake{Messages: 100_000, Bytes: 128 << 20, Besides: 1 << 10}
}

// Open connects, within ctx and 4 s.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	link, err := natsconn.Connect(ctx, &c.Options, run, "control", natsconn.Events{})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(link.Conn)
	if err != nil {
		_ = link.Close(ctx)
		return nil, err
	}
	return &conn{cfg: *c, run: run, link: link, js: js, inForce: settings.Values{}}, nil
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg  Config
	run  driver.Run
	link *natsconn.Link
	js   jetstream.JetStream

	declared sync.Map // stream names, including existing ones
	known    sync.Map // for Existing: targets by destination
	durables sync.Map // durables created on existing streams, to be removed
	verbatim sync.Map // subscriptions with a user-given name

	mu      sync.Mutex
	inForce settings.Values // settings of opened durables
}

// Close removes the durables created on existing streams, and closes the control connection.
func (c *conn) Close(ctx context.Context) error {
	return errors.Join(c.removeDurables(ctx), c.link.Close(ctx))
}
