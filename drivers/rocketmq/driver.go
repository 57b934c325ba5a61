// Package rocketmq drives Apache RocketMQ by the project's remoting client for Go. page.md says what
// weir's terms mean here.
//
// The driver asks name servers and brokers itself (remoting.go) for what the client has no calls
// for: topics, groups, offsets, and the brokers' configuration. A consumer that was pulling when its
// connection was lost asks again after 30 s, so the driver has it divide the queues anew
// (consumer.go). See link.go for what the client would print, and where it would end the process.
package rocketmq

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/retry"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

// maxPayload is the brokers' default maxMessageSize.
const maxPayload = 4 << 20

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "rocketmq",
		Title:   "Apache RocketMQ",
		Summary: "Topics and consumer groups of Apache RocketMQ, by its remoting protocol.",
		Client:  "github.com/apache/rocketmq-client-go/v2",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Partitions:    true,
			Keys:          true,
			Subscriptions: true,
			Competing:     true,
			Leaders:       true,
			Retains:       true, // a group keeps its offsets
			Resumes:       true,
			Replays:       []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
			Settle:        []driver.Settle{driver.SettleBatch},
			Guarantees:    []driver.Guarantee{driver.Received, driver.Replicated, driver.Persisted},
			Delivery:      driver.AtLeastOnce,
			Ordering:      driver.Unordered, // several broker threads store messages in flight
			MaxPayload:    maxPayload,
		},
		New: func() driver.Config {
			return &Config{
				Address: []string{nameServers.Like}, Timeout: 10 * time.Second, CommitInterval: time.Second, ReconnectWait: 250 * time.Millisecond,
				Server: Server{Flush: async, Replication: async, Auth: "no", QueueTime: 3000, Heap: "256m", Java: 1},
			}
		},
		Page: page,
	}
}

// The values of server.flush and server.replication.
const (
	async = "async"
	synch = "sync"
)

// Config holds the driver's settings.
type Config struct {
	Address  []string      `option:"address" help:"Name servers of one cluster, as host:port."`
	User     string        `option:"user" help:"User (access key), where the brokers authenticate their clients."`
	Password driver.Secret `option:"password" help:"Password (secret key) of user. The client signs with it; it has no TLS."`

	Timeout        time.Duration `option:"timeout" min:"1s" max:"5m" help:"Timeout for connecting, and for each request."`
	CommitInterval time.Duration `option:"commit-interval" min:"10ms" max:"1m" help:"How often a consumer tells the brokers what it has settled, and asks whether they are there."`
	ReconnectWait  time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause between two attempts to find out whether a broker is there again. The attempts never end."`

	Server Server `option:"server"`
}

// Server holds the settings of servers that weir starts; these are its defaults.
type Server struct {
	Flush       string `option:"flush" allowed:"async,sync" firm:"sync" help:"Servers that weir starts: sync to the disk some time later, or before an answer (flushDiskType)."`
	Replication string `option:"replication" allowed:"async,sync" firm:"sync" help:"Pairs that weir starts: a slave copies some time later, or has a message before the answer (brokerRole, inSyncReplicas)."`
	Auth        string `option:"auth" allowed:"no,yes" help:"Servers that weir starts: authenticate clients."`
	QueueTime   int    `option:"queue-time" min:"1" max:"60000" help:"Servers that weir starts: milliseconds that a message waits at a broker before it is refused (waitTimeMillsInSendQueue)."`
	Heap        string `option:"heap" help:"Servers that weir starts: largest heap of a broker, as -Xmx takes it."`
	Java        int    `option:"compiler" allowed:"1,4" help:"Servers that weir starts: highest tier of Java's compiler; 1 is fast soon, 4 is faster after minutes."`
}

// nameServers is what addresses look like.
var nameServers = endpoint.Kind{Schemes: []string{"rocketmq"}, Port: "9876", Like: "127.0.0.1:9876"}

