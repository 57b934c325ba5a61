package natsconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/natsdial"
)

// A plainError is an error whose text says nothing that only one connection says.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// Texts of the client that differ between connections: an inbox, of random
// letters, and the local address in an error of a socket ("read tcp
// 127.0.0.1:50312->127.0.0.1:4222: ...").
var (
	inbox = regexp.MustCompile(nats.InboxPrefix + `[\w.$*-]+`)
	local = regexp.MustCompile(`\S+->`)
)

// plain takes from an error's text what would keep two of the same kind apart:
// errors are tallied by their texts.
func plain(err error) error {
	text := err.Error()
	if !strings.Contains(text, nats.InboxPrefix) && !strings.Contains(text, "->") {
		return err // as a rule; a lost connection fails many messages
	}
	p := local.ReplaceAllString(inbox.ReplaceAllString(text, nats.InboxPrefix+"*"), "")
	if p == text {
		return err
	}
	return &plainError{p, err}
}

// errBetween stands for what the client says of a message where there is no
// connection and no room to wait for one in: "outbound buffer limit exceeded".
var errBetween error = &plainError{
	"connection lost: and not made again yet",
	fmt.Errorf("%w: %w", driver.ErrDisconnected, nats.ErrReconnectBufExceeded),
}

// Cause adds to an error of the client the contract's error that it is. What has
// none stays as it is, but for its text: inboxes and local ports are left out. It
// allocates; there are no errors on the hot path.
func Cause(err error) error {
	var is error
	switch {
	case err == nil:
		return nil
	case isContract(err):
		return plain(err)
	case errors.Is(err, nats.ErrMaxPayload):
		is = driver.ErrTooLarge
	case natsdial.IsAuth(err):
		is = driver.ErrAuth
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return errBetween
	case errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrStaleConnection),
		errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.EPIPE),
		errors.Is(err, syscall.ECONNRESET):
		is = driver.ErrDisconnected
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		is = driver.ErrTimeout
	case errors.Is(err, nats.ErrMaxConnectionsExceeded), errors.Is(err, nats.ErrMaxAccountConnectionsExceeded):
		is = driver.ErrOverloaded
	default:
		return plain(err)
	}
	return fmt.Errorf("%w: %w", is, plain(err))
}

// isContract reports whether err already speaks the contract's words.
func isContract(err error) bool {
	for _, e := range []error{
		driver.ErrUnreachable, driver.ErrAuth, driver.ErrUnsupported, driver.ErrTooLarge, driver.ErrTimeout,
		driver.ErrDisconnected, driver.ErrOverloaded, driver.ErrClosed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
