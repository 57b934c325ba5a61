// Package beanstalkd drives beanstalkd, a work queue on one server. page.md says what weir's terms
// mean here.
//
// The server forgets a tube when it is empty and no client names it. So Declare has nothing to do,
// and Delete takes all jobs out. The answer to a reserve does not name the tube. A consumer
// therefore has a connection for each of its tubes. With a binlog, the server has written the job to
// the file before it answers INSERTED (enqueue_job in prot.c). A binlog that cannot be written is
// turned off by the server, which continues in memory; Facts show that, when they are read again.
//
// A call of the client sends one command and waits for the answer. It has no context, no time limit
// and no way to connect again: package keeper has these.
package beanstalkd

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/keeper"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/retry"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "beanstalkd",
		Title:   "beanstalkd",
		Summary: "A work queue on one server, in memory or with a binlog.",
		Client:  "github.com/beanstalkd/go-beanstalk",
		Capabilities: driver.Capabilities{
			Consume:         true,
			Competing:       true,
			Nack:            true,
			SettleConfirmed: true,
			Retains:         true, // a job waits for a consumer
			Settle:          []driver.Settle{driver.SettleEach},
			Guarantees:      []driver.Guarantee{driver.Received, driver.Persisted},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.PerDestination,
			// The server's own limit (-z) applies, which a producer asks for.
		},
		New: func() driver.Config {
			return &Config{
				Address: servers.Like, Fsync: -1, TTR: time.Minute, Timeout: 10 * time.Second, ReconnectWait: 250 * time.Millisecond,
				Server: Server{Binlog: "no", Fsync: 50, MaxJobSize: 65535},
			}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address       string        `option:"address" help:"Server, as host:port."`
	Fsync         int           `option:"fsync" min:"-1" firm:"0" help:"Milliseconds between two syncs of the server's binlog (-f). The server does not report it. 0: before each answer; -1: not known."`
	TTR           time.Duration `option:"ttr" min:"1s" unit:"1s" help:"Time to run. After it, the server gives a message that is not settled to another consumer."`
	Touch         time.Duration `option:"touch" min:"100ms" zero:"yes" help:"How often a consumer restarts the time to run while it works on a message; 0: never."`
	Timeout       time.Duration `option:"timeout" min:"3s" max:"5m" help:"Longest time to connect, and longest time of one call of the client."`
	ReconnectWait time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause before each attempt to reconnect. The attempts never end."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	Binlog     string `option:"binlog" allowed:"no,yes" firm:"yes" help:"Server that weir starts: keep jobs in files, too (-b)."`
	Fsync      int    `option:"fsync" min:"0" firm:"0" help:"Server that weir starts: with a binlog, milliseconds between two syncs (-f); 0: before each answer."`
	MaxJobSize int    `option:"max-job-size" min:"1" max:"1073741824" help:"Server that weir starts: largest message, in bytes (-z)."`
}

// longest is the maximum length of a tube name in the client, in bytes.
const longest = 199

// servers describes valid addresses.
var servers = endpoint.Kind{Schemes: []string{"tcp"}, Port: "11300", Like: "127.0.0.1:11300"}

// Validate reports every invalid setting, joined.
func (c *Config) Validate() error {
	_, err := servers.All("address", []string{c.Address})
	return err
}

// A link is a maintained connection.
type link = keeper.Keeper[*client.Conn]

// answers are the server errors that keep a connection usable.
var answers = failure.Table{
	client.ErrJobTooBig: driver.ErrTooLarge,
	client.ErrOOM:       driver.ErrBlocked, client.ErrDraining: driver.ErrBlocked,
	client.ErrBadFormat: driver.ErrUnsupported, client.ErrUnknown: driver.ErrUnsupported,
	client.ErrNotFound: nil, client.ErrTimeout: nil, client.ErrDeadline: nil, client.ErrInternal: nil, errHeld: nil,
}

// connect opens and maintains a connection for the run.
func (c *Config) connect(ctx context.Context, run driver.Run, name string) (*link, error) {
	at, err := servers.Parse(c.Address)
	if err != nil {
		return nil, err
	}
	return keeper.Open(ctx, keeper.Plan[*client.Conn]{
		Name: name, Run: run, Limit: c.Timeout, Wait: c.ReconnectWait, Answer: answers.Find,
		Address: at.HostPort(), Client: func(socket net.Conn) *client.Conn { return client.NewConn(socket) },
	})
}

// Open connects, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	l, err := c.connect(ctx, run, "control")
	if err != nil {
		return nil, err
	}
	x := &conn{cfg: *c, run: run, link: l}
	if _, err := x.Facts(ctx); err != nil { // an open port does not prove that a server answers
		l.Close()
		return nil, err
	}
	return x, nil
}

