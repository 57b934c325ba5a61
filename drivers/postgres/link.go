package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// Time limits. openLimit limits connecting over all servers, dialLimit to one: a server starts a
// process per connection, which takes a while on a busy host.
const (
	openLimit  = 15 * time.Second
	dialLimit  = 5 * time.Second
	closeLimit = 2 * time.Second
	endLimit   = 5 * time.Second // for the last settlements
)

// A link is one connection. One goroutine at a time uses it; any goroutine may call kill.
type link struct {
	*pgconn.PgConn
	sockets sockets.Set // one for messages, and occasionally another to request a cancellation

	// Set by the server's notices, on the goroutine that uses the link.
	notified bool // a notification arrived
	doubtful bool // the server gave up waiting for a standby, and committed
}

// connect connects to one of addresses within ctx and openLimit, and runs the statements of begin.
// If there is no server, the error is ErrUnreachable; refused credentials are ErrAuth.
func (c *Config) connect(ctx context.Context, run driver.Run, name string, addresses []string, begin ...string) (*link, error) {
	l := &link{}
	at, err := servers(addresses)
	if err != nil {
		return nil, err
	}
	pc, err := c.client(at, "weir "+run.ID+" "+name)
	if err != nil {
		return nil, err
	}
	pc.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		return l.sockets.Dial(ctx, network, address, dialLimit)
	}
	pc.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { l.notified = true }
	pc.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		// "canceling wait for synchronous replication ...": only a warning.
		l.doubtful = l.doubtful || n.Routine == "SyncRepWaitForLSN"
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if l.PgConn, err = pgconn.ConnectConfig(ctx, pc); err != nil {
		l.kill()
		return nil, fmt.Errorf("connecting to %s: %w", at, refused(err))
	}
	for _, sql := range begin {
		if _, err := l.Exec(ctx, sql).ReadAll(); err != nil {
			l.kill()
			return nil, fmt.Errorf("connecting to %s: %w", at, cause(err))
		}
	}
	return l, nil
}

// refused is cause for an error of connecting.
func refused(err error) error {
	var ce *pgconn.ConnectError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return cause(pg) // without the client's list of attempts
	case errors.As(err, &ce):
		err = ce.Unwrap()
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, words.Plain(err))
}

// close closes the connection properly, within ctx and 2 s.
func (l *link) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	_ = l.Close(ctx) // nothing is outstanding, so the server loses nothing
	l.kill()
}

// kill closes the socket, which unblocks pending reads and writes, with an error.
func (l *link) kill() { l.sockets.Refuse() }

// A fuse kills a connection that is silent for too long.
type fuse struct {
	mu    sync.Mutex
	limit time.Duration
	timer *time.Timer
	lit   bool
	blown bool
}

func newFuse(limit time.Duration, kill func()) *fuse {
	f := &fuse{limit: limit}
	f.timer = time.AfterFunc(time.Hour, func() {
		f.mu.Lock()
		blow := f.lit
		f.blown = f.blown || blow
		f.mu.Unlock()
		if blow {
			kill()
		}
	})
	f.timer.Stop()
	return f
}

// light starts or restarts the timeout.
func (f *fuse) light() {
	f.mu.Lock()
	f.lit = true
	f.timer.Reset(f.limit)
	f.mu.Unlock()
}

// out stops the timeout, and reports whether it had fired.
func (f *fuse) out() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lit = false
	f.timer.Stop()
	blown := f.blown
	f.blown = false
	return blown
}

// shorten sets the timeout, also for a call in progress.
func (f *fuse) shorten(limit time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = min(limit, f.limit)
	if f.lit {
		f.timer.Reset(f.limit)
	}
}

// states maps SQLSTATE to the contract's errors
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
var states = map[string]error{
	"28000": driver.ErrAuth, "28P01": driver.ErrAuth, // invalid authorization, invalid password
	"57P03": driver.ErrBlocked,                                                                        // cannot connect now
	"57P01": driver.ErrDisconnected, "57P02": driver.ErrDisconnected, "57P05": driver.ErrDisconnected, // shutdown, crash, idle
	"08006": driver.ErrDisconnected, "08P01": driver.ErrDisconnected, // connection failure
	"53100": driver.ErrBlocked, "53200": driver.ErrBlocked, // disk full, out of memory
	"53300": driver.ErrOverloaded, "53400": driver.ErrOverloaded, // too many connections, limit exceeded
	"54000": driver.ErrTooLarge,                            // program limit exceeded
	"55P03": driver.ErrTimeout, "57014": driver.ErrTimeout, // lock not available, query canceled
	"25006": driver.ErrUnsupported, "42P01": driver.ErrUnsupported, // read only: a standby; no table
	"42501": driver.ErrUnsupported, "3D000": driver.ErrUnsupported, "3F000": driver.ErrUnsupported, // no privilege, no database, no schema
}

// words maps the client's errors, joined into one line. Errors not sent by the server are
// connection errors.
var words = failure.Map{Hide: regexp.MustCompile("\n"), With: "; ", Is: func(err error) error {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return states[pg.Code]
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return driver.ErrTimeout
	}
	return driver.ErrDisconnected
}}

// cause maps a client error to the contract's errors.
func cause(err error) error { return words.Cause(err) }

// unanswered returns err as ErrUnreachable if it is not an answer from the server.
func unanswered(err error) error {
	if errors.Is(err, driver.ErrTimeout) || errors.Is(err, driver.ErrDisconnected) {
		return fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
	}
	return err
}
