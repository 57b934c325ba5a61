package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/protocheck"
)

// A StrangerError is a driver's error of opening, with what is known about the server that answered
// at its address instead of the driver's system.
type StrangerError struct {
	Err error  // the driver's
	Is  string // a clause that names the address
}

// Error returns the driver's error and what answered.
func (e *StrangerError) Error() string { return fmt.Sprintf("%v (%s)", e.Err, e.Is) }

// Unwrap returns the driver's error.
func (e *StrangerError) Unwrap() error { return e.Err }

// identify replaces a driver's error of opening by a *StrangerError if another kind of server
// answers at the driver's first address: a client reports only that it did not understand the
// protocol. In virtual time there is no server.
func (r *run) identify(ctx context.Context, err error) error {
	lost := errors.Is(err, driver.ErrUnreachable) || errors.Is(err, driver.ErrDisconnected)
	if !lost || ctx.Err() != nil || r.virtual() {
		return err
	}
	options := driver.Options(r.cfg.Options)
	at := addressOf(options)
	if at == "" {
		return err
	}
	protocol, dialled := protocheck.At(ctx, at)
	if strings.Contains(err.Error(), alert) {
		protocol = protocheck.TLS // whatever it answers to others
	}
	is := ""
	switch {
	case dialled != nil:
		return err // the driver's error says it
	case protocol == protocheck.None:
		is = at + " accepts connections, but weir does not know the protocol that it speaks"
	case protocol != protocheck.TLS:
		is = fmt.Sprintf("the server at %s speaks %s, without TLS", at, protocol)
	case refused(err) && driver.HasOption(r.cfg.Options, "tls.cert"):
		is = fmt.Sprintf("the server at %s demands a client's certificate of an authority that it knows: set tls.cert and tls.key", at)
	case strings.Contains(err.Error(), "x509: ") && driver.HasOption(r.cfg.Options, "tls.ca"):
		is = fmt.Sprintf("set tls.ca to the file of the authority of %s, or tls.insecure=yes", at)
	case strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: "):
		return err // the client speaks TLS too, and reports what is wrong with it
	case encrypts(options):
		is = fmt.Sprintf("a server answers at %s, over TLS", at)
	case driver.HasOption(r.cfg.Options, "tls.ca"):
		is = fmt.Sprintf("the server at %s expects TLS: set tls.ca to its authority's file, or tls.insecure=yes", at)
	default:
		is = fmt.Sprintf("the server at %s expects TLS", at)
	}
	return &StrangerError{Err: err, Is: is}
}

// alert is in an error that a TLS server sent.
const alert = "remote error: tls: "

// refused reports whether the server rejected or missed the client's certificate, by a TLS alert.
func refused(err error) bool {
	_, sent, _ := strings.Cut(err.Error(), alert)
	for _, says := range []string{"bad certificate", "certificate required", "unknown certificate", "unsupported certificate", "expired certificate"} {
		if strings.HasPrefix(sent, says) {
			return true
		}
	}
	return false
}

// encrypts reports whether an address or an option makes the driver use TLS.
func encrypts(options []driver.Option) bool {
	for _, o := range options {
		switch o.Name {
		case "address":
			switch scheme, _, _ := strings.Cut(o.Default, "://"); scheme {
			case "tls", "wss", "https", "amqps", "mqtts", "rediss", "pulsar+ssl", "rabbitmq-stream+tls":
				return true
			}
		case "tls.ca", "tls.cert":
			if o.Default != "" {
				return true
			}
		case "tls.on", "tls.insecure":
			if o.Default == "true" || o.Default == "yes" {
				return true
			}
		}
	}
	return false
}

// addressOf returns host:port of the first address in a driver's address option; "" if there is
// none, or none with a port. It drops what precedes the host, such as a password.
func addressOf(options []driver.Option) string {
	for _, o := range options {
		if o.Name != "address" {
			continue
		}
		first, _, _ := strings.Cut(o.Default, ",")
		first = strings.TrimSpace(first)
		if !strings.Contains(first, "://") {
			first = "tcp://" + first
		}
		u, err := url.Parse(first)
		if err != nil || u.Hostname() == "" || u.Port() == "" {
			return ""
		}
		return net.JoinHostPort(u.Hostname(), u.Port())
	}
	return ""
}
