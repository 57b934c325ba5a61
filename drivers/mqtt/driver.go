// Package mqtt drives brokers that speak MQTT 3.1.1 or 5, tried with Mosquitto. page.md
// says what is what.
//
// The Eclipse Paho project has two clients for Go, one for each version of the protocol:
// three.go and five.go make lines of them. Neither connects again here, and neither sends a
// message twice: what was in flight on a lost connection fails.
package mqtt

import (
	"context"
	"embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

// Versions of the protocol.
const (
	version3 = "3.1.1"
	version5 = "5"
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "mqtt",
		Title:   "MQTT",
		Summary: "Topics of an MQTT 3.1.1 or 5 broker, with QoS 0, 1 or 2 and shared subscriptions.",
		Client:  "github.com/eclipse/paho.golang",
		Capabilities: driver.Capabilities{
			Consume: true, Subscriptions: true, Competing: true, Retains: true,
			Settle:     []driver.Settle{driver.SettleEach, driver.SettleNone},
			Guarantees: []driver.Guarantee{driver.Written, driver.Received},
			Delivery:   driver.AtLeastOnce, Ordering: driver.PerDestination,
		},
		New: func() driver.Config {
			return &Config{
				Address: servers.Like, Version: version5, QoS: 1, Shared: true,
				KeepAlive: time.Minute, Timeout: 10 * time.Second, ReconnectWait: 250 * time.Millisecond,
				Server: Server{Persistence: "no", AutosaveInterval: 1800, AutosaveOnChanges: "no", MaxInflight: 20, MaxQueued: 1000, NoDelay: "no"},
			}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address  string            `option:"address" help:"Server, as host:port or URL (mqtt, mqtts)."`
	User     string            `option:"user" help:"User name; none: anonymous."`
	Password driver.Secret     `option:"password" help:"Password of user."`
	TLS      driver.TLSOptions `option:"tls"`

	Version       string        `option:"version" allowed:"3.1.1,5" help:"Version of the protocol."`
	QoS           int           `option:"qos" min:"0" max:"2" firm:"1" help:"Quality of service of messages and of subscriptions: 0 at most once, 1 at least once, 2 exactly once."`
	Shared        bool          `option:"shared" help:"Consumers of one subscription share its messages ($share). no: a plain subscription, with one consumer."`
	MaxInflight   int           `option:"max-inflight" min:"1" max:"65535" zero:"yes" help:"Messages that a producer has sent and that are not confirmed. 0: as many as the server reports, or 20 with version 3.1.1, which has no such field."`
	KeepAlive     time.Duration `option:"keep-alive" min:"5s" max:"65535s" unit:"1s" zero:"yes" help:"How often a silent client sends a ping; 0: never."`
	Timeout       time.Duration `option:"timeout" min:"1s" max:"5m" help:"Longest time to connect, and longest time of one question and of one write."`
	ReconnectWait time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause before each attempt to reconnect. The attempts never end."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are the vendor's defaults.
type Server struct {
	Persistence       string `option:"persistence" allowed:"no,yes" help:"Server that weir starts: save messages to a file at times."`
	AutosaveInterval  int    `option:"autosave-interval" min:"0" help:"Server that weir starts: seconds between two saves, or with autosave-on-changes the number of changes; 0: it saves only when it ends."`
	AutosaveOnChanges string `option:"autosave-on-changes" allowed:"no,yes" help:"Server that weir starts: save after this many changes."`
	MaxInflight       int    `option:"max-inflight-messages" min:"0" max:"65535" help:"Server that weir starts: messages of QoS 1 and 2 sent to a client, or taken from it, and not finished; 0: no limit."`
	MaxQueued         int    `option:"max-queued-messages" min:"0" help:"Server that weir starts: messages that wait for one client; it drops what comes above. 0: no limit."`
	NoDelay           string `option:"set-tcp-nodelay" allowed:"no,yes" help:"Server that weir starts: send each packet at once (TCP_NODELAY)."`
}

// servers describes valid addresses.
var servers = endpoint.Kind{
	Schemes: []string{"mqtt"}, Secure: []string{"mqtts"}, Port: "1883", Ports: map[string]string{"mqtts": "8883"}, Like: "127.0.0.1:1883",
}

// Validate reports every invalid setting, joined. It reads no files.
func (c *Config) Validate() error {
	_, err := servers.All("address", []string{c.Address})
	faults := driver.Faults{err, c.TLS.Validate()}
	if c.User == "" && !c.Password.IsZero() {
		faults.Add("password", "goes with user")
	}
	return faults.Join()
}

// Narrow implements driver.Narrowed. The client for 3.1.1 redelivers a QoS 2 message that the
// server resends.
func (c *Config) Narrow(can driver.Capabilities) driver.Capabilities {
	can.Competing = c.Shared
	can.Settle, can.Guarantees = []driver.Settle{driver.SettleEach}, []driver.Guarantee{driver.Received}
	switch {
	case c.QoS == 0:
		can.Settle, can.Guarantees = []driver.Settle{driver.SettleNone}, []driver.Guarantee{driver.Written}
		can.Delivery, can.Retains = driver.AtMostOnce, false
	case c.QoS == 2 && c.Version == version5:
		can.Delivery = driver.ExactlyOnce
	}
	return can
}

// ClientPath implements driver.Labelled.
func (c *Config) ClientPath() string {
	if c.Version == version5 {
		return "weir's own publisher over the client's connection"
	}
	return ""
}

// Open connects, within ctx and the option timeout, and reads the facts.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	x := &conn{cfg: *c, run: run}
	if _, err := x.Facts(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// A conn is one run's connection to the server, but keeps no connection open.
type conn struct {
	cfg  Config
	run  driver.Run
	ends known.Table[end, string]
}

// An end is a producer or a consumer.
type end interface {
	// left returns how many messages the producer or consumer has still to take, based on an answer
	// from the server.
	left(ctx context.Context) (uint64, error)
}

// Declare does nothing: a topic is only an address, and the server stores none.
func (c *conn) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete does nothing: messages end with the sessions of the consumers.
func (c *conn) Delete(context.Context, ...driver.Destination) error { return nil }

func (c *conn) topic(destination string) (string, error) {
	if !c.run.Existing {
		return c.own(names.Token(destination)), nil
	}
	if len(destination) > math.MaxUint16 || strings.ContainsAny(destination, "+#\x00") || strings.HasPrefix(destination, "$") {
		return "", fmt.Errorf("a topic cannot have this name: %w", driver.ErrUnsupported)
	}
	return destination, nil
}

// own returns one of the run's own topics.
func (c *conn) own(name string) string { return "weir/" + names.Token(c.run.ID) + "/" + name }

// Backlog implements driver.Backlogger. The server does not report a subscription's backlog. QoS 0
// messages are not answered, so each producer first makes a round trip. Then each consumer sends
// itself probe messages, which arrive after everything the server had for it.
func (c *conn) Backlog(ctx context.Context, subscription string, _ []string) (uint64, error) {
	if c.cfg.QoS == 0 {
		if _, err := c.sum(ctx, ""); err != nil {
			return 0, err
		}
	}
	return c.sum(ctx, subscription)
}

// sum adds up the results for a subscription's consumers; "" for the producers.
func (c *conn) sum(ctx context.Context, subscription string) (sum uint64, err error) {
	for _, e := range known.Having(&c.ends, subscription) {
		n, err := e.left(ctx)
		if err != nil {
			return 0, errorMap.Unreachable(err)
		}
		sum += n
	}
	return sum, nil
}

// versionTopic is where Mosquitto reports its version. Other brokers may also have the topic.
const versionTopic = "$SYS/broker/version"

// droppedTopic is where Mosquitto counts messages that it did not store for a client, over all
// clients. It updates the count every sys_interval (https://mosquitto.org/man/mosquitto-8.html).
const droppedTopic = "$SYS/broker/publish/messages/dropped"

// versionWait is how long to wait for a message that the server sent before its answer.
const versionWait = 100 * time.Millisecond

// Known implements driver.GuaranteePredictor.
func (c *Config) Known(driver.Servers) driver.Known { return driver.KnownOf(c, "qos") }

// Facts connects. The guarantee is the QoS level that the server grants.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "MQTT broker", Nodes: 1, Confirms: page.Confirmations.Of(c.cfg.Known(driver.Servers{})), Settings: map[string]string{
		"version": c.cfg.Version, "qos": strconv.Itoa(c.cfg.QoS), "shared": strconv.FormatBool(c.cfg.Shared),
	}}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var set sockets.Set
	defer set.Refuse()
	received := make(chan [2]string, 2) // topic and text
	l, err := c.cfg.dial(ctx, &set, plan{take: func(topic string, payload []byte, _ bool) bool {
		select {
		case received <- [2]string{topic, string(payload)}:
		default:
		}
		return true
	}})
	if err != nil {
		return f, err
	}
	defer l.close(true)
	granted, err := l.subscribe(ctx, byte(c.cfg.QoS), versionTopic, droppedTopic)
	if err == nil {
		err = l.ask(ctx)
	}
	if err != nil {
		return f, errorMap.Unreachable(err)
	}
	f.Settings["receive-maximum"], f.Settings["maximum-packet-size"] = number(uint64(l.most.inflight)), number(uint64(l.most.packet))
	level := int(min(granted[0], l.most.qos))
	if granted[0] < refused {
		f.Settings["granted-qos"] = strconv.Itoa(level)
	}
	if level < c.cfg.QoS {
		return f, fmt.Errorf("qos %d: the server grants %d: %w", c.cfg.QoS, level, driver.ErrUnsupported)
	}
	late := time.After(versionWait)
	for range cap(received) {
		select {
		case t := <-received:
			c.addFact(&f, t[0], t[1])
		case <-late:
			return f, nil
		case <-ctx.Done():
			return f, nil
		}
	}
	return f, nil
}

// addFact adds a message from one of the broker's topics to the facts.
func (c *conn) addFact(f *driver.Facts, topic, text string) {
	if topic == droppedTopic {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			f.Discarded = []driver.Discarded{{Counter: topic, Messages: n}}
		}
		return
	}
	f.Name, f.Version = "mosquitto", text
	if name, version, ok := strings.Cut(text, " version "); ok {
		f.Name, f.Version = name, version
	}
}

// number formats a limit that the server reported.
func number(n uint64) string {
	if n == 0 {
		return "not told"
	}
	return strconv.FormatUint(n, 10)
}

func (c *conn) Close(context.Context) error { return nil }

var _ driver.Narrowed = (*Config)(nil)