// Validate reports every fault that option bounds do not catch, joined.
func (c *Config) Validate() error {
	_, err := nameServers.All("address", c.Address)
	faults := driver.Faults{err}
	if len(c.Address) == 0 {
		faults.Add("address", "is empty (a name server, such as %s)", nameServers.Like)
	}
	if (c.User == "") != c.Password.IsZero() {
		faults.Add("password", "user and password go together")
	}
	return faults.Join()
}

// A conn is one run's connection to the cluster.
type conn struct {
	cfg  Config
	run  driver.Run
	open known.Table[*consumer, string]

	topics known.Table[string, string]   // declared or opened, by destination
	groups known.Table[string, struct{}] // to be deleted by Close
}

// Open asks a name server for the brokers, and each master for its settings, within ctx and the
// option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	tame()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	x := &conn{cfg: *c, run: run}
	if _, err := x.Facts(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// longest is the maximum length of a topic name in bytes: 127, minus %RETRY% before a group's name
// (https://rocketmq.apache.org/docs/introduction/03limits/).
const longest = 110

// name returns the name of a topic or group that ends with the run. It must not contain dots;
// tokens do not contain two underscores.
func (c *conn) name(of string) string {
	return strings.ReplaceAll(names.Join(longest, "weir", c.run.ID, of), ".", "__")
}

func (c *conn) group(subscription string, durable bool) string {
	if durable {
		return subscription
	}
	return c.name(subscription)
}

// legal matches valid topic and group names.
var legal = regexp.MustCompile(`^[%|\w-]{1,127}$`)

const legalNames = "letters, digits and %|_-, up to 127"

// named returns the topic of a destination, without asking the servers.
func (c *conn) named(destination string) string {
	if c.run.Existing {
		return destination
	}
	return c.name(destination)
}

// topic returns the topic of a destination. An existing one must be there.
func (c *conn) topic(ctx context.Context, destination string) (string, error) {
	return c.topics.Of(destination, func() (t string, err error) {
		t = c.named(destination)
		if !legal.MatchString(t) {
			return "", fmt.Errorf("%q is not a topic's name (%s): %w", t, legalNames, driver.ErrUnsupported)
		}
		if c.run.Existing {
			_, err = c.cfg.route(ctx, t)
		}
		return t, err
	})
}

// propagation is the pause between two checks whether a name server knows a topic.
const propagation = 10 * time.Millisecond

// Declare creates the topics, with their queues spread over the brokers.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	all, err := c.cfg.brokers(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errNoBroker
	}
	return each.Of(ds, func(d driver.Destination) error {
		t := c.named(d.Name)
		h := fnv.New32a()
		_, _ = h.Write([]byte(t))
		first := int(h.Sum32() % uint32(len(all)))
		for i := range all {
			n := d.Partitions / len(all)
			if i < d.Partitions%len(all) {
				n++
			}
			if n == 0 {
				continue
			}
			err := c.cfg.on(ctx, all[(first+i)%len(all)].master(), func(ctx context.Context, l *line) error {
				_, _, err := l.ask(ctx, makeTopic, map[string]string{
					"topic": t, "defaultTopic": "TBW102", "readQueueNums": strconv.Itoa(n), "writeQueueNums": strconv.Itoa(n), "perm": "6",
					"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
				}, nil)
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := c.known(ctx, t, d.Partitions); err != nil {
			return err
		}
		c.topics.Note(d.Name, t)
		return nil
	})
}

var errNoBroker = fmt.Errorf("the name server knows no broker: %w", driver.ErrUnreachable)

// known waits until every name server knows all queues of a topic.
func (c *conn) known(ctx context.Context, topic string, queues int) error {
	errEarly := errors.New("a name server does not know all queues yet")
	return c.everyNameServer(ctx, func(ctx context.Context, l *line) error {
		return retry.While(ctx, propagation, func(err error) bool { return errors.Is(err, errEarly) || answered(err, noTopic) }, func() error {
			r, err := l.route(ctx, topic)
			if err == nil && len(r.queues) < queues {
				err = errEarly
			}
			return err
		})
	})
}

// everyNameServer queries all name servers.
func (c *conn) everyNameServer(ctx context.Context, ask func(context.Context, *line) error) error {
	at, err := nameServers.All("address", c.cfg.Address)
	if err != nil {
		return err
	}
	for _, e := range at {
		if err := c.cfg.on(ctx, e.HostPort(), ask); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes the topics, with all groups' offsets.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		if err := c.remove(ctx, c.named(d.Name)); err != nil {
			return err
		}
		c.topics.Forget(d.Name)
		return nil
	})
}

