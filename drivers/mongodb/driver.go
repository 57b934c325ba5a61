// Package mongodb drives MongoDB, or a server with its protocol, used as a queue: one collection,
// taken with findAndModify. page.md says what weir's terms mean here. This comment adds details.
//
// The collection follows the article "Evaluating persistent, replicated message queues" of
// SoftwareMill (https://softwaremill.com/mqperf/). Receiving takes, of the documents with a
// next_delivery that is not in the future, the first by (next_delivery, _id), and moves its
// next_delivery on by the visibility timeout. Refusing sets it to now. A connection asks for the
// server's time each second, and a consumer that finds nothing asks before it looks again. So the
// time that weir uses is never ahead of the server's. The visibility timeout is a second longer for
// that.
//
// The client keeps two connections of its own to each server, which ask how the server is.
package mongodb

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/retry"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

// The maximum document size, and a document's size besides payload and key
// (https://www.mongodb.com/docs/manual/reference/limits/).
const (
	documentMost = 16 << 20
	overhead     = 256
	sizeLimit    = "the server's largest document"
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "mongodb",
		Title:   "MongoDB",
		Summary: "A collection as a queue, taken with findAndModify; also for servers with MongoDB's protocol.",
		Client:  "go.mongodb.org/mongo-driver/v2",
		Capabilities: driver.Capabilities{
			Consume:         true,
			Keys:            true,
			Batch:           true,
			Competing:       true,
			Nack:            true,
			SettleConfirmed: true,
			Retains:         true, // a document waits for any consumer
			Settle:          []driver.Settle{driver.SettleEach, driver.SettleAuto},
			Guarantees:      []driver.Guarantee{driver.Received, driver.Replicated, driver.Persisted},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.Unordered, // inserts and takes run concurrently
			MaxPayload:      documentMost - overhead,
		},
		New: func() driver.Config {
			return &Config{
				Address: []string{servers.Like}, Database: "weir", AuthDatabase: "admin",
				W: majority, Journal: true, Atomic: true, Senders: 4, Receivers: 4,
				VisibilityTimeout: 30 * time.Second, PollInterval: 10 * time.Millisecond,
				Timeout: 10 * time.Second, ReconnectWait: 250 * time.Millisecond,
			}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address           []string      `option:"address" help:"Servers of one system, as host:port or mongodb://host:port; of a replica set, some members are enough."`
	Database          string        `option:"database" help:"Name of the database."`
	User              string        `option:"user" help:"User name; none: without authentication."`
	Password          driver.Secret `option:"password" help:"Password of user."`
	AuthDatabase      string        `option:"auth-database" help:"Database that has the user."`
	TLS               TLS           `option:"tls"`
	W                 string        `option:"w" firm:"majority" help:"Write concern: how many members have a write before the server answers; a number, or majority."`
	Journal           bool          `option:"journal" firm:"yes" help:"Write concern: these members have written it to their journal (j)."`
	Atomic            bool          `option:"atomic" help:"The server's findAndModify is atomic. With no, the consumers of one process take one after the other."`
	Senders           int           `option:"senders" min:"1" max:"256" help:"Inserts of one producer at a time."`
	Receivers         int           `option:"receivers" min:"1" max:"256" help:"Messages of one consumer at a time, for each destination: each is taken, handed over and settled by itself."`
	VisibilityTimeout time.Duration `option:"visibility-timeout" min:"1s" max:"12h" help:"After how long a message that was taken and not settled may be taken again."`
	PollInterval      time.Duration `option:"poll-interval" min:"1ms" max:"1m" help:"How long a consumer that found nothing waits before it looks again."`
	Timeout           time.Duration `option:"timeout" min:"1s" max:"5m" help:"Longest time of one call."`
	ReconnectWait     time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause of a consumer after a call that failed. The attempts never end."`
}

// TLS settings; setting any turns TLS on.
type TLS struct {
	On bool `option:"on" help:"Use TLS where no other setting of tls is given."`
	driver.TLSOptions
}

// majority is a value of the option w.
const majority = "majority"

// servers describes valid addresses. In a MongoDB URL, the path names a database, which is an
// option here.
var servers = endpoint.Kind{Schemes: []string{"mongodb"}, Port: "27017", Like: "mongodb://127.0.0.1:27017"}

// members returns the number that w requests; 0: the majority.
func (c *Config) members() (int, error) {
	if c.W == majority {
		return 0, nil
	}
	n, err := strconv.Atoi(c.W)
	if err != nil || n < 1 || n > 50 {
		return 0, &driver.OptionError{Name: "w", Err: fmt.Errorf("%q is not a write concern (majority, or a number from 1 to 50)", c.W)}
	}
	return n, nil
}

// Validate reports every fault that option bounds do not catch, joined.
func (c *Config) Validate() error {
	_, err := servers.All("address", c.Address)
	_, w := c.members()
	faults := driver.Faults{c.TLS.Validate(), err, w}
	if len(c.Address) == 0 {
		faults.Add("address", "is empty (one server or more)")
	}
	for _, t := range []struct{ name, text string }{{"database", c.Database}, {"auth-database", c.AuthDatabase}} {
		if t.text == "" || len(t.text) > 63 || strings.ContainsAny(t.text, "/\\. \"$*<>:|?\x00") {
			faults.Add(t.name, "%q is not a name of a database (1 to 63 bytes, without spaces and any of /\\.\"$*<>:|?)", t.text)
		}
	}
	if (c.User == "") != c.Password.IsZero() {
		faults.Add("user", "user and password go together")
	}
	return faults.Join()
}

// clockEvery is how often a conn asks the server for the time.
const clockEvery = time.Second

// Open connects, within ctx and 3 s.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	x := &conn{cfg: *c, run: run, alone: make(chan struct{}, 1)}
	var err error
	if x.link, err = c.connect(2); err != nil {
		return nil, err
	}
	if err := x.link.ask(ctx, &x.clock); err != nil {
		x.link.close()
		return nil, words.Unreachable(err)
	}
	life, end := context.WithCancel(context.Background())
	x.end = end
	x.asking = retry.Every(clockEvery, func() {
		if err := x.link.ask(life, &x.clock); err != nil {
			run.Logger().Debug("the server does not tell its time", "error", words.Cause(err))
		}
	})
	return x, nil
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg    Config
	run    driver.Run
	link   *link // for requests
	clock  clock
	end    context.CancelFunc // cancels the request in progress
	asking func()             // stops the requests for the time

	alone chan struct{} // holds a token while a consumer takes, without the option atomic
}

