// Package kafka drives Apache Kafka, and what speaks its protocol. What the words of
// weir mean here, and what a confirmation promises, the page says (page.md). This is
// what it leaves out.
//
// # Topics and groups
//
// A destination is the topic weir.<run>.<destination>, a subscription a consumer group of
// the classic protocol. Where the group begins is committed for it when its first consumer
// is opened. Each producer and each consumer is a client of its own, with connections of
// its own to each broker. Conn.Close removes the groups that weir made. A durable
// subscription is the group of that very name: it is made where it is missing, and stays.
// A name is taken where the group has members of another type, of another protocol or of
// other topics.
//
// An offset to begin at is the same in each partition; offsets of a topic made by weir
// count from 0. The time of a message is what its producer said, or with
// message.timestamp.type: LogAppendTime the broker's clock, in whole milliseconds: a time
// to begin at is rounded down to them.
//
// # What a confirmation means
//
// A message completes when the client's request for its batch was answered, and with
// acks 0 when it was written to the socket. acks all waits for the replicas that are in
// sync, which may be fewer than there are: only min.insync.replicas are promised. A broker
// appends to its log by a write to the operating system, and syncs when flush.messages are
// together, which is never unless set (UnifiedLog.append). A follower does so too, before
// it asks for what comes next, which is how the leader knows that it has it.
//
// # Transactions
//
// A producer sends in transactions, one at a time, under the transactional.id
// weir.<run>.producer.<index>: all that waits when the one before has ended, up to the
// option transaction. Where one message fails the transaction is aborted, and all of its
// messages fail. Where a commit fails without an answer they fail with ErrTimeout or
// ErrDisconnected, and may have been committed. The client then has the brokers abort what
// may still be open. A commit is decided in the brokers' log of transactions
// (__transaction_state), so that its guarantee counts where it is less than the topic's.
// What a consumer settles is not a part of a transaction. Each transaction leaves a marker
// in every partition that it wrote to, which has an offset of its own; the positions
// committed are behind them.
//
// # Settling
//
// Kafka knows no acknowledgement of a message, only a position in a partition that a group
// commits. Deliveries do not wait for commits, but, unless they are auto, are at most
// prefetch messages ahead of them. When partitions change hands what was accepted is
// committed first. A refused message cannot be had again by itself: nothing behind it is
// committed in its partition until the group begins there again. Nothing is ever flagged
// as redelivered. Without idempotence and with more than one of requests-in-flight a retry
// may overtake.
//
// # What the client does behind one's back
//
// franz-go's own default of linger is 10 ms; it is 0 here, as a wait of that kind is what
// one wants to measure and not to have. Its default compression is snappy; here it is
// none. A message beyond its delivery-timeout fails with ErrTimeout and may have been
// stored. Payloads are copied into the request under the lock of their batch
// (produceRequest.AppendTo in kgo/sink.go), which failing a batch takes too, so that no
// message is ever abandoned to it. Publishing into a full client would wait: it has room
// for more than the in-flight limit, and TryProduce is used, which does not wait. The
// record of a message is kept in its Slot: from Publish to Complete nothing is allocated
// a message, the client's batches and requests are 92 B of it (BenchmarkPublish).
//
// A consumer's client fetches ahead from when Run begins; what is fetched and not yet
// polled when Run ends comes again to whichever consumer is next. It has one fetch under
// way at each broker, which is answered when one of its partitions has something or
// fetch-max-wait is over (500 ms, as the vendor's client has it; its own default is 5 s):
// so long a partition may wait that it was given meanwhile. The group meets when Run
// begins; Ready waits until it has dealt out every partition, not for the members still to
// come.
//
// A topic takes 8 MiB a message here (max.message.bytes).
package kafka

import (
	"context"
	_ "embed" // embeds the page
	"errors"
	"fmt"
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
		Name:    "kafka",
		Title:   "Apache Kafka",
		Summary: "Partitioned logs kept in files, replicated, consumed by groups that commit their positions.",
		Client:  "github.com/twmb/franz-go",
		Capabilities: driver.Capabilities{
			Leaders:         true,
			Consume:         true,
			Partitions:      true,
			Replicas:        true,
			Keys:            true,
			Subscriptions:   true,
			Competing:       true,
			SettleConfirmed: true,
			Resumes:         true,
			Replays:         []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Retains:         true, // a group starts at the oldest message, or at the end of the log when it was opened
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

// Config holds the driver's settings.
type Config struct {
	kafkaconn.Common
	Transaction int           `option:"transaction" min:"0" help:"Most messages of one transaction; consumers then read what is committed. 0: no transactions."`
	AutoCommit  time.Duration `option:"auto-commit-interval" min:"100ms" max:"1h" help:"Settle auto: how often the client commits."`
}

func newConfig() *Config {
	return &Config{Common: kafkaconn.Defaults(), AutoCommit: 5 * time.Second} // the client's default
}

// Validate reports every fault that option bounds do not catch, joined.
func (c *Config) Validate() error {
	err := c.Common.Validate()
	if c.Transaction > 0 && !c.Idempotent() {
		err = errors.Join(err, &driver.OptionError{Name: "transaction", Err: errors.New("needs idempotence, which needs acks: all (0)")})
	}
	return err
}

// Open connects, within ctx and 4 s, and checks that each broker is reachable at its advertised
// address.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	k := &conn{cfg: *c}
	var err error
	if k.Hold, err = kafkaconn.Open(ctx, &k.cfg.Common, run); err != nil {
		return nil, err
	}
	if c.Transaction > 0 {
		if err := k.Link.TransactionLog(ctx, "weir."+kafkaconn.Token(run.ID)); err != nil {
			k.Link.Kill()
			return nil, fmt.Errorf("transactions: %w", err)
		}
	}
	return k, nil
}

// A conn is one run's connection to the cluster.
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