// A conn is one run's connection to the server.
type conn struct {
	cfg  Config
	run  driver.Run
	link *link // for requests
}

func (c *conn) tube(destination string) (string, error) {
	if c.run.Existing && (len(destination) > longest || strings.HasPrefix(destination, "-") || strings.Trim(destination, client.NameChars) != "") {
		return "", fmt.Errorf("a tube cannot have this name: %w", driver.ErrUnsupported)
	}
	return names.Of(c.run, longest, destination), nil
}

// Declare does nothing: the server creates a tube when a client names it.
func (c *conn) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete removes all jobs from the tubes. For jobs that a consumer holds, it waits until that
// consumer or ctx ends.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		tube, err := c.tube(d.Name)
		if err != nil {
			return err
		}
		return retry.While(ctx, drainPause, func(err error) bool { return errors.Is(err, errHeld) }, func() error {
			return c.link.Ask(ctx, func(k *client.Conn) error { return drain(k, tube) })
		})
	})
}

const (
	drainers   = 16   // concurrent calls, which the client serializes
	drainBurst = 1000 // jobs that each deletes
	drainPause = 10 * time.Millisecond
)

// errHeld means that consumers hold the remaining jobs, or that there are many.
var errHeld = errors.New("the tube still has jobs")

// drain deletes jobs of a tube.
func drain(k *client.Conn, tube string) error {
	var errs [drainers]error
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = take(k, tube) })
	}
	all.Wait()
	n, err := jobs(k, tube)
	if n > 0 {
		err = errHeld
	}
	return errors.Join(append(errs[:], err)...)
}

// take deletes jobs from a tube, until none is ready or drainBurst is reached.
func take(k *client.Conn, tube string) error {
	set := client.NewTubeSet(k, tube)
	for range drainBurst {
		id, _, err := set.Reserve(0)
		if errors.Is(err, client.ErrTimeout) {
			return nil
		}
		if err == nil {
			err = k.Delete(id)
		}
		// Neither is a failure: a short time-to-run may have expired.
		if err != nil && !errors.Is(err, client.ErrDeadline) && !errors.Is(err, client.ErrNotFound) {
			return err
		}
	}
	return nil
}

// jobs returns how many jobs a tube has.
func jobs(k *client.Conn, tube string) (n uint64, err error) {
	t := client.NewTube(k, tube)
	stats, err := t.Stats()
	if errors.Is(err, client.ErrNotFound) {
		return 0, nil
	}
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		n += number(stats, "current-jobs-"+state)
	}
	return n, err
}

// number returns one of the server's statistics, or 0 if it is not reported.
func number(stats map[string]string, name string) uint64 {
	n, _ := strconv.ParseUint(stats[name], 10, 64)
	return n
}

// Backlog implements driver.Backlogger: jobs that are ready or held by consumers.
func (c *conn) Backlog(ctx context.Context, _ string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (n uint64, err error) {
		tube, err := c.tube(d)
		if err == nil {
			err = c.link.Ask(ctx, func(k *client.Conn) (err error) { n, err = jobs(k, tube); return err })
		}
		return n, err
	})
}

// stats asks the server for its statistics.
func (c *conn) stats(ctx context.Context) (stats map[string]string, err error) {
	err = c.link.Ask(ctx, func(k *client.Conn) (err error) { stats, err = k.Stats(); return err })
	return stats, err
}

// Facts asks the server; the server's -f comes from the option fsync.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	s, err := c.stats(ctx)
	f := driver.Facts{
		Name: "beanstalkd", Version: strings.Trim(s["version"], `"`), Nodes: 1,
		Settings: map[string]string{"binlog": "no", "max-job-size": s["max-job-size"]},
	}
	if number(s, "binlog-current-index") > 0 {
		f.Settings["binlog"], f.Settings["fsync"] = "yes", fmt.Sprintf("%d (option fsync)", c.cfg.Fsync)
	}
	k := c.cfg.Known(driver.Servers{})
	k["server.binlog"] = f.Settings["binlog"]
	f.Confirms = page.Confirmations.Of(k)
	return f, err
}

// Known implements driver.GuaranteePredictor. The server reports whether it has a binlog.
func (c *Config) Known(s driver.Servers) driver.Known {
	k := driver.Known{"server.fsync": strconv.Itoa(c.Fsync)}
	if s.Nodes > 0 {
		k["server.binlog"] = c.Server.Binlog
	}
	return k
}

// Close ends the connection.
func (c *conn) Close(context.Context) error {
	c.link.Close()
	return nil
}
