// Package endpoint parses server addresses as users write them: host:port or a URL. Use a Kind for
// every option that holds addresses. Errors never repeat an address, because a user may have
// written a password into it.
package endpoint

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
)

// A Kind describes the valid addresses of one option.
type Kind struct {
	Schemes []string // without TLS; the first is the default; without any here and in Secure: tcp
	Secure  []string // with TLS
	Port    string   // default port; "": a port is required
	Like    string   // an example for errors: "127.0.0.1:4222"
	User    bool     // an address may hold a user and a password
	Path    bool     // an address may have a path

	Ports map[string]string // default ports by scheme; other schemes use Port
}

// An Endpoint is one address.
type Endpoint struct {
	Scheme, Host, Port string
	Secure             bool // the scheme asks for TLS
	User, Password     string
	Path               string
}

func (e Endpoint) HostPort() string { return net.JoinHostPort(e.Host, e.Port) }

// String returns scheme://host:port and the path, without user and password.
func (e Endpoint) String() string { return e.Scheme + "://" + e.HostPort() + e.Path }

func (k Kind) Parse(address string) (Endpoint, error) {
	bad := fmt.Errorf("is not an address such as %s", k.Like)
	schemes := slices.Concat(k.Schemes, k.Secure)
	if len(schemes) == 0 {
		schemes = []string{"tcp"}
	}
	if !strings.Contains(address, "://") {
		address = schemes[0] + "://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return Endpoint{}, bad
	}
	e := Endpoint{Scheme: u.Scheme, Host: u.Hostname(), Port: u.Port(), Secure: slices.Contains(k.Secure, u.Scheme)}
	if !slices.Contains(schemes, u.Scheme) {
		return Endpoint{}, fmt.Errorf("scheme %q (%s)", u.Scheme, strings.Join(schemes, ", "))
	}
	if e.Port == "" {
		e.Port = cmp.Or(k.Ports[u.Scheme], k.Port)
	}
	e.Path = strings.TrimRight(u.Path, "/")
	switch {
	case u.User != nil && !k.User:
		return Endpoint{}, errors.New("holds a user or a password (they are options)")
	case e.Host == "" || e.Port == "":
		return Endpoint{}, bad
	case e.Path != "" && !k.Path || u.RawQuery != "" || u.Fragment != "":
		return Endpoint{}, errors.New("holds more than a host and a port")
	}
	if u.User != nil {
		e.User = u.User.Username()
		e.Password, _ = u.User.Password()
	}
	return e, nil
}

// A List is the addresses of one option.
type List []Endpoint

// All parses the addresses of an option. The error joins all faults, each an *driver.OptionError.
func (k Kind) All(option string, addresses []string) (List, error) {
	var l List
	var errs []error
	for _, a := range addresses {
		e, err := k.Parse(a)
		if err != nil {
			errs = append(errs, &driver.OptionError{Name: option, Err: err})
			continue
		}
		l = append(l, e)
	}
	return l, errors.Join(errs...)
}

func (l List) HostPorts() []string {
	out := make([]string, len(l))
	for i, e := range l {
		out[i] = e.HostPort()
	}
	return out
}

// Secure reports whether any address asks for TLS.
func (l List) Secure() bool { return slices.ContainsFunc(l, func(e Endpoint) bool { return e.Secure }) }

func (l List) String() string { return strings.Join(l.HostPorts(), ", ") }

// TLS returns the TLS settings for a server, or nil if neither its address nor an option asks for
// TLS. It reads the files named in the options.
func (e Endpoint) TLS(o driver.TLSOptions) (*tls.Config, error) {
	if !e.Secure && o == (driver.TLSOptions{}) {
		return nil, nil
	}
	c, err := o.Config()
	if err != nil {
		return nil, err
	}
	c.ServerName = e.Host
	return c, nil
}
