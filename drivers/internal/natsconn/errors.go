package natsconn

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/internal/natsdial"
)

// inbox matches reply subjects, whose random letters differ between connections.
var inbox = regexp.MustCompile(nats.InboxPrefix + `[\w.$*-]+`)

// words maps the client's errors.
var words = Words(func(error) error { return nil })

// Words returns a map of the client's errors, extended by is for errors that only one driver's
// servers return.
func Words(is func(error) error) failure.Map {
	return failure.Map{Hide: inbox, With: nats.InboxPrefix + "*", Is: func(err error) error {
		if e := is(err); e != nil {
			return e
		}
		return contractError(err)
	}}
}

// Cause adds the matching contract error to a client error, as in Words. It allocates; there are no
// errors on the hot path.
func Cause(err error) error { return words.Cause(err) }

// contractError maps a client error to the contract's error.
func contractError(err error) error {
	is := func(errs ...error) bool {
		return slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) })
	}
	switch {
	case is(nats.ErrMaxPayload):
		return driver.ErrTooLarge
	case natsdial.IsAuth(err):
		return driver.ErrAuth
	case is(nats.ErrReconnectBufExceeded):
		// There is no connection, and nothing may be buffered: "outbound buffer limit exceeded".
		// The error is wrapped without its text.
		return fmt.Errorf("%w: and not made again yet%.0w", driver.ErrDisconnected, err)
	case is(nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrStaleConnection):
		return driver.ErrDisconnected
	case is(nats.ErrTimeout):
		return driver.ErrTimeout
	case is(nats.ErrMaxConnectionsExceeded, nats.ErrMaxAccountConnectionsExceeded):
		return driver.ErrOverloaded
	}
	return nil
}

// dropped returns the fault of a subscription whose messages the client had to drop because they
// were not consumed fast enough. It has no count, because faults are counted by text.
func dropped(sub *nats.Subscription, err error) error {
	if !errors.Is(err, nats.ErrSlowConsumer) || sub == nil {
		return Cause(err)
	}
	if strings.HasPrefix(sub.Subject, nats.InboxPrefix) {
		return fmt.Errorf("messages dropped by the client: %w", err)
	}
	return fmt.Errorf("%s: messages dropped by the client: %w", sub.Subject, err)
}
