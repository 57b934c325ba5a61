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

// inbox is a text of the client that differs between connections: it has random
// letters.
var inbox = regexp.MustCompile(nats.InboxPrefix + `[\w.$*-]+`)

// words are the errors of the client.
var words = Words(func(error) error { return nil })

// Words returns the errors of the client and those that is finds: what only one driver's
// servers say.
func Words(is func(error) error) failure.Map {
	return failure.Map{Hide: inbox, With: nats.InboxPrefix + "*", Is: func(err error) error {
		if e := is(err); e != nil {
			return e
		}
		return spoken(err)
	}}
}

// Cause adds to an error of the client the contract's error that it is, as Words has
// it. It allocates; there are no errors on the hot path.
func Cause(err error) error { return words.Cause(err) }

// spoken returns the contract's error for one of the client.
func spoken(err error) error {
	is := func(errs ...error) bool {
		return slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) })
	}
	switch {
	case is(nats.ErrMaxPayload):
		return driver.ErrTooLarge
	case natsdial.IsAuth(err):
		return driver.ErrAuth
	case is(nats.ErrReconnectBufExceeded):
		// There is no connection, and no room to wait for one: "outbound buffer limit
		// exceeded". It is wrapped without its text.
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

// dropped returns the fault of a subscription that the client could not hand its
// messages to fast enough. It has no count: faults are tallied by their texts.
func dropped(sub *nats.Subscription, err error) error {
	if !errors.Is(err, nats.ErrSlowConsumer) || sub == nil {
		return Cause(err)
	}
	if strings.HasPrefix(sub.Subject, nats.InboxPrefix) {
		return fmt.Errorf("messages dropped by the client: %w", err)
	}
	return fmt.Errorf("%s: messages dropped by the client: %w", sub.Subject, err)
}
