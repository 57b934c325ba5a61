// Package kafka drives Apache Kafka, and servers that speak its protocol. page.md says what
// weir's terms mean here and what a confirmation promises. This comment adds details.
//
// # Groups
//
// When the first consumer opens, the driver commits the group's start offsets. Conn.Close removes
// the groups that weir created. The driver refuses a durable group whose members have another type,
// protocol or set of topics. A start offset is the same in each partition. The time of a message is
// what its producer set, or the broker's clock with message.timestamp.type: LogAppendTime. Both are
// in whole milliseconds, so a start time is rounded down.
//
// Before a partition moves to another consumer, the position of the accepted messages is committed.
// Kafka cannot redeliver one refused message: nothing behind it is committed in its partition until
// the group starts there again. No message is flagged as redelivered. Without idempotence, and with
// more than one of requests-in-flight, a retry may overtake other messages.
//
// # What a confirmation means
//
// acks all waits for the replicas in sync, of which only min.insync.replicas are certain. A broker
// appends to its log with a write to the operating system, and syncs after flush.messages messages
// (UnifiedLog.append). A follower does the same before its next fetch, by which the leader knows
// that it has the messages before.
//
// # Transactions
//
// A producer's transactional.id is weir.<run>.producer.<index>. If a message fails, its transaction
// is aborted and all its messages fail. If a commit gets no answer, they fail with ErrTimeout or
// ErrDisconnected although they may have been committed, and the client has the brokers abort what
// is still open. A commit is recorded in the topic __transaction_state. Settlements of consumers are
// not part of a transaction. Each transaction leaves a marker, with an offset of its own, in every
// partition that it wrote to. Committed positions are behind the markers.
//
// # How the client behaves
//
// franz-go lingers 10 ms by default. The driver sets 0, because that wait would be in every
// latency. The client's default compression is snappy; here it is none. The client copies payloads
// into a request under the lock of their batch (produceRequest.AppendTo in kgo/sink.go), and takes
// the same lock to fail a batch, so it never reads a message that has completed. A full client would
// block: it has room for more than the in-flight limit. The record of a message is kept in its Slot,
// so the driver allocates nothing per message; the client's batches and requests take 92 B
// (BenchmarkPublish).
//
// Messages fetched and not polled when Run ends go to the next consumer. The client has one fetch in
// flight at each broker, which returns when one of its partitions has messages or after
// fetch-max-wait (500 ms, as in the vendor's client; franz-go's default is 5 s). A partition
// assigned meanwhile waits as long. Ready waits until every partition is assigned, not for members
// that join later.
//
// Topics that weir creates accept messages of 8 MiB (max.message.bytes).
package kafka

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files, kafkaconn.Recipe())

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
		New:  func() driver.Config { return newConfig() },
		Page: page,
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
