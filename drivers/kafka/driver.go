// Package kafka drives Apache Kafka, and what speaks its protocol.
//
// # What is what here
//
// A destination is a topic, weir.<run>.<destination>, of as many partitions and
// replicas as asked for (https://kafka.apache.org/43/design/design/#the-producer).
// A subscription is a consumer group (classic protocol) of its name, whose
// members share the partitions. Where it begins is committed for it when its first
// consumer is opened: at the oldest message that is there, unless asked for
// another position (Replay, below). Each producer and each consumer is a client of its own, with connections
// of its own to each broker.
//
// Where destinations exist already a name is the topic's. Conn.Close removes the
// groups that weir made. A durable subscription is the group of that very name: it
// is made where it is missing, continues where it is there, and stays. A name is
// taken where the group has members of another type or protocol, or of other topics.
//
// # Replay and resume
//
// A group may begin at the earliest message, behind the last, at an offset, the same
// in each partition, or at a time. An offset that a partition does not reach, or no
// longer holds, becomes the end or the earliest, as the vendor's kafka-consumer-groups
// sets it; so does a time after the last message. The time of a message is what its
// producer or, with message.timestamp.type: LogAppendTime, the broker's clock said,
// in whole milliseconds: what is asked for is rounded down to them. Offsets of a topic
// made by weir count from 0.
//
// A group whose members are all gone, crashed ones included, continues behind what it
// has committed: at the earliest message of each partition that is not settled, with
// all that is behind it, delivered before or not.
//
// # Partitions and keys
//
// A message with a key goes where the vendor's client would send it (murmur2 of the
// key). What has none goes, by the option partitioner, to one partition until
// 64 KiB are together there (sticky), or to each in turn (round-robin). With
// producer all that a producer sends, keys or not, goes to one partition: the
// producer's index modulo partitions.
//
// # What a confirmation means
//
// A message completes when the client's request for its batch was answered, and
// with acks 0 when it was written to the socket. What the answer means depends on
// acks, and on the topic's settings, which are asked of every broker that holds it
// (https://kafka.apache.org/43/configuration/topic-configs/):
//
//	acks  replicas  min.insync.replicas  flush.messages  guarantee   copies  stable
//	0     any       any                  any             written     1       none
//	1     any       any                  not 1           received    1       os
//	1     2 or more any                  1               received    1       fsync
//	all   1         any                  not 1           received    1       os
//	any   1         any                  1               persisted   1       fsync
//	all   2 or more no majority          any             received    1       as above
//	all   2 or more a majority           not 1           replicated  quorum  os
//	all   2 or more a majority           1               persisted   quorum  fsync
//
// copies is all where min.insync.replicas is the number of replicas. acks all waits
// for the replicas that are in sync, of which there may be fewer than there are
// replicas: only min.insync.replicas are promised. A broker appends to its log by a
// write to the operating system, and syncs when flush.messages are together, which
// is never unless set (UnifiedLog.append); a follower appends as a leader does,
// before it asks for what comes next, which is how the leader knows that it has it.
//
// # Transactions
//
// With transaction: N a producer sends in transactions, one at a time, under the
// transactional.id weir.<run>.producer.<index>: all that waits when the one before has
// ended, up to N messages; at a low rate that is one. A message completes when its
// transaction was committed. Where one message of a transaction fails it is aborted, and
// all of its messages fail: no consumer of weir's is given them. Where a commit fails
// without an answer they fail with ErrTimeout or ErrDisconnected, and may have been
// committed. Then the client has the brokers abort what may still be open.
//
// Consumers then read what is committed (isolation.level: read_committed), and wait
// for transactions before it that are open. The guarantee is that of the topic, or of
// the brokers' log of transactions (__transaction_state) where that is less: it is
// there that a commit is decided. Delivery stays at least once: what a consumer settles
// is not a part of a transaction. Each transaction leaves a marker in every partition that
// it wrote to, which has an offset of its own; the positions committed are behind them.
//
// # Settling
//
// Kafka knows no acknowledgement of a message, only a position in a partition that
// a group commits. batch commits what one poll yielded by one request; what was
// delivered while that was under way is committed together by the next. each
// commits message by message, one request after the other, so that a consumer
// settles no more than one message in the time that a commit takes (about 1 ms
// on loopback). auto has the client commit every auto-commit-interval, what was
// polled before the last poll, and at the end the rest. Deliveries do not wait for
// commits, but, unless they are auto, are at most prefetch messages ahead of them. When
// partitions change hands what was accepted is committed first. A refused message
// cannot be had again by itself: nothing behind it is committed in its partition
// until the group begins there again. Nothing is ever flagged as redelivered.
//
// Delivery is at least once; order is kept in a partition. Without idempotence and
// with more than one of requests-in-flight a retry may overtake.
//
// # What the client does behind one's back
//
// franz-go gathers what is published to a partition into a batch while the requests
// before it are under way, 5 of them a broker with idempotence and 1 without, or for
// linger; it never waits for a batch to fill otherwise (its own default of linger,
// 10 ms, is 0 here, as a wait of that kind is what one wants to measure and not to
// have). It retries without end, until delivery-timeout; with idempotence the
// brokers drop what arrives twice. A message whose time is over fails with ErrTimeout
// and may have been stored. It compresses only where compression says so (its own
// default is snappy). Payloads are copied into the request under the lock of their
// batch (produceRequest.AppendTo in kgo/sink.go), which failing a batch takes too,
// so that no message is ever abandoned to it. Publishing into a full client would
// wait: it has room for more than the in-flight limit, and TryProduce is used,
// which does not wait. The record of a message is kept in its Slot: from Publish to
// Complete nothing is allocated a message, the client's batches and requests are 92 B
// of it (BenchmarkPublish).
//
// A consumer's client fetches ahead, up to fetch-max-bytes a broker, from when Run
// begins; what is fetched and not yet polled when Run ends comes again to who is
// next. It has one fetch under way at each broker, which is answered when one of its
// partitions has something or fetch-max-wait is over (500 ms, as the vendor's client
// has it; its own default is 5 s): so long a partition may wait that it was given
// meanwhile. The group meets when Run begins; Ready waits until it has dealt out every
// partition, not for the members still to come.
//
// A topic takes 8 MiB a message here (max.message.bytes); a batch is as large as
// batch-max-bytes says, unless a single message needs more.
package kafka