func (c *conn) name(destination string) (string, error) {
	if c.run.Existing && (destination == "" || len(destination) > 120 || strings.ContainsAny(destination, "$\x00") || strings.HasPrefix(destination, "system.")) {
		return "", fmt.Errorf("a collection cannot have this name: %w", driver.ErrUnsupported)
	}
	return names.Of(c.run, 120, destination), nil
}

// found returns a destination's collection, which must exist.
func (c *conn) found(ctx context.Context, destination string) (string, error) {
	name, err := c.name(destination)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var there []string
	err = again(func() (err error) {
		there, err = c.link.db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: name}})
		return err
	})
	if err == nil && len(there) == 0 {
		err = fmt.Errorf("there is no collection %s in the database %s: %w", name, c.cfg.Database, driver.ErrUnsupported)
	}
	return name, words.Cause(err)
}

// each calls do for each destination's collection, and names the destination in errors.
func (c *conn) each(ctx context.Context, ds []driver.Destination, do func(ctx context.Context, name string) error) error {
	return each.Of(ds, func(d driver.Destination) error {
		name, err := c.name(d.Name)
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		return words.Cause(again(func() error { return do(limited, name) }))
	})
}

// alreadyThere is the server's error code for an existing collection.
const alreadyThere = 48

// Declare creates the collections with their index.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return c.each(ctx, ds, func(ctx context.Context, name string) error {
		err := c.link.db.CreateCollection(ctx, name)
		if e := (mongo.CommandError{}); err != nil && (!errors.As(err, &e) || e.Code != alreadyThere) {
			return err
		}
		_, err = c.link.db.Collection(name).Indexes().CreateOne(ctx, mongo.IndexModel{Keys: order})
		return err
	})
}

// Delete drops the collections.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return c.each(ctx, ds, func(ctx context.Context, name string) error { return c.link.db.Collection(name).Drop(ctx) })
}

// Backlog implements driver.Backlogger: existing documents, taken or not.
func (c *conn) Backlog(ctx context.Context, _ string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (uint64, error) {
		name, err := c.name(d)
		if err != nil {
			return 0, err
		}
		var n int64
		err = again(func() (err error) {
			n, err = c.link.db.Collection(name).EstimatedDocumentCount(ctx)
			return err
		})
		return uint64(n), words.Unreachable(err)
	})
}

// Close ends the connections.
func (c *conn) Close(context.Context) error {
	c.end()
	c.asking()
	c.link.close()
	return nil
}

var _ driver.GuaranteePredictor = (*Config)(nil)
