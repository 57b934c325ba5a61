package admission

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// The schemes of join URLs.
const (
	SchemeWeir = "weir" // a coordinator's own hub, with TLS
	SchemeNATS = "nats" // an existing server without TLS
	SchemeTLS  = "tls"  // an existing server with TLS
)

// An Address is a parsed join URL: where a fleet meets, and the secrets to get in. It prints, logs and
// marshals without its secrets.
type Address struct {
	Scheme string
	Host   string // host:port
	// Pin is the server's certificate. Without one, this host's authorities verify a server of scheme tls;
	// weir always has one, unless IsOwn.
	Pin Pin
	// Token proves a join. For a hub it is also the connection's credentials; weir always has one, unless
	// IsOwn.
	Token Token
	// User and Password are the credentials for an existing server. A user without a password is that
	// server's own token.
	User, Password driver.Secret
}

// allowed is the syntax of join URLs.
const allowed = "weir://HOST:PORT?pin=sha256:HEX&token=TOKEN, as weir fleet token prints it; " +
	"weir://127.0.0.1:PORT for a fleet of the same user on this host; nats://USER:PASSWORD@HOST:PORT or tls://USER:PASSWORD@HOST:PORT for an existing NATS server"

// urlSize limits a join URL, in bytes.
const urlSize = 2048

// Parse parses a join URL. Its error lists every fault and the allowed syntax, but shows nothing of the URL
// that may be a secret.
func Parse(text string) (Address, error) {
	a, errs := parse(strings.TrimSpace(text)) // a Secret made of a file ends with a line break
	if len(errs) == 0 {
		return a, nil
	}
	faults := make([]string, len(errs))
	for i, err := range errs {
		faults[i] = err.Error()
	}
	return Address{}, fmt.Errorf("the join URL %s (%s)", strings.Join(faults, "; "), allowed)
}

func parse(text string) (a Address, faults []error) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(text) > urlSize {
		bad("has %d bytes (at most %d)", len(text), urlSize)
		return a, faults
	}
	u, err := url.Parse(text)
	if err != nil || !strings.Contains(text, "://") || u.Opaque != "" {
		bad("is not a URL") // err shows it
		return a, faults
	}
	a.Scheme = u.Scheme
	port := 4222
	switch u.Scheme {
	case SchemeWeir:
		port = Port
	case SchemeNATS, SchemeTLS:
	default:
		bad("has a scheme other than weir, nats and tls")
	}
	if a.Host, err = hostPort(u, port); err != nil {
		bad("%w", err)
	}
	if u.Path != "" && u.Path != "/" || u.Fragment != "" {
		bad("has something between its port and its parameters, or after them")
	}
	if u.User != nil {
		password, both := u.User.Password()
		switch {
		case u.Scheme == SchemeWeir:
			bad("has text before an @ (weir:// needs no user)")
		case u.User.Username() == "" || both && password == "":
			bad("has an @ and not both of a user and a password before it, nor a server's token")
		}
		a.User = driver.NewSecret(u.User.Username(), "")
		if both {
			a.Password = driver.NewSecret(password, "")
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		bad("has parameters that cannot be read")
	}
	for name, values := range query {
		switch {
		case name != "pin" && name != "token":
			bad("has a parameter other than pin and token") // not shown: it may be a secret without a name
		case len(values) != 1:
			bad("has its %s twice", name)
		case name == "pin" && u.Scheme == SchemeNATS:
			bad("has a pin, but nats:// has no TLS")
		case name == "pin":
			if a.Pin, err = ParsePin(values[0]); err != nil {
				bad("has a pin that %w", err)
			}
		default:
			if a.Token, err = ParseToken(values[0]); err != nil {
				bad("has an invalid token")
			}
		}
	}
	if own := IsLoopback(u.Hostname()) && !query.Has("pin") && !query.Has("token"); u.Scheme == SchemeWeir && !own {
		for _, name := range []string{"pin", "token"} {
			if !query.Has(name) {
				bad("lacks its %s", name)
			}
		}
	}
	return a, faults
}

// IsOwn reports whether it is a hub of this host and user. Keep.Own then adds its certificate and token.
func (a Address) IsOwn() bool { return a.Scheme == SchemeWeir && a.Pin.IsZero() && a.Token.IsZero() }

// IsLoopback reports whether an address without its port is reachable from this host only. Of names it
// knows only localhost, since resolving others is not reliable.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// OnLoopback is IsLoopback for an address with its port.
func OnLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && IsLoopback(host)
}

// hostPort parses the server's address.
func hostPort(u *url.URL, port int) (string, error) {
	name := u.Hostname()
	if name == "" {
		return "", errors.New("has no host")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`%/\,;"'<>[]{}`, r) }) {
		return "", errors.New("has an invalid host")
	}
	if strings.Contains(name, ":") && net.ParseIP(name) == nil {
		return "", errors.New("has an invalid host")
	}
	if p := u.Port(); p != "" {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 {
			return "", errors.New("has an invalid port (1 to 65535)")
		}
		port = n
	}
	return net.JoinHostPort(name, strconv.Itoa(port)), nil
}

// TLS returns the agent's TLS settings; nil without TLS.
func (a Address) TLS() *tls.Config {
	switch {
	case a.Scheme == SchemeNATS:
		return nil
	case !a.Pin.IsZero():
		return a.Pin.TLS()
	default:
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
}

// String returns the URL without its token, user and password.
func (a Address) String() string { return a.text(false) }

// Reveal returns the URL with all its secrets, only for those who are to join.
func (a Address) Reveal() string { return a.text(true) }

// GoString is String.
func (a Address) GoString() string { return a.String() }

// LogValue is String.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalText is String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a Address) text(whole bool) string {
	u := url.URL{Scheme: a.Scheme, Host: a.Host}
	if whole && !a.User.IsZero() {
		u.User = url.User(a.User.Reveal())
		if !a.Password.IsZero() {
			u.User = url.UserPassword(a.User.Reveal(), a.Password.Reveal())
		}
	}
	var query []string
	if !a.Pin.IsZero() {
		query = append(query, "pin="+a.Pin.String())
	}
	if whole && !a.Token.IsZero() {
		query = append(query, "token="+a.Token.Reveal())
	}
	u.RawQuery = strings.Join(query, "&")
	return u.String()
}

// Reachable returns where a hub with this --listen will listen, "" for the default: shown for display,
// reach as agents reach it.
func Reachable(listen string) (shown, reach string, err error) {
	if listen == "" {
		host, err := outward()
		reach = net.JoinHostPort(host, strconv.Itoa(Port))
		return reach, reach, err
	}
	bad := func(why string) error {
		return fmt.Errorf("%q %s (HOST:PORT, with a port of 1 to 65535)", listen, why)
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", "", bad("is not an address")
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return "", "", bad("has an invalid port")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = outward(); err != nil {
			return "", "", err
		}
	}
	return listen, net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// outward returns the address that this host uses to reach others. It sends nothing.
func outward() (string, error) {
	c, err := net.Dial("udp4", "192.0.2.1:9") // an address that no host has
	if err != nil {
		return "", errors.New("weir finds no address at which other hosts reach this one (HOST:PORT)")
	}
	defer func() { _ = c.Close() }()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}