import (
	"context"
	_ "embed" // of the page
	"errors"
	"fmt"
	"math"
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
		Name:    "kafka",
		Title:   "Apache Kafka",
		Summary: "Partitioned logs kept in files, replicated, consumed by groups that commit their positions.",
		Client:  "github.com/twmb/franz-go",
		Capabilities: driver.Capabilities{
			Consume:         true,
			Partitions:      true,
			Replicas:        true,
			Keys:            true,
			Subscriptions:   true,
			Competing:       true,
			SettleConfirmed: true,
			Resumes:         true,
			Replays:         []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Retains:         true, // a group begins at the oldest message, or where the log ended when it was opened
			Settle:          []driver.Settle{driver.SettleBatch, driver.SettleEach, driver.SettleAuto},
			Guarantees:      []driver.Guarantee{driver.Written, driver.Received, driver.Replicated, driver.Persisted},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.PerPartition,
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
	Transaction int              `option:"transaction" help:"Most messages of one transaction; consumers then read what is committed. 0: no transactions."`
	AutoCommit  time.Duration    `option:"auto-commit-interval" help:"Settle auto: how often the client commits."`
	Server      kafkaconn.Server `option:"server"`
}

func newConfig() *Config {
	return &Config{
		Options:    kafkaconn.Defaults(),
		Sending:    kafkaconn.SendingDefaults(),
		Receiving:  kafkaconn.ReceivingDefaults(),
		AutoCommit: 5 * time.Second, // the client's default
		Server:     kafkaconn.ServerDefaults(),
	}
}

// Validate reports every fault in the settings, joined.
func (c *Config) Validate() error {
	var err error
	if c.Transaction > 0 && !c.Idempotent() {
		err = &driver.OptionError{Name: "transaction", Err: errors.New("needs idempotence, which needs acks: all (0)")}
	}
	return errors.Join(c.Options.Validate(), c.Sending.Validate(), c.Receiving.Validate(), c.Server.Validate(), err,
		kafkaconn.Count("transaction", int64(c.Transaction), 0, math.MaxInt32),
		kafkaconn.Span("auto-commit-interval", c.AutoCommit, 100*time.Millisecond, time.Hour))
}

// Open connects, within ctx and 4 s, and finds out whether each broker can be
// reached at the address that it advertises.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	k := &conn{cfg: *c}
	var err error
	if k.Hold, err = kafkaconn.Open(ctx, "kafka", &k.cfg.Options, run); err != nil {
		return nil, err
	}
	if c.Transaction > 0 {
		if err := k.Link.TransactionLog(ctx, "weir."+kafkaconn.Token(run.ID)); err != nil {
			k.Link.Kill()
			return nil, fmt.Errorf("kafka: transactions: %w", err)
		}
	}
	return k, nil
}

// A conn is one run's hold on the cluster.
type conn struct {
	*kafkaconn.Hold
	cfg Config
}

var (
	_ driver.Conn       = (*conn)(nil)
	_ driver.Backlogger = (*conn)(nil)
	_ driver.Producer   = (*kafkaconn.Producer)(nil)
	_ driver.Producer   = (*transactor)(nil)
	_ driver.Consumer   = (*consumer)(nil)
)
