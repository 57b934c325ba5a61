// Package redisconn is what the Redis drivers share: where and how to connect by
// the go-redis client, how its errors read in the contract's words, commands that
// are sent without waiting for the one before, and what a server tells of itself.
package redisconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
)

// port is the vendor's.
const port = "6379"

// Options say where the servers are and how to connect to them. They are the
// options of the same names of both drivers.
type Options struct {
	Address       []string          `option:"address" help:"Servers, as host:port or URL (redis, rediss); of several the first that is a master is used, now and whenever a connection is lost."`
	User          string            `option:"user" help:"User name (ACL); none: the default user."`
	Password      driver.Secret     `option:"password" help:"Password of user, or of the server (requirepass)."`
	TLS           driver.TLSOptions `option:"tls"`
	AckTimeout    time.Duration     `option:"ack-timeout" help:"How long the client waits for the answer to a command, and for the network to take its bytes, before it gives the connection up."`
	ReconnectWait time.Duration     `option:"reconnect-wait" help:"Pause of a consumer between two attempts to connect again; it goes on for ever."`
}

// Defaults returns the options of a server of the vendor's defaults on this host.
func Defaults() Options {
	return Options{
		Address: []string{"redis://127.0.0.1:" + port},
		// Longer than a pause of a server that a fault puts into a run.
		AckTimeout:    30 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
	}
}

// Validate reports every fault, joined. It reads no files.
func (o *Options) Validate() error {
	errs := []error{o.TLS.Validate()}
	bad := func(name, format string, v ...any) {
		errs = append(errs, &driver.OptionError{Name: name, Err: fmt.Errorf(format, v...)})
	}
	if len(o.Address) == 0 {
		bad("address", "is empty (one server or more)")
	}
	for _, a := range o.Address {
		if _, err := parse(a); err != nil {
			bad("address", "%w", err)
		}
	}
	if o.User != "" && o.Password.IsZero() {
		bad("user", "is given without password")
	}
	// The client reads a timeout of less as a setting of another kind.
	if o.AckTimeout < time.Millisecond {
		bad("ack-timeout", "%v is too short (1ms or more)", o.AckTimeout)
	}
	if o.ReconnectWait <= 0 {
		bad("reconnect-wait", "%v is not positive", o.ReconnectWait)
	}
	return errors.Join(errs...)
}

// A place is one server to connect to.
type place struct {
	address        string // host:port
	tls            bool
	user, password string // of the URL
}

// parse reads one address. Its errors do not repeat it: it may hold a password.
func parse(a string) (place, error) {
	if !strings.Contains(a, "://") {
		a = "redis://" + a
	}
	u, err := url.Parse(a)
	if err != nil {
		return place{}, errors.New("is not a URL (such as redis://127.0.0.1:6379)")
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return place{}, fmt.Errorf("scheme %q (redis, rediss)", u.Scheme)
	}
	if u.Hostname() == "" {
		return place{}, errors.New("has no host (such as redis://127.0.0.1:6379)")
	}
	if strings.Trim(u.Path, "/") != "" {
		return place{}, errors.New("names a database (database 0 is used)")
	}
	p := place{address: u.Host, tls: u.Scheme == "rediss"}
	if u.Port() == "" {
		p.address = net.JoinHostPort(u.Hostname(), port)
	}
	if u.User != nil {
		p.user = u.User.Username()
		p.password, _ = u.User.Password()
	}
	return p, nil
}

// places returns the servers.
func (o *Options) places() ([]place, error) {
	ps := make([]place, len(o.Address))
	for i, a := range o.Address {
		p, err := parse(a)
		if err != nil {
			return nil, &driver.OptionError{Name: "address", Err: err}
		}
		if o.User != "" || !o.Password.IsZero() {
			p.user, p.password = o.User, o.Password.Reveal()
		}
		ps[i] = p
	}
	return ps, nil
}

// tls returns the settings for TLS with that server, nil where none was asked
// for. It reads the files.
func (o *Options) tls(p place) (*tls.Config, error) {
	if !p.tls && o.TLS == (driver.TLSOptions{}) {
		return nil, nil
	}
	c, err := o.TLS.Config()
	if err != nil {
		return nil, err
	}
	c.ServerName, _, _ = net.SplitHostPort(p.address)
	return c, nil
}

// Server is the settings of a server that weir starts.
type Server struct {
	AppendOnly  string `option:"appendonly" allowed:"no,yes" help:"Server started by weir: keep an append-only file."`
	AppendFsync string `option:"appendfsync" allowed:"always,everysec,no" help:"Server started by weir: when the append-only file is synced."`
}

// ServerDefaults returns the vendor's defaults.
func ServerDefaults() Server { return Server{AppendOnly: "no", AppendFsync: "everysec"} }
