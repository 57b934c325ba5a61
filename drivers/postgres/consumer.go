package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A consumer takes rows on its own connection.
type consumer struct {
	conn   *conn
	name   string
	spec   driver.ConsumerSpec
	tables []table
	fetch  int
	link   *taking // nil after it broke
}

// Consumer connects. A message is one row, so a destination has only one subscription.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{
		conn: c, spec: spec, fetch: c.cfg.Fetch,
		name: spec.Name(),
	}
	if spec.Prefetch > 0 {
		x.fetch = min(x.fetch, spec.Prefetch)
	}
	for _, d := range spec.Destinations {
		t, err := c.table(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.tables = append(x.tables, t)
	}
	var err error
	if x.link, err = x.open(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// A taking is a consumer's connection with its statements.
type taking struct {
	*link
	tables []statements
}

// statements holds the statements for one table.
type statements struct {
	take     *pgconn.StatementDescription
	settle   *pgconn.StatementDescription // of one row, or of several
	giveBack *pgconn.StatementDescription
}

// planning keeps the server from plans that suit only an empty table.
const planning = `SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off`

// open connects, prepares the statements and listens.
func (x *consumer) open(ctx context.Context) (*taking, error) {
	cfg := &x.conn.cfg
	begin := []string{planning}
	for _, t := range x.tables {
		if cfg.Notify {
			begin = append(begin, `LISTEN `+quote(t.channel))
		}
	}
	l, err := cfg.connect(ctx, x.conn.run, x.name, cfg.Address, begin...)
	if err != nil {
		return nil, err
	}
	k := &taking{link: l, tables: make([]statements, len(x.tables))}
	for i, t := range x.tables {
		settle := t.settleAll()
		if x.spec.Settle == driver.SettleEach {
			settle = t.settleOne()
		}
		for _, s := range []struct {
			name, sql string
			as        **pgconn.StatementDescription
		}{
			{"take", t.take(x.fetch, cfg.VisibilityTimeout, x.spec.Settle == driver.SettleAuto), &k.tables[i].take},
			{"settle", settle, &k.tables[i].settle},
			{"give", t.giveBack(), &k.tables[i].giveBack},
		} {
			if *s.as, err = l.Prepare(ctx, s.name+strconv.Itoa(i), s.sql, nil); err != nil {
				l.kill()
				return nil, fmt.Errorf("table %s: %w", t.name, cause(err))
			}
		}
	}
	return k, nil
}

func (x *consumer) Close(ctx context.Context) error {
	if x.link != nil {
		x.link.close(ctx)
		x.link = nil
	}
	return nil
}

// A running is one call of Run.
type running struct {
	*consumer
	sink    driver.Sink
	fuse    *fuse
	current atomic.Pointer[taking] // what the fuse kills
	timer   *time.Timer
	taken   taken
}

// Run implements driver.Consumer. It takes rows from the tables in turn, and settles them with the
// next statement that it sends.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	r := &running{consumer: x, sink: sink, timer: time.NewTimer(time.Hour)}
	defer r.timer.Stop()
	r.current.Store(x.link)
	r.fuse = newFuse(x.conn.cfg.Timeout, func() { r.current.Load().kill() })
	defer context.AfterFunc(ctx, func() { r.fuse.shorten(endLimit) })()
	sink.Ready()
	empty := 0
	for t := 0; ctx.Err() == nil; t = (t + 1) % len(x.tables) {
		if empty == 0 {
			x.link.notified = false // later notifications may concern a table already checked
		}
		failed, err := r.exchange(t)
		switch {
		case err != nil:
			empty = 0
			if err := r.again(ctx, err); err != nil {
				r.unsettled(err)
				return fmt.Errorf("subscription lost: %w", err)
			}
		case failure.Hopeless(failed):
			return fmt.Errorf("subscription lost: %w", failed)
		case failed != nil:
			sink.Fault(fmt.Errorf("nothing taken: %w", failed))
			retry.Pause(ctx, x.conn.cfg.ReconnectWait)
		case len(r.taken.ds) > 0:
			empty = 0
			err := sink.Deliver(r.taken.ds)
			r.taken.accepted, r.taken.open = err == nil, x.spec.Settle != driver.SettleAuto
		default:
			if empty++; empty >= len(x.tables) {
				empty = 0
				r.wait(ctx)
			}
		}
	}
	if r.taken.open && x.link != nil {
		if _, err := r.exchange(nothing); err != nil {
			r.unsettled(err)
		}
	}
	r.unsettled(driver.ErrDisconnected)
	return nil
}

// again reconnects, without a time limit. It returns nil on success or when ctx ended, and
// otherwise why it is hopeless.
func (r *running) again(ctx context.Context, why error) error {
	r.link.kill()
	r.link = nil
	r.sink.Fault(why)
	r.conn.run.Logger().Warn("connection lost", "connection", r.name, "error", why)
	for retry.Pause(ctx, r.conn.cfg.ReconnectWait) {
		k, err := r.open(ctx)
		switch {
		case err == nil:
			r.link = k
			r.current.Store(k)
			r.conn.run.For(&r.spec).Tell(driver.Reconnect, r.name)
			return nil
		case failure.Hopeless(err):
			return err
		}
		r.conn.run.Logger().Debug("not connected", "connection", r.name, "error", err)
	}
	return nil
}

// wait waits for the poll interval, a notification or ctx.
func (r *running) wait(ctx context.Context) {
	switch {
	case r.link.notified: // since the last check
	case r.conn.cfg.Notify:
		ctx, cancel := context.WithTimeout(ctx, r.conn.cfg.PollInterval)
		defer cancel()
		_ = r.link.WaitForNotification(ctx) // the next user notices a broken connection
	default:
		r.timer.Reset(r.conn.cfg.PollInterval)
		select {
		case <-r.timer.C:
		case <-ctx.Done():
		}
	}
}
