package amqp1conn

import (
	"errors"
	"fmt"
	"strings"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// conditions maps the protocol's errors
// (https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-transport-v1.0-os.html#type-amqp-error).
var conditions = map[client.ErrCond]error{
	client.ErrCondUnauthorizedAccess:    driver.ErrAuth,
	client.ErrCondNotFound:              driver.ErrUnsupported,
	client.ErrCondNotAllowed:            driver.ErrUnsupported,
	client.ErrCondNotImplemented:        driver.ErrUnsupported,
	client.ErrCondInvalidField:          driver.ErrUnsupported,
	client.ErrCondPreconditionFailed:    driver.ErrUnsupported,
	client.ErrCondMessageSizeExceeded:   driver.ErrTooLarge,
	client.ErrCondResourceLimitExceeded: driver.ErrOverloaded,
	client.ErrCondConnectionForced:      driver.ErrDisconnected,
	client.ErrCondDetachForced:          driver.ErrDisconnected,
	client.ErrCondResourceDeleted:       driver.ErrDisconnected,
}

// words maps the errors of the client and of the servers.
var words = failure.Map{Is: func(err error) error {
	var e *client.Error
	if errors.As(err, &e) {
		is := conditions[e.Condition]
		if is == nil {
			return nil
		}
		return failure.Said(is, err, string(e.Condition)+": "+e.Description)
	}
	switch {
	// The client has no error values for these.
	case strings.HasPrefix(err.Error(), "SASL PLAIN auth failed"):
		return failure.Said(driver.ErrAuth, err, strings.TrimRight(err.Error(), ": ")) // usually nothing is added
	case strings.HasPrefix(err.Error(), "no supported auth mechanism"):
		return driver.ErrAuth
	case errors.As(err, new(*client.ConnError)), errors.As(err, new(*client.SessionError)), errors.As(err, new(*client.LinkError)):
		return driver.ErrDisconnected
	}
	return nil
}}

// outcome maps the server's outcome for a message to an error.
func outcome(state client.DeliveryState) error {
	switch s := state.(type) {
	case *client.StateAccepted:
		return nil
	case *client.StateRejected:
		if s.Error != nil {
			return words.Cause(s.Error)
		}
		return errors.New("the server rejected the message")
	case *client.StateReleased, *client.StateModified:
		return fmt.Errorf("%w: the server gave the message back", driver.ErrOverloaded)
	}
	return fmt.Errorf("the server settled the message without an outcome: %w", driver.ErrUnsupported)
}
