package rabbitmq

import (
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
)

// Values of options.
const (
	auto, classic, quorum   = "auto", "classic", "quorum" // queue; auto: depends on the number of replicas
	byDefault               = "default"                   // exchange: the nameless one
	fanout, direct, topic   = "fanout", "direct", "topic" // exchange
	areQueues, areExchanges = "queue", "exchange"         // existing
	persistent, transient   = "persistent", "transient"   // delivery-mode
	server                  = "server"                    // classic-version: the server's setting
	defaultAddress          = "127.0.0.1:5672"            // vendor default
)

// Config holds the driver's settings.
type Config struct {
	Address  []string          `option:"address" help:"Nodes of one cluster, as host:port or URL (amqp, amqps); none: 127.0.0.1:5672."`
	User     string            `option:"user" help:"User; guest may only connect over loopback, unless the server says otherwise."`
	Password driver.Secret     `option:"password" help:"Password of the user; that of guest is guest where none is given."`
	Vhost    string            `option:"vhost" help:"Virtual host."`
	TLS      driver.TLSOptions `option:"tls"`

	Queue          string `option:"queue" allowed:"auto,classic,quorum" firm:"quorum" help:"Type of the queues made; auto: quorum where a destination has replicas, else classic."`
	ClassicVersion string `option:"classic-version" allowed:"server,1,2" help:"How classic queues store messages; server: as it is set to. Versions 3.10 to 3.13 have both, 4 has only 2."`
	Durable        bool   `option:"durable" firm:"yes" help:"Queues and exchanges survive a restart of the server; quorum queues always do."`
	DeliveryMode   string `option:"delivery-mode" allowed:"persistent,transient" firm:"persistent" help:"Whether classic queues that are durable keep messages over a restart; quorum queues keep all."`
	Confirm        bool   `option:"confirm" firm:"yes" help:"The server confirms each message; without, a message counts as sent when the operating system has taken its bytes."`
	Mandatory      bool   `option:"mandatory" help:"A message that no queue takes fails; without, the server drops it without a word."`
	MaxLength      int64  `option:"max-length" min:"0" help:"Most messages that a queue made holds; 0: any number."`
	Overflow       string `option:"overflow" allowed:"drop-head,reject-publish" help:"What a queue that is full does: drop its oldest message, or refuse the new one."`

	Exchange   string `option:"exchange" allowed:"fanout,direct,topic,default" help:"Kind of the exchange before the queues; default has none of its own, and only one subscription."`
	Existing   string `option:"existing" allowed:"queue,exchange" help:"What the names of existing destinations are."`
	RoutingKey string `option:"routing-key" help:"Routing key of messages to an existing exchange, and by which subscriptions are bound to it; none: the destination's name, and for a topic exchange # to bind by."`

	Management []string `option:"management" help:"URLs of the management plugin's HTTP interface, of which the first that answers is used: it reports the nodes and the real type of queues; none: only what AMQP reports."`

	Metrics []string `option:"metrics" help:"URLs of the Prometheus plugin of every node (port 15692), which reports how many messages the servers have dropped; none: that is not known."`

	Heartbeat     time.Duration `option:"heartbeat" min:"1s" max:"10m" help:"How often either side says that it is there; one and a half without a word end the connection."`
	ReconnectWait time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause between attempts to reconnect."`
	ReconnectFor  time.Duration `option:"reconnect-for" min:"0s" max:"1h" help:"How long to try to reconnect before a consumer ends and a producer gives up."`
	ReopenAfter   time.Duration `option:"reopen-after" min:"0s" max:"1h" help:"How long the server may refuse every message of a destination (basic.nack) before a producer opens a new channel, at the next address; each time in vain doubles it, up to eight times. 0: never."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	MaxMessageSize int    `option:"max-message-size" min:"1" max:"536870912" help:"Server that weir starts: largest message, in bytes."`
	Memory         string `option:"memory" help:"Server that weir starts: memory of a node above which it blocks connections that publish."`
}

func newConfig() *Config {
	return &Config{
		User: rabbitserver.Guest, Vhost: "/",
		Queue: auto, ClassicVersion: server, Durable: true, DeliveryMode: persistent, Confirm: true, Mandatory: true, Overflow: "drop-head",
		Exchange: fanout, Existing: areQueues,
		// The client's default.
		Heartbeat:     10 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		ReconnectFor:  time.Minute,
		ReopenAfter:   2 * time.Second,
		Server:        Server{MaxMessageSize: 128 << 20, Memory: "2GB"},
	}
}

// ClientPath implements driver.Labelled.
func (c *Config) ClientPath() string {
	if c.Confirm {
		return "its publisher, confirmations from raw frames"
	}
	return ""
}

// Narrow implements driver.Narrowed: only the management plugin reports a queue's leader, and only
// a quorum queue counts a message's redeliveries.
func (c *Config) Narrow(to driver.Capabilities) driver.Capabilities {
	to.Leaders = to.Leaders && len(c.Management) > 0
	to.DeadLetters = to.DeadLetters && c.Queue == quorum
	return to
}

// Formats of addresses.
var (
	brokers = endpoint.Kind{Schemes: []string{"amqp"}, Secure: []string{"amqps"}, Port: "5672", Ports: map[string]string{"amqps": "5671"}, Like: defaultAddress}
	plugins = endpoint.Kind{Schemes: []string{"http"}, Secure: []string{"https"}, Like: "http://127.0.0.1:15672", Path: true}
)

// Validate reports every invalid setting, joined. It reads no files.
func (c *Config) Validate() error {
	_, address := brokers.All("address", c.Address)
	_, management := plugins.All("management", c.Management)
	_, metrics := plugins.All("metrics", c.Metrics)
	faults := driver.Faults{address, management, metrics, c.TLS.Validate()}
	if c.User == "" {
		faults.Add("user", "is empty (a user's name)")
	}
	if c.Vhost == "" {
		faults.Add("vhost", "is empty (/ is the vendor's own)")
	}
	if c.Queue == quorum && !c.Durable {
		faults.Add("durable", "is no, and quorum queues are always durable (yes)")
	}
	if len(c.RoutingKey) > mostName {
		faults.Add("routing-key", "has %d bytes (up to %d)", len(c.RoutingKey), mostName)
	}
	if _, err := driver.ParseSize(c.Server.Memory); err != nil {
		faults.Add("server.memory", "%w", err)
	}
	return faults.Join()
}
