package amqp1conn

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
)

// Options holds the settings that the drivers share. A Config embeds it.
type Options struct {
	Address  []string          `option:"address" help:"Servers, as host:port or URL (amqp, amqps). The first that answers is used; none: 127.0.0.1:5672."`
	User     string            `option:"user" help:"User (SASL PLAIN); none: anonymous."`
	Password driver.Secret     `option:"password" help:"Password of the user."`
	TLS      driver.TLSOptions `option:"tls"`

	Durable bool `option:"durable" firm:"yes" help:"Ask the server to keep messages over a restart."`
	Confirm bool `option:"confirm" firm:"yes" help:"Wait until the server settles each message. If no, messages are sent settled, and are confirmed when the operating system has their bytes."`

	Timeout       time.Duration `option:"timeout" min:"1s" max:"5m" help:"Timeout for connecting, and for each request to the server."`
	IdleTimeout   time.Duration `option:"idle-timeout" min:"2s" max:"10m" help:"Time without a frame from the server after which a connection counts as lost."`
	ReconnectWait time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause between attempts to reconnect."`
	ReconnectFor  time.Duration `option:"reconnect-for" min:"0s" max:"1h" help:"How long to try to reconnect before a consumer ends and a producer gives up."`
}

// defaultAddress has the protocol's port.
const defaultAddress = "127.0.0.1:5672"

// Defaults returns the default settings.
func Defaults() Options {
	return Options{
		Durable: true, Confirm: true,
		Timeout: 4 * time.Second, IdleTimeout: time.Minute,
		ReconnectWait: 250 * time.Millisecond, ReconnectFor: time.Minute,
	}
}

// servers describes valid addresses.
var servers = endpoint.Kind{
	Schemes: []string{"amqp"}, Secure: []string{"amqps"}, Port: "5672", Like: defaultAddress,
	Ports: map[string]string{"amqps": "5671"},
}

// Validate reports every invalid setting, joined. It reads no files.
func (o *Options) Validate() error {
	_, err := servers.All("address", o.Address)
	faults := driver.Faults{err, o.TLS.Validate()}
	if o.User == "" && o.Password.Reveal() != "" {
		faults.Add("password", "is given without a user (option user)")
	}
	return faults.Join()
}

// A server is an address with its TLS settings; nil: no TLS.
type server struct {
	endpoint.Endpoint
	tls *tls.Config
}

// servers returns the servers to connect to. It reads the files of the TLS options.
func (o *Options) servers() ([]server, error) {
	addresses := o.Address
	if len(addresses) == 0 {
		addresses = []string{defaultAddress}
	}
	list, err := servers.All("address", addresses)
	if err != nil {
		return nil, err
	}
	all := make([]server, len(list))
	for i, e := range list {
		t, err := e.TLS(o.TLS)
		if err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		all[i] = server{e, t}
	}
	return all, nil
}
