// Package postgres drives PostgreSQL used as a queue: one table of jobs, taken with FOR UPDATE SKIP
// LOCKED. page.md says what weir's terms mean here. This comment adds details.
//
// The table follows the article "Evaluating persistent, replicated message queues" of SoftwareMill
// (https://softwaremill.com/mqperf/). The article has an id of random UUIDs, texts, and no index; it
// takes rows by two statements of one transaction, which are one statement here. Of an existing
// table the columns key (bytea) and attempts (integer) are used where they are there.
//
// synchronous_commit is set on each connection. With off the log is in memory (xlog.c,
// XLogSetAsyncXactLSN). A majority counts the primary. Whether a standby syncs it says itself. A
// table that is UNLOGGED counts as off. The server gives up the wait for its standbys when somebody
// cancels it (pg_cancel_backend) and only warns; then the message fails here.
//
// Settlements that a lost connection left open are made again on the next. Order is that of
// next_delivery, which each INSERT takes from the server's clock: a consumer sees each producer's
// messages as they were sent, as long as no connection is lost and that clock is not set back.
//
// # How the client behaves
//
// pgx's pgconn is used without its type system: payloads go as binary bytea. A producer sends what
// has gathered as a pipeline, one round trip, and reads the answers; meanwhile the next gathers. A
// batch is never divided, and a transaction fails as a whole. While there is no connection messages
// are refused. Those in flight when it breaks may have been stored. The client copies the payload
// before it writes, so that none is abandoned to it.
//
// Consumers plan their statements without sequential scans, bitmaps, hash and merge joins (SET
// enable_...): a plan made while the table was empty would be kept.
package postgres

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/known"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "postgres",
		Title:   "PostgreSQL",
		Summary: "A table of jobs as a queue, taken with FOR UPDATE SKIP LOCKED.",
		Client:  "github.com/jackc/pgx/v5",
		Capabilities: driver.Capabilities{
			Leaders:         true,
			Consume:         true,
			Replicas:        true,
			Keys:            true,
			Batch:           true,
			Competing:       true,
			Nack:            true,
			SettleConfirmed: true,
			Retains:         true, // a row waits for any consumer
			Settle:          []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto},
			Guarantees:      []driver.Guarantee{driver.Received, driver.Replicated, driver.Persisted},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.PerDestination,
		},
		New:  func() driver.Config { return newConfig() },
		Page: page,
	}
}

// oldest is the first version that the driver supports: it has identity columns.
const oldest = 100000

// Open connects, within ctx and 15 s.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	k := &conn{cfg: *c, run: run}
	rows, err := k.ask(ctx, `SELECT current_setting('server_version_num'), current_setting('server_version'), pg_is_in_recovery()`)
	if err == nil {
		n, _ := strconv.Atoi(rows[0][0]) // if it is not a number, it is not a supported PostgreSQL
		switch {
		case n < oldest:
			err = fmt.Errorf("the server is PostgreSQL %s (10 or later): %w", rows[0][1], driver.ErrUnsupported)
		case rows[0][2] == "t":
			at, _ := servers(c.Address) // checked by Validate
			err = fmt.Errorf("the server at %s is a standby (the primary's address): %w", at, driver.ErrUnsupported)
		}
	}
	if err != nil {
		_ = k.Close(ctx)
		return nil, err
	}
	return k, nil
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg Config
	run driver.Run

	asking sync.Mutex // held while the control connection is in use
	link   *link      // control connection; nil before the first use and after it broke

	tables known.Table[string, table] // by destination: declared or looked up
}

// control calls f with the control connection, which it reopens if it broke, and maps f's error to
// the contract's. It repeats f once if the connection turns out to be broken.
func (c *conn) control(ctx context.Context, f func(l *link) error) error {
	c.asking.Lock()
	defer c.asking.Unlock()
	for {
		used := c.link != nil
		if !used {
			l, err := c.cfg.connect(ctx, c.run, "control", c.cfg.Address)
			if err != nil {
				return err
			}
			c.link = l
		}
		err := f(c.link)
		if !c.link.IsClosed() {
			return cause(err)
		}
		c.link.kill()
		c.link = nil
		if !used || ctx.Err() != nil {
			return cause(err)
		}
	}
}

// ask returns the rows of a statement on the control connection, as text.
func (c *conn) ask(ctx context.Context, sql string, args ...string) (rows [][]string, err error) {
	err = c.control(ctx, func(l *link) error {
		rows, err = query(ctx, l, sql, args...)
		return err
	})
	return rows, err
}

// Close ends the control connection.
func (c *conn) Close(ctx context.Context) error {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.link != nil {
		c.link.close(ctx)
		c.link = nil
	}
	return nil
}
