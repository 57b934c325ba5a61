// Package kmq drives KMQ, SoftwareMill's selective acknowledgement on top of Apache
// Kafka: each message is acknowledged by itself, and what is not acknowledged in time
// comes again. What the words of weir mean here the page says (page.md). Producers are
// those of the driver kafka, with its options. This is what the page leaves out.
//
// # Topics and groups
//
// Where destinations exist already the topic of markers is weir.<run>.<topic>.markers,
// which goes with Conn.Close. With a durable subscription it is
// <topic>.<subscription>.markers, which stays, and so do both groups: the one of that very
// name, and that of the trackers.
//
// # The way of a message
//
// As KMQ's client has it (https://github.com/softwaremill/kmq): what one poll yielded
// gets a start marker each; when all of these are confirmed the group's position is
// committed behind them; then they are delivered; and what was accepted gets an end
// marker each. A marker is as KMQ writes it: the key is partition and offset of the
// message, the value is the kind, and of a start marker the time to process it. It is in
// the partition of the message's number.
//
// # What is not settled
//
// A redelivery tracker reads the markers. Where the end marker has not come
// redeliver-after the start marker was read, the message is read again from the topic,
// appended to its partition with the header kmq-redelivery-count, and then given an end
// marker itself. Nothing behind it is held up, and no order is kept.
//
// Here a tracker runs for each destination that a Conn has consumers of, from the first of
// them to Close. It is a member of the group <topic of markers>.redelivery, by which
// several weirs share the partitions of markers. KMQ compares the times of markers with its
// clock; this one counts ticks, of a tenth of redeliver-after and at most 500 ms, so that a
// message comes again up to three ticks later than asked for. Before it sends again it
// reads all markers that were there when the time was up: being behind makes no duplicates.
// KMQ's own default of redeliver-after is none, its examples have 90 s and the published
// measurement 60 s; 10 s is less than weir waits at the end of a run for what is missing
// (30 s).
//
// A message comes twice where its end marker came too late, or a consumer ended between
// marking and committing.
package kmq

import (
	"context"
	_ "embed" // embeds the page
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/kafkaserver"
)

// page is the documentation page.
//
//go:embed page.md
var page string

var guarantees = driver.MustPage(page).Confirmations

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "kmq",
		Title:   "KMQ",
		Summary: "Apache Kafka with selective acknowledgement: markers in a second topic, and redelivery after a timeout.",
		Client:  "github.com/twmb/franz-go",
		Capabilities: driver.Capabilities{
			Leaders:         true,
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

// Config holds the driver's settings.
type Config struct {
	kafkaconn.Common
	RedeliverAfter time.Duration `option:"redeliver-after" min:"100ms" max:"24h" help:"After how long a message that was delivered and not settled is sent again."`
}

func newConfig() *Config { return &Config{kafkaconn.Defaults(), 10 * time.Second} }

// Open connects, within ctx and 4 s, and checks that each broker is reachable at its advertised
// address.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	k := &conn{cfg: *c, queues: map[string]*queue{}, sinks: map[driver.Sink]bool{}}
	var err error
	k.Hold, err = kafkaconn.Open(ctx, &k.cfg.Common, run)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// A conn is one run's connection to the cluster.
type conn struct {
	*kafkaconn.Hold
	cfg Config

	opening sync.Mutex // held while a queue is opened or removed

	mu     sync.Mutex
	queues map[string]*queue    // queues with consumers, by topic
	sinks  map[driver.Sink]bool // of running consumers
}

// fault reports an error that a tracker survived to the running consumers, or to the log if there
// are none.
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
		c.Run.Logger().Warn("kmq", "fault", err)
	}
}

// listen makes fault reach a consumer's sink until stop is called.
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