// remove deletes topics on all brokers and name servers.
func (c *conn) remove(ctx context.Context, topics ...string) error {
	ask := func(code int) func(context.Context, *line) error {
		return func(ctx context.Context, l *line) error {
			for _, t := range topics {
				if _, _, err := l.ask(ctx, code, map[string]string{"topic": t}, nil); err != nil && !answered(err, noTopic) {
					return err
				}
			}
			return nil
		}
	}
	if err := c.everyMaster(ctx, ask(deleteTopic)); err != nil {
		return err
	}
	return c.everyNameServer(ctx, ask(forgetTopic))
}

// everyMaster queries all masters.
func (c *conn) everyMaster(ctx context.Context, ask func(context.Context, *line) error) error {
	all, err := c.cfg.brokers(ctx)
	if err != nil {
		return err
	}
	for _, b := range all {
		if err := c.cfg.on(ctx, b.master(), ask); err != nil {
			return fmt.Errorf("broker %s: %w", b.Name, err)
		}
	}
	return nil
}

// Backlog implements driver.Backlogger: each queue's maximum offset minus the group's. Consumers of
// this Conn first commit what they have settled.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	group := c.group(subscription, false)
	if _, ours := c.groups.Get(group); c.run.Existing && !ours {
		group = subscription
	}
	for _, x := range known.Having(&c.open, group) {
		if err := x.commit(ctx); err != nil {
			return 0, err
		}
	}
	return each.Sum(destinations, func(d string) (uint64, error) { return c.behind(ctx, group, d) })
}

// behind returns how many of a destination's messages a group has still to settle.
func (c *conn) behind(ctx context.Context, group, destination string) (sum uint64, err error) {
	topic, err := c.topic(ctx, destination)
	if err != nil {
		return 0, err
	}
	r, err := c.cfg.route(ctx, topic)
	if err != nil {
		return 0, words.Unreachable(err)
	}
	for name, b := range r.brokers {
		err := c.cfg.on(ctx, b.master(), func(ctx context.Context, l *line) error {
			for _, q := range r.queues {
				if q.broker != name {
					continue
				}
				at, ok, err := l.offset(ctx, group, place{topic, q})
				if err == nil && !ok {
					err = fmt.Errorf("group %s has no offset in queue %d of %s: %w", group, q.id, name, driver.ErrUnsupported)
				}
				if err != nil {
					return err
				}
				end, err := l.bound(ctx, maxOffset, place{topic, q}, time.Time{})
				if err != nil {
					return err
				}
				sum += uint64(max(0, end-at))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// Close deletes the groups that weir created, with the topic that a broker creates for each.
func (c *conn) Close(ctx context.Context) error {
	groups := known.Names(&c.groups)
	if len(groups) == 0 {
		return nil
	}
	var retries []string
	for _, g := range groups {
		retries = append(retries, "%RETRY%"+g)
	}
	err := c.everyMaster(ctx, func(ctx context.Context, l *line) error {
		for _, g := range groups {
			if _, _, err := l.ask(ctx, deleteGroup, map[string]string{"groupName": g, "cleanOffset": "true"}, nil); err != nil && !answered(err, noGroup) {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, c.remove(ctx, retries...))
}
