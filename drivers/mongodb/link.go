package mongodb

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// Time limits: for a call to find a server that accepts it, and for calls in progress when a client
// is closed.
const (
	selectLimit = 3 * time.Second
	endLimit    = time.Second
)

// A link is a client with its own connections, up to a limit.
type link struct {
	client *mongo.Client
	db     *mongo.Database
}

// connect creates a client. It sends nothing.
func (c *Config) connect(calls int) (*link, error) {
	at, err := servers.All("address", c.Address)
	if err != nil {
		return nil, err
	}
	n, err := c.members()
	if err != nil {
		return nil, err
	}
	concern := &writeconcern.WriteConcern{W: n, Journal: &c.Journal}
	if n == 0 {
		concern.W = writeconcern.WCMajority
	}
	o := options.Client().SetHosts(at.HostPorts()).SetAppName("weir").
		SetRetryWrites(false).SetRetryReads(false).SetWriteConcern(concern).
		SetMaxPoolSize(uint64(calls)).SetMaxConnecting(uint64(calls)).
		SetConnectTimeout(selectLimit).SetServerSelectionTimeout(selectLimit)
	if c.User != "" {
		o.SetAuth(options.Credential{Username: c.User, Password: c.Password.Reveal(), AuthSource: c.AuthDatabase})
	}
	if c.TLS != (TLS{}) {
		t, err := c.TLS.Config() // the client sets each server's name
		if err != nil {
			return nil, err
		}
		o.SetTLSConfig(t)
	}
	client, err := mongo.Connect(o)
	if err != nil {
		return nil, fmt.Errorf("the client's settings: %w: %w", driver.ErrUnsupported, err)
	}
	return &link{client: client, db: client.Database(c.Database)}, nil
}

// close closes the connections; calls in progress have one second.
func (l *link) close() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_ = l.client.Disconnect(ctx) // waits for calls, and then aborts them
}

// again calls f, and repeats it once if its connection turns out to be broken.
func again(f func() error) error {
	err := f()
	if err != nil && mongo.IsNetworkError(err) && !mongo.IsTimeout(err) {
		err = f()
	}
	return err
}

// admin sends a command to the primary.
func (l *link) admin(ctx context.Context, question string, answer any) error {
	return l.client.Database("admin").RunCommand(ctx, bson.D{{Key: question, Value: 1}}).Decode(answer)
}

// A clock holds the server's time as last reported. It never goes back.
type clock struct{ last atomic.Int64 }

// now returns a time that is not ahead of the server's clock.
func (c *clock) now() bson.DateTime { return bson.DateTime(c.last.Load()) }

// later returns the earliest time that the server's clock can show when d has passed.
func (c *clock) later(d time.Duration) bson.DateTime {
	return c.now() + bson.DateTime((d + clockEvery).Milliseconds())
}

// ask reads the server's clock, within ctx and 3 s. It does not retry: a consumer reports failures.
func (l *link) ask(ctx context.Context, c *clock) error {
	ctx, cancel := context.WithTimeout(ctx, selectLimit)
	defer cancel()
	var reply struct {
		LocalTime bson.DateTime `bson:"localTime"`
	}
	if err := l.admin(ctx, "hello", &reply); err != nil {
		return err
	}
	if reply.LocalTime == 0 {
		return fmt.Errorf("the server's hello tells no localTime: %w", driver.ErrUnsupported)
	}
	for {
		last := c.last.Load()
		if int64(reply.LocalTime) <= last || c.last.CompareAndSwap(last, int64(reply.LocalTime)) {
			return nil
		}
	}
}

// words maps the errors of the client and of the server. It hides connection numbers, the client's
// knowledge of each server, and times.
var (
	words  = failure.Map{Is: is, Hide: hidden}
	hidden = regexp.MustCompile(`(?s)connection\([^)]*\) ?|, current topology: .*| \(-?\d+ ms\).*`)
)

// is maps an error to the contract's error; nil: none.
func is(err error) error {
	var none topology.ServerSelectionError
	var credentials *auth.Error
	var server mongo.ServerError
	switch {
	case errors.As(err, &credentials):
		return driver.ErrAuth
	case errors.As(err, &none):
		for _, s := range none.Desc.Servers {
			if s.LastError != nil {
				return fmt.Errorf("%w: no server takes calls: %w", driver.ErrDisconnected, failure.Map{Hide: hidden}.Plain(s.LastError))
			}
		}
		return driver.ErrDisconnected
	case errors.As(err, &server):
		for _, code := range server.ErrorCodes() {
			if is := codes[code]; is != nil {
				return is
			}
		}
	case strings.Contains(err.Error(), "document is too large"):
		return driver.ErrTooLarge
	case errors.Is(err, mongo.ErrClientDisconnected):
		return driver.ErrClosed
	}
	switch {
	case mongo.IsTimeout(err):
		return driver.ErrTimeout
	case mongo.IsNetworkError(err):
		return driver.ErrDisconnected
	}
	return nil
}

// codes maps the server's error codes that are more specific than "other"
// (https://www.mongodb.com/docs/manual/reference/error-codes/).
var codes = map[int]error{
	13: driver.ErrAuth, 18: driver.ErrAuth, // unauthorized, authentication failed
	6: driver.ErrDisconnected, 7: driver.ErrDisconnected, 9001: driver.ErrDisconnected, // a host, a socket
	91: driver.ErrDisconnected, 189: driver.ErrDisconnected, 10107: driver.ErrDisconnected, // shutdown, no primary
	11600: driver.ErrDisconnected, 11602: driver.ErrDisconnected, 13435: driver.ErrDisconnected, 13436: driver.ErrDisconnected,
	50: driver.ErrTimeout, 64: driver.ErrTimeout, 89: driver.ErrTimeout, 202: driver.ErrTimeout, 262: driver.ErrTimeout, // a limit, write concern
	146: driver.ErrBlocked, 462: driver.ErrOverloaded, 14031: driver.ErrBlocked, // memory, rate, disk
	10334: driver.ErrTooLarge,
	26:    driver.ErrUnsupported, 59: driver.ErrUnsupported, 73: driver.ErrUnsupported, // no collection, no command, a name
	79: driver.ErrUnsupported, 100: driver.ErrUnsupported, 238: driver.ErrUnsupported, // unavailable write concern, unknown command
}
