package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// identifierBytes is the maximum length of a name in the server
// (https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS).
const identifierBytes = 63

// identifier returns a name for prefix and name that the server does not truncate: a long name ends
// in a digest of itself. room bytes are left for a suffix.
func identifier(prefix, name string, room int) string {
	s := prefix + "-" + name
	if len(s)+room <= identifierBytes {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	end := "-" + hex.EncodeToString(sum[:8])
	cut := identifierBytes - room - len(end)
	return strings.ToValidUTF8(s[:cut], "") + end
}

// quote returns a name as a quoted SQL identifier.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// A table holds a destination's messages.
type table struct {
	name     string // quoted for SQL
	channel  string // for its notifications
	key      bool   // it has the column key
	attempts bool   // it has the column attempts
	makeID   bool   // id is a unique uuid
}

// indexEnding is the suffix of the index of one of weir's own tables.
const indexEnding = "-due"

// own returns the table that weir creates for a destination.
func own(run driver.Run, destination string) table {
	name := identifier("weir-"+run.ID, destination, len(indexEnding))
	return table{name: quote(name), channel: name, key: true, attempts: true}
}

// create returns the statement that creates one of weir's own tables.
func (t table) create() string {
	index := quote(t.channel + indexEnding)
	return `CREATE TABLE IF NOT EXISTS ` + t.name + ` (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key bytea,
	content bytea NOT NULL,
	next_delivery timestamptz NOT NULL,
	attempts integer NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS ` + index + ` ON ` + t.name + ` (next_delivery, id)`
}

// insert adds a row with $1 as its content and, if that column exists, $2 as its key.
// clock_timestamp, instead of now, preserves the order of a transaction's rows.
func (t table) insert() string {
	columns, values := "content, next_delivery", "$1, clock_timestamp()"
	if t.key {
		columns, values = columns+", key", values+", $2"
	}
	if t.makeID {
		columns, values = columns+", id", values+", gen_random_uuid()"
	}
	return `INSERT INTO ` + t.name + ` (` + columns + `) VALUES (` + values + `)`
}

// take takes up to n rows: it hides them for a while, or removes them with forget, and returns them
// in insertion order. The columns are id, content, key, attempts.
func (t table) take(n int, hide time.Duration, forget bool) string {
	key, attempts, count := "NULL::bytea", "0", ""
	if t.key {
		key = "t.key"
	}
	if t.attempts {
		attempts, count = "t.attempts", ", attempts = attempts + 1"
	}
	returning := ` RETURNING t.id, t.content, ` + key + ` AS key, ` + attempts + ` AS attempts, job.next_delivery AS due`
	act := `UPDATE ` + t.name + ` t SET next_delivery = now() + interval '` + strconv.FormatInt(hide.Microseconds(), 10) +
		` microseconds'` + count + ` FROM job WHERE t.id = job.id` + returning
	if forget {
		act = `DELETE FROM ` + t.name + ` t USING job WHERE t.id = job.id` + returning
	}
	return `WITH job AS (SELECT id, next_delivery FROM ` + t.name + ` WHERE next_delivery <= now()` +
		` ORDER BY next_delivery, id LIMIT ` + strconv.Itoa(n) + ` FOR UPDATE SKIP LOCKED), taken AS (` + act +
		`) SELECT id, content, key, attempts FROM taken ORDER BY due, id`
}

// settleOne removes the row with id $1; settleAll those with ids $1; giveBack makes the latter
// available again.
func (t table) settleOne() string { return `DELETE FROM ` + t.name + ` WHERE id = $1` }
func (t table) settleAll() string { return `DELETE FROM ` + t.name + ` WHERE id = ANY($1)` }
func (t table) giveBack() string {
	return `UPDATE ` + t.name + ` SET next_delivery = now() WHERE id = ANY($1)`
}

// find looks up a user's table by its literal name, with or without a schema. It must have the
// columns id, content and next_delivery.
func (c *conn) find(ctx context.Context, destination string) (table, error) {
	rows, err := c.ask(ctx, `SELECT c.oid::text, quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND (c.relname = $1 AND pg_table_is_visible(c.oid) OR n.nspname || '.' || c.relname = $1)
ORDER BY c.relname = $1 DESC LIMIT 1`, destination)
	if err != nil {
		return table{}, err
	}
	if len(rows) == 0 {
		return table{}, fmt.Errorf("there is no table of this name (a table of the database, with or without its schema): %w", driver.ErrUnsupported)
	}
	t := table{name: rows[0][1], channel: identifier("weir", rows[0][1], 0)}
	columns, err := c.ask(ctx, `SELECT attname, format_type(atttypid, atttypmod), atthasdef OR attidentity <> ''
FROM pg_attribute WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped`, rows[0][0])
	if err != nil {
		return table{}, err
	}
	types := map[string]string{}
	for _, c := range columns {
		types[c[0]] = c[1]
		if c[0] == "id" {
			t.makeID = c[1] == "uuid" && c[2] == "f"
		}
	}
	for _, need := range []struct{ column, kind string }{{"id", ""}, {"content", "bytea"}, {"next_delivery", "timestamp with time zone"}} {
		have, ok := types[need.column]
		if !ok || need.kind != "" && have != need.kind {
			return table{}, fmt.Errorf("table %s is not a queue: column %s is %s (id, content bytea, next_delivery timestamptz; key bytea, attempts integer where there): %w",
				t.name, need.column, orMissing(have), driver.ErrUnsupported)
		}
	}
	t.key, t.attempts = types["key"] == "bytea", types["attempts"] == "integer"
	return t, nil
}

func orMissing(s string) string {
	if s == "" {
		return "missing"
	}
	return s
}

// query returns the rows of a statement, as text.
func query(ctx context.Context, l *link, sql string, args ...string) ([][]string, error) {
	params := make([][]byte, len(args))
	for i, a := range args {
		params[i] = []byte(a)
	}
	res := l.ExecParams(ctx, sql, params, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, res.Err
	}
	rows := make([][]string, len(res.Rows))
	for i, r := range res.Rows {
		for _, v := range r {
			rows[i] = append(rows[i], string(v))
		}
	}
	return rows, nil
}

func (c *conn) table(ctx context.Context, destination string) (table, error) {
	if strings.ContainsRune(destination, 0) {
		return table{}, fmt.Errorf("destination %q has no name that a table may have: %w", destination, driver.ErrUnsupported)
	}
	if !c.run.Existing {
		return own(c.run, destination), nil
	}
	return c.tables.Of(destination, func() (table, error) { return c.find(ctx, destination) })
}

// Declare creates the tables. A destination with several replicas is the same table, and needs that
// many servers.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	replicas := 1
	for _, d := range ds {
		replicas = max(replicas, d.Replicas)
	}
	if err := c.await(ctx, replicas); err != nil {
		return err
	}
	return each.InTurn(ds, func(d driver.Destination) error {
		t, err := c.table(ctx, d.Name)
		if err == nil {
			err = c.control(ctx, func(l *link) error { return createTable(ctx, l, t) })
		}
		if err == nil {
			c.tables.Note(d.Name, t)
		}
		return err
	})
}

