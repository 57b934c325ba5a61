// Package redisconn implements what the Redis drivers share: connecting with the go-redis client,
// mapping its errors to the driver contract, pipelined commands, and reading facts from a server.
package redisconn

import (
	"crypto/tls"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
)

// addresses describes valid addresses, with the vendor's port. A path would be a database number.
var addresses = endpoint.Kind{
	Schemes: []string{"redis"}, Secure: []string{"rediss"}, Port: "6379", Like: "redis://127.0.0.1:6379", User: true, Path: true,
}

// Options holds the server addresses and how to connect to them. Both drivers have these options
// under the same names. The client interprets a timeout below 1 ms differently.
type Options struct {
	Address       []string          `option:"address" help:"Servers, as host:port or URL (redis, rediss); of several the first that is a master is used, now and whenever a connection is lost."`
	User          string            `option:"user" help:"User name (ACL); none: the default user."`
	Password      driver.Secret     `option:"password" help:"Password of user, or of the server (requirepass)."`
	TLS           driver.TLSOptions `option:"tls"`
	AckTimeout    time.Duration     `option:"ack-timeout" min:"1ms" help:"How long the client waits for the answer to a command, and for a write, before it gives up the connection."`
	ReconnectWait time.Duration     `option:"reconnect-wait" min:"1ns" help:"Pause of a consumer before each attempt to reconnect. The attempts never end."`
}

// Defaults returns options for a server with the vendor's defaults on this host.
func Defaults() Options {
	return Options{
		Address: []string{"redis://127.0.0.1:6379"},
		// Longer than a fault pauses a server.
		AckTimeout:    30 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
	}
}

// Validate reports every fault that option bounds do not catch, joined. It reads no files.
func (o *Options) Validate() error {
	all, err := addresses.All("address", o.Address)
	faults := driver.Faults{o.TLS.Validate(), err}
	if len(o.Address) == 0 {
		faults.Add("address", "is empty (one server or more)")
	}
	for _, e := range all {
		if e.Path != "" && e.Path != "/0" {
			faults.Add("address", "names a database (database 0 is used)")
		}
	}
	if o.User != "" && o.Password.IsZero() {
		faults.Add("user", "is given without password")
	}
	return faults.Join()
}

// A server is a server to connect to, with user and TLS settings.
type server struct {
	endpoint.Endpoint
	tls *tls.Config // nil: no TLS
}

// servers returns the servers. It reads the TLS files.
func (o *Options) servers() ([]server, error) {
	all, err := addresses.All("address", o.Address)
	if err != nil {
		return nil, err
	}
	out := make([]server, len(all))
	for i, e := range all {
		if o.User != "" || !o.Password.IsZero() {
			e.User, e.Password = o.User, o.Password.Reveal()
		}
		out[i].Endpoint = e
		if out[i].tls, err = e.TLS(o.TLS); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Server holds the settings of a server that weir starts.
type Server struct {
	AppendOnly  string `option:"appendonly" allowed:"no,yes" firm:"yes" help:"Server started by weir: keep an append-only file."`
	AppendFsync string `option:"appendfsync" allowed:"always,everysec,no" firm:"always" help:"Server started by weir: when the append-only file is synced."`
}

// ServerDefaults returns the vendor's defaults.
func ServerDefaults() Server { return Server{AppendOnly: "no", AppendFsync: "everysec"} }
