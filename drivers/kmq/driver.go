// Package kmq drives KMQ, SoftwareMill's selective acknowledgement on top of Apache
// Kafka: each message is acknowledged by itself, and what is not acknowledged in time
// comes again.
//
// # What is what here
//
// A destination is a topic, weir.<run>.<destination>, and beside it a topic of markers,
// <topic>.markers, of as many partitions and replicas: the markers of a partition's
// messages are in the partition of the same number. A subscription is the queue itself:
// a message that comes again is appended to the topic, where every consumer group would
// have it, so that there is one subscription, whose consumers compete, in a consumer
// group of its name. Producers are those of the driver kafka, with its options: keys,
// partitions and what a confirmation means are told there.
//
// Where destinations exist already the marker topic is weir.<run>.<topic>.markers,
// which goes with Conn.Close; with a durable subscription it is
// <topic>.<subscription>.markers, which stays, and so do the groups: the name itself,
// and that of the trackers.
//
// # The way of a message
//
// As KMQ's client has it (https://github.com/softwaremill/kmq): what one poll yielded
// gets a start marker each; when all of these are confirmed the group's position is
// committed behind them; then they are delivered; and what was accepted gets an end
// marker each. A marker is as KMQ writes it: the key is partition and offset of the
// message, the value is the kind, and of a start marker the time to process it.
//
// A message is settled when its end marker is confirmed. each reports every message by
// itself, when its own marker is; batch reports together what one poll yielded, when
// all of its markers are. On the wire both are the same: a marker a message, as many
// in one request as there are when it goes out.
//
// # What is not settled
//
// A redelivery tracker reads the markers. A message whose end marker has not come
// redeliver-after (10 s) after its start marker was read is read again from the topic,
// appended to its partition with the header kmq-redelivery-count, by which it is known
// as redelivered, and then given an end marker itself. A message that is refused comes
// again that way; nothing behind it is held up, and no order is kept. It comes again
// without end: there is no topic for dead letters.
//
// In KMQ the tracker is a program of its own. Here it runs in weir, one for each
// destination that a Conn has consumers of, from the first of them to Close; its host's
// work is part of what is measured. It is a member of the group
// <topic of markers>.redelivery, by which several weirs share the partitions of markers.
// KMQ compares the times of markers with its clock; this one counts ticks, of
// a tenth of redeliver-after and at most 500 ms, so that a message comes again up to
// three ticks later than asked for. Before it sends again it reads all markers that
// were there when the time was up: being behind makes no duplicates. KMQ's own default
// is none, its examples have 90 s and the published measurement 60 s; 10 s is less than
// weir waits at the end of a run for what is missing (30 s).
//
// Delivery is at least once. A message comes twice where its end marker came too late,
// or a consumer ended between marking and committing.
package kmq

import (
	"context"
	_ "embed" // of the page
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/kafkaserver"
)

// page is what the driver says to a reader.
//
//go:embed page.md
var page string

// Definition returns the driver.
func Definition() driver.Definition {
	return driver.Definition{
		Name:    "kmq",
		Title:   "KMQ",
		Summary: "Apache Kafka with selective acknowledgement: markers in a second topic, and redelivery after a timeout.",
		Client:  "github.com/twmb/franz-go",
		Capabilities: driver.Capabilities{
			Consume:         true,
			Partitions:      true,
			Replicas:        true,
			Keys:            true,
			Competing:       true,
			Nack:            true,
			SettleConfirmed: true,
			Retains:         true,
			Resumes:         true,
			Replays:         []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Settle:          []driver.Settle{driver.SettleEach, driver.SettleBatch},
			Guarantees:      []driver.Guarantee{driver.Written, driver.Received, driver.Replicated, driver.Persisted},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.Unordered,
			MaxPayload:      kafkaconn.MaxPayload,
		},
		New:    func() driver.Config { return newConfig() },
		Page:   driver.MustPage(page),
		Recipe: kafkaserver.Recipe(),
	}
}

// Config is the driver's settings.
type Config struct {
	kafkaconn.Options
	kafkaconn.Sending
	kafkaconn.Receiving
	RedeliverAfter time.Duration    `option:"redeliver-after" help:"After how long a message that was delivered and not settled is sent again."`
	Server         kafkaconn.Server `option:"server"`
}

func newConfig() *Config {
	return &Config{
		Options:        kafkaconn.Defaults(),
		Sending:        kafkaconn.SendingDefaults(),
		Receiving:      kafkaconn.ReceivingDefaults(),
		RedeliverAfter: 10 * time.Second,
		Server:         kafkaconn.ServerDefaults(),
	}
}

// Validate reports every fault in the settings, joined.
func (c *Config) Validate() error {
	return errors.Join(c.Options.Validate(), c.Sending.Validate(), c.Receiving.Validate(), c.Server.Validate(),
		kafkaconn.Span("redeliver-after", c.RedeliverAfter, 100*time.Millisecond, 24*time.Hour))
}

// Open connects, within ctx and 4 s, and finds out whether each broker can be
// reached at the address that it advertises.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	k := &conn{cfg: *c, log: run.Log, queues: map[string]*queue{}, sinks: map[driver.Sink]bool{}}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if k.Hold, err = kafkaconn.Open(ctx, "kmq", &k.cfg.Options, run); err != nil {
		return nil, err
	}
	return k, nil
}

// A conn is one run's hold on the cluster.
type conn struct {
	*kafkaconn.Hold
	cfg Config
	log *slog.Logger

	opening sync.Mutex // held while a queue is opened or removed

	mu     sync.Mutex
	queues map[string]*queue    // that consumers were opened of, by topic
	sinks  map[driver.Sink]bool // of the consumers that run
}

// fault reports what a tracker survived to the consumers that run, or where there
// is none to the log.
func (c *conn) fault(err error) {
	c.mu.Lock()
	sinks := make([]driver.Sink, 0, len(c.sinks))
	for s := range c.sinks {
		sinks = append(sinks, s)
	}
	c.mu.Unlock()
	for _, s := range sinks {
		s.Fault(err)
	}
	if len(sinks) == 0 {
		c.log.Warn("kmq", "fault", err)
	}
}

// listen has fault reach a consumer's sink until the function returned is called.
func (c *conn) listen(s driver.Sink) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sinks[s] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.sinks, s)
	}
}

var (
	_ driver.Conn       = (*conn)(nil)
	_ driver.Backlogger = (*conn)(nil)
	_ driver.Consumer   = (*consumer)(nil)
)
