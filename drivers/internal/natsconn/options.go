// Package natsconn is what the two NATS drivers share: where and how to connect
// by the nats.go client, how its errors read in the contract's words, how names
// are made, and what a server tells of itself.
package natsconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/userfile"
)

// Options say where the servers are and how to connect to them. They are the
// options of the same names of both drivers.
type Options struct {
	Address       []string          `option:"address" help:"Servers, as host:port or URL (nats, tls, ws, wss)."`
	User          string            `option:"user" help:"User name."`
	Password      driver.Secret     `option:"password" help:"Password of user."`
	Token         driver.Secret     `option:"token" help:"Token, instead of user and password."`
	Creds         string            `option:"creds" file:"yes" help:"Credentials file (JWT and key), instead of user, password and token."`
	TLS           driver.TLSOptions `option:"tls"`
	PingInterval  time.Duration     `option:"ping-interval" help:"How often the client asks whether the server is there; two silences end the connection."`
	ReconnectWait time.Duration     `option:"reconnect-wait" help:"Pause between two attempts to connect again; it goes on for ever."`
	WriteTimeout  time.Duration     `option:"write-timeout" help:"How long the client waits for the network to take its bytes before it gives the connection up."`
}

// Defaults returns the options of a server of the vendor's defaults on this host.
func Defaults() Options {
	return Options{
		Address: []string{nats.DefaultURL},
		// The client's own default, 2 min, finds a server that fell silent after
		// as many as 6; a run is shorter.
		PingInterval:  10 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		WriteTimeout:  nats.DefaultFlusherTimeout,
	}
}

// Validate reports every fault, joined. It reads no files.
func (o *Options) Validate() error {
	var errs []error
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
	ways := 0
	for _, given := range []bool{o.User != "", !o.Token.IsZero(), o.Creds != ""} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		bad("user", "only one of user, token and creds may be given")
	}
	if o.User == "" && !o.Password.IsZero() {
		bad("password", "is given without user")
	}
	if err := o.TLS.Validate(); err != nil {
		errs = append(errs, err)
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"ping-interval", o.PingInterval}, {"reconnect-wait", o.ReconnectWait}, {"write-timeout", o.WriteTimeout}} {
		if d.v <= 0 {
			bad(d.name, "%v is not positive", d.v)
		}
	}
	return errors.Join(errs...)
}

// parse reads one address. Its errors do not repeat it: it may hold a password.
func parse(a string) (*url.URL, error) {
	if !strings.Contains(a, "://") {
		a = "nats://" + a
	}
	u, err := url.Parse(a)
	if err != nil {
		return nil, errors.New("is not a URL (such as nats://127.0.0.1:4222)")
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return nil, fmt.Errorf("scheme %q (nats, tls, ws, wss)", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, errors.New("has no host (such as nats://127.0.0.1:4222)")
	}
	return u, nil
}

// Show returns the addresses without what stands before an @.
func (o *Options) Show() string {
	shown := make([]string, 0, len(o.Address))
	for _, a := range o.Address {
		u, err := parse(a)
		if err != nil {
			continue
		}
		u.User = nil
		shown = append(shown, u.String())
	}
	return strings.Join(shown, ", ")
}

// servers returns the addresses as the client takes them.
func (o *Options) servers() ([]string, error) {
	urls := make([]string, len(o.Address))
	for i, a := range o.Address {
		u, err := parse(a)
		if err != nil {
			return nil, &driver.OptionError{Name: "address", Err: err}
		}
		urls[i] = u.String()
	}
	return urls, nil
}

// mostCreds bounds a credentials file, in bytes. A JWT with many permissions takes
// some 10 KiB.
const mostCreds = 1 << 20

// auth returns the client's options for the credentials. It reads the file.
func (o *Options) auth() ([]nats.Option, error) {
	switch {
	case o.User != "":
		return []nats.Option{nats.UserInfo(o.User, o.Password.Reveal())}, nil
	case !o.Token.IsZero():
		return []nats.Option{nats.Token(o.Token.Reveal())}, nil
	case o.Creds != "":
		b, err := userfile.Read(o.Creds, mostCreds)
		if err != nil {
			return nil, &driver.OptionError{Name: "creds", Err: err}
		}
		return []nats.Option{nats.UserCredentialBytes(b)}, nil
	}
	return nil, nil
}

// tls returns the settings for TLS, nil where none was asked for. It reads the
// files.
func (o *Options) tls() (*tls.Config, error) {
	if o.TLS == (driver.TLSOptions{}) {
		return nil, nil
	}
	return o.TLS.Config()
}
