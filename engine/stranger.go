package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/spoken"
)

// A StrangerError is a driver's error of opening, with what is known about the server that
// answered at its address instead of the driver's system.
type StrangerError struct {
	Err error  // the driver's
	Is  string // a clause that names the address
}

// Error returns the driver's error and what answered.
func (e *StrangerError) Error() string { return fmt.Sprintf("%v (%s)", e.Err, e.Is) }

// Unwrap returns the driver's error.
func (e *StrangerError) Unwrap() error { return e.Err }

// identify returns a *StrangerError instead of a driver's error of opening where a server
// answers at the driver's first address: a client of another protocol reports only that it
// did not understand. In virtual time there is no server.
func (r *run) identify(ctx context.Context, err error) error {
	lost := errors.Is(err, driver.ErrUnreachable) || errors.Is(err, driver.ErrDisconnected)
	if !lost || ctx.Err() != nil || r.virtual() {
		return err
	}
	at := addressOf(driver.Options(r.cfg.Options))
	if at == "" {
		return err
	}
	protocol, dialled := spoken.At(ctx, at)
	is := ""
	switch {
	case dialled != nil:
		return err // the driver's error says it
	case protocol == spoken.None:
		is = at + " accepts connections, but weir does not know the protocol that it speaks"
	case protocol != spoken.TLS:
		is = fmt.Sprintf("the server at %s speaks %s, without TLS", at, protocol)
	case strings.Contains(err.Error(), "x509: ") && driver.HasOption(r.cfg.Options, "tls.ca"):
		is = fmt.Sprintf("set tls.ca to the file of the authority of %s, or tls.insecure=yes", at)
	case strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: "):
		return err // the client speaks TLS too, and says what is wrong with it
	case driver.HasOption(r.cfg.Options, "tls.ca"):
		is = fmt.Sprintf("the server at %s expects TLS: set tls.ca to its authority's file, or tls.insecure=yes", at)
	default:
		is = fmt.Sprintf("the server at %s expects TLS", at)
	}
	return &StrangerError{Err: err, Is: is}
}

// addressOf returns host:port of the first address in a driver's option address; "" where
// it has none, or one without a port. What stands before a host, such as a password, is
// left out.
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
