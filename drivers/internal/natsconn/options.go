// Package natsconn implements what the NATS drivers share: connecting with the nats.go client,
// mapping its errors to the driver contract, naming, publishing with one reply subject per message,
// and reading facts from a server.
//
// nats.go copies the payload into its buffer within Publish (natsWriter.appendBufs in nats.go:
// "w.bufs = append(w.bufs, buf...)"), so that the bytes are free when it returns and no message is
// ever abandoned to it. A client goroutine writes the buffer, or Publish itself once the buffer
// reaches 32 KiB: then it waits for the network while holding the connection's lock
// (PublishBlocks). Received messages pass through one queue inside the client, between the reading
// and the delivering goroutine. By default, a server accepts 1 MiB per message (max_payload); the
// embedded one accepts 8 MiB.
package natsconn

import (
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/internal/userfile"
)

// Options holds the server addresses and how to connect to them. All NATS drivers have these
// options under the same names.
type Options struct {
	Address       []string          `option:"address" help:"Servers, as host:port or URL (nats, tls, ws, wss)."`
	User          string            `option:"user" help:"User name."`
	Password      driver.Secret     `option:"password" help:"Password of user."`
	Token         driver.Secret     `option:"token" help:"Token, instead of user and password."`
	Creds         string            `option:"creds" file:"yes" help:"Credentials file (JWT and key), instead of user, password and token."`
	TLS           driver.TLSOptions `option:"tls"`
	PingInterval  time.Duration     `option:"ping-interval" min:"1ms" help:"How often the client pings the server. After two pings without an answer the connection ends."`
	ReconnectWait time.Duration     `option:"reconnect-wait" min:"1ms" help:"Pause before each attempt to reconnect. The attempts never end."`
	WriteTimeout  time.Duration     `option:"write-timeout" min:"1ms" help:"How long a write may block before the client gives up the connection."`
}

// Defaults returns options for a server with the vendor's defaults on this host.
func Defaults() Options {
	return Options{
		Address: []string{nats.DefaultURL},
		// The client's default, 2 min, detects a silent server only after up to 6 min, which is
		// longer than a run.
		PingInterval:  10 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		WriteTimeout:  nats.DefaultFlusherTimeout,
	}
}

// Formats of server addresses and of monitoring addresses. The client uses the same default ports.
var (
	servers = endpoint.Kind{
		Schemes: []string{"nats", "ws"}, Secure: []string{"tls", "wss"}, User: true, Path: true,
		Port: "4222", Ports: map[string]string{"ws": "80", "wss": "443"}, Like: nats.DefaultURL,
	}
	Monitors = endpoint.Kind{
		Schemes: []string{"http"}, Secure: []string{"https"}, Path: true,
		Port: "80", Ports: map[string]string{"https": "443"}, Like: "http://127.0.0.1:8222",
	}
)

// Validate reports every fault, joined. It reads no files.
func (o *Options) Validate() error {
	_, address := servers.All("address", o.Address)
	faults := driver.Faults{address, o.TLS.Validate()}
	ways := 0
	for _, given := range []bool{o.User != "", !o.Token.IsZero(), o.Creds != ""} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		faults.Add("user", "only one of user, token and creds may be given")
	}
	if o.User == "" && !o.Password.IsZero() {
		faults.Add("password", "is given without user")
	}
	return faults.Join()
}

// Show returns the addresses without anything before an @.
func (o *Options) Show() string {
	l, _ := servers.All("address", o.Address)
	shown := make([]string, len(l))
	for i, e := range l {
		shown[i] = e.String()
	}
	return strings.Join(shown, ", ")
}

func (o *Options) HostPorts() []string {
	l, _ := servers.All("address", o.Address)
	all := make([]string, len(l))
	for i, e := range l {
		all[i] = e.HostPort()
	}
	return all
}

// mostCreds limits the size of a credentials file, in bytes. A JWT with many permissions takes
// about 10 KiB.
const mostCreds = 1 << 20

// access returns the client's options for credentials and TLS. It reads the files.
func (o *Options) access() (options []nats.Option, err error) {
	switch {
	case o.User != "":
		options = append(options, nats.UserInfo(o.User, o.Password.Reveal()))
	case !o.Token.IsZero():
		options = append(options, nats.Token(o.Token.Reveal()))
	case o.Creds != "":
		b, err := userfile.Read(o.Creds, mostCreds)
		if err != nil {
			return nil, &driver.OptionError{Name: "creds", Err: err}
		}
		options = append(options, nats.UserCredentialBytes(b))
	}
	if o.TLS == (driver.TLSOptions{}) {
		return options, nil
	}
	config, err := o.TLS.Config()
	return append(options, nats.Secure(config)), err
}
