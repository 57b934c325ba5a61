package nsq

import (
	"crypto/tls"
	"fmt"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
)

// Kinds of topics and channels.
const (
	durable   = "durable"
	ephemeral = "ephemeral"
)

// defaultAddress is the vendor's default address of nsqd.
const defaultAddress = "127.0.0.1:4150"

// Config holds the driver's settings.
type Config struct {
	Address  []string          `option:"address" help:"Servers (nsqd, TCP), as host:port or URL (tcp, tls); none: those that lookupd lists, or else 127.0.0.1:4150."`
	HTTP     []string          `option:"http" help:"HTTP addresses of these servers, in their order, as host:port or URL (http, https); none: as lookupd says, or else the port after that of address."`
	Lookupd  []string          `option:"lookupd" help:"nsqlookupd servers (HTTP), as host:port or URL; consumers then find the servers of a topic through them."`
	Token    driver.Secret     `option:"token" help:"Secret given to servers that want AUTH."`
	TLS      driver.TLSOptions `option:"tls"`
	Topics   string            `option:"topics" allowed:"durable,ephemeral" help:"Kind of the topics made: ephemeral ones are in memory only and drop what finds no room there."`
	Channels string            `option:"channels" allowed:"durable,ephemeral" help:"Kind of the channels made: ephemeral ones are in memory only, drop what finds no room there, and go with their last consumer."`

	MsgTimeout          time.Duration `option:"msg-timeout" min:"1s" zero:"yes" help:"After how long a server delivers again what was not settled; 0: the server's own (1m by default)."`
	RequeueDelay        time.Duration `option:"requeue-delay" min:"0s" max:"1h" help:"How long a server holds back a message that a consumer refused."`
	OutputBuffer        int64         `option:"output-buffer" min:"64B" zero:"yes" size:"bytes" help:"How much a server gathers for a consumer before it sends; 0: each message at once."`
	OutputBufferTimeout time.Duration `option:"output-buffer-timeout" min:"1ms" max:"30s" help:"How long it gathers at most; servers take 25ms and more."`
	Heartbeat           time.Duration `option:"heartbeat" min:"1s" max:"1m" help:"How often a server asks whether the client is there; two silences end the connection, on either side."`
	WriteTimeout        time.Duration `option:"write-timeout" min:"100ms" max:"5m" help:"How long a write may block before the client gives up the connection."`
	ReconnectWait       time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause before each attempt to reconnect. The attempts never end."`
	LookupdPoll         time.Duration `option:"lookupd-poll" min:"10ms" max:"5m" help:"How often a consumer asks lookupd for servers that it does not know yet."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	MemQueueSize int           `option:"mem-queue-size" min:"0" help:"Server that weir starts: messages that a topic and a channel keep in memory each before they write to disk; 0: all go to disk."`
	SyncEvery    int           `option:"sync-every" min:"1" help:"Server that weir starts: messages written or read between two fsyncs of a queue on disk."`
	SyncTimeout  time.Duration `option:"sync-timeout" min:"1ms" help:"Server that weir starts: longest time between two fsyncs of a queue on disk."`
	MaxMsgSize   int           `option:"max-msg-size" min:"1" help:"Server that weir starts: largest message, in bytes."`
	Discovery    string        `option:"discovery" allowed:"direct,lookupd" help:"Server that weir starts: how consumers find the servers of a topic: they are told, or ask nsqlookupd."`
	MaxRdyCount  int           `option:"max-rdy-count" min:"1" help:"Server that weir starts: most messages under way to one consumer."`
}

func newConfig() *Config {
	return &Config{
		Topics: durable, Channels: durable,
		// The client's default.
		OutputBuffer: 16 << 10, OutputBufferTimeout: 250 * time.Millisecond,
		// The client's default, 30 s, detects a silent server only after a minute; a run is
		// shorter.
		Heartbeat: 10 * time.Second,
		// The client's default, 1 s, is shorter than many disk stalls.
		WriteTimeout:  10 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		LookupdPoll:   5 * time.Second,
		Server:        Server{MemQueueSize: 10_000, SyncEvery: 2500, SyncTimeout: 2 * time.Second, MaxMsgSize: 1 << 20, MaxRdyCount: 2500, Discovery: "direct"},
	}
}

// Formats of addresses.
var (
	nsqds = endpoint.Kind{Schemes: []string{"tcp"}, Secure: []string{"tls"}, Like: defaultAddress}
	webs  = endpoint.Kind{Schemes: []string{"http"}, Secure: []string{"https"}, Like: "http://127.0.0.1:4151"}
)

// Validate reports every invalid setting, joined. It reads no files.
func (c *Config) Validate() error {
	_, address := nsqds.All("address", c.Address)
	_, http := webs.All("http", c.HTTP)
	_, lookupd := webs.All("lookupd", c.Lookupd)
	faults := driver.Faults{address, http, lookupd, c.TLS.Validate()}
	if n := len(c.HTTP); n > 0 && n != max(1, len(c.Address)) {
		faults.Add("http", "has %d addresses, and address has %d (one each, or none)", n, len(c.Address))
	}
	return faults.Join()
}

// secure reports whether TLS is requested.
func (c *Config) secure() bool {
	l, _ := nsqds.All("address", c.Address)
	return c.TLS != (driver.TLSOptions{}) || l.Secure()
}

// client returns the settings of the client library.
func (c *Config) client(t *tls.Config) (*client.Config, error) {
	n := client.NewConfig()
	n.ClientID = "weir"
	n.DialTimeout = connectLimit
	n.HeartbeatInterval, n.ReadTimeout = c.Heartbeat, 2*c.Heartbeat
	n.WriteTimeout = c.WriteTimeout
	n.MsgTimeout = c.MsgTimeout
	n.OutputBufferSize, n.OutputBufferTimeout = c.OutputBuffer, c.OutputBufferTimeout
	if c.OutputBuffer == 0 {
		// A size of -1 also disables the timeout. Disabling only the timeout would make nsqd hold
		// messages until its buffer is full.
		n.OutputBufferSize = -1
	}
	n.AuthSecret = c.Token.Reveal()
	if c.secure() {
		n.TlsV1, n.TlsConfig = true, t
	}
	if err := n.Validate(); err != nil {
		return nil, fmt.Errorf("settings of the client: %w", err)
	}
	return n, nil
}