// createTimes limits the attempts to create a table that somebody else is creating concurrently,
// which IF NOT EXISTS does not handle.
const createTimes = 3

func createTable(ctx context.Context, l *link, t table) error {
	for try := 1; ; try++ {
		_, err := l.Exec(ctx, t.create()).ReadAll()
		var pg *pgconn.PgError
		if err == nil || try == createTimes || !errors.As(err, &pg) || pg.Code != "23505" && pg.Code != "42P07" {
			return err
		}
	}
}

// Waiting for standbys, which connect some time after the primary has started.
const (
	standbyLimit = 15 * time.Second
	standbyPause = 100 * time.Millisecond
)

// await waits until there are that many servers.
func (c *conn) await(ctx context.Context, replicas int) error {
	if replicas <= 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, standbyLimit)
	defer cancel()
	for {
		there, err := c.standbys(ctx)
		n := 1 + len(there)
		if err == nil && n >= replicas {
			return nil
		}
		expected := n > 1 || err != nil
		if !expected {
			var rows [][]string
			rows, err = c.ask(ctx, `SELECT current_setting('synchronous_standby_names')`)
			expected = err != nil || rows[0][0] != ""
		}
		if !expected || !retry.Pause(ctx, standbyPause) {
			return errors.Join(fmt.Errorf("%d replicas, and %d servers (the primary and the standbys that stream from it): %w", replicas, n, driver.ErrUnsupported), err)
		}
	}
}

// Delete removes the tables.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		_, err := c.ask(ctx, `DROP TABLE IF EXISTS `+own(c.run, d.Name).name)
		if err == nil {
			c.tables.Forget(d.Name)
		}
		return err
	})
}

// Backlog implements driver.Backlogger: a row exists until it is settled. With settle auto it is
// removed when taken.
func (c *conn) Backlog(ctx context.Context, _ string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (uint64, error) {
		t, err := c.table(ctx, d)
		var rows [][]string
		if err == nil {
			rows, err = c.ask(ctx, `SELECT count(*) FROM `+t.name)
		}
		if err != nil {
			return 0, unanswered(err)
		}
		return strconv.ParseUint(rows[0][0], 10, 64)
	})
}
