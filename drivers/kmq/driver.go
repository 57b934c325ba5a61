// Package kmq drives KMQ, SoftwareMill's selective acknowledgement on top of Apache Kafka: each
// message is acknowledged separately, and is redelivered if it is not acknowledged in time. page.md
// says what weir's terms mean here. Producers and their options are those of the driver kafka. This
// comment adds details.
//
// For an existing destination, the topic of markers is weir.<run>.<topic>.markers, which Conn.Close
// removes. Beside a durable subscription's group its trackers' group is kept, too.
//
// As in KMQ's client (https://github.com/softwaremill/kmq), each message of a poll gets a start
// marker. When all these markers are confirmed, the group's position is committed behind the
// messages, and they are delivered. Each accepted message gets an end marker. A marker has KMQ's
// format: the key is the message's partition and offset, the value is the kind and, in a start
// marker, the time to process the message. A message is delivered twice if its end marker arrives
// too late, or if a consumer ends between the start markers and the commit.
//
// # Redelivery
//
// If no end marker arrives in time, the redelivery tracker reads the message again from the topic,
// appends it, and writes the end marker. Later messages do not wait for it, so order is not kept. A
// Conn runs a tracker for each destination with consumers, from the first consumer to Close. The
// tracker is a member of the group <topic of markers>.redelivery, in which several weir processes
// share the partitions of markers. KMQ compares the times in markers with its clock. This tracker
// counts ticks of a tenth of redeliver-after, at most 500 ms, so a message is redelivered up to
// three ticks late. Before it redelivers, it reads all markers written until then, so a slow tracker
// causes no duplicates. KMQ has no default for redeliver-after: its examples use 90 s, the published
// measurement 60 s. weir's 10 s is less than the 30 s that it waits for missing messages at the end
// of a run.
package kmq

import (
	"context"
	"embed"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files, kafkaconn.Recipe())

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
		New:  func() driver.Config { return newConfig() },
		Page: page,
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
