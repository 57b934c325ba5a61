package natsstreaming

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// Errors of the server, which it sends as texts (server/server.go,
// stores/store.go).
const (
	unknownPublisher = "stan: invalid publish request"      // of a session that the server does not know
	unknownClient    = "stan: unknown clientID"             // the same, for a subscription
	takenClient      = "stan: clientID already registered"  // another session has the client ID, and lives
	tooManyChannels  = "too many channels"                  // max_channels
	tooManySubs      = "too many subscriptions per channel" // max_subs
	noLeader         = "node is not the leader"             // of Raft: the cluster elects
	lostLeader       = "leadership lost while committing log"
)

// errNoSession is what a message gets while there is no session.
var errNoSession = fmt.Errorf("%w: the session is being made again", driver.ErrDisconnected)

// cause is natsconn.Cause with the errors of sessions.
func cause(err error) error {
	if err == nil {
		return nil
	}
	var is error
	text := err.Error()
	switch {
	case errors.Is(err, stan.ErrConnectionClosed), errors.Is(err, stan.ErrBadConnection), errors.Is(err, stan.ErrMaxPings),
		text == unknownPublisher, text == unknownClient:
		is = driver.ErrDisconnected
	case errors.Is(err, stan.ErrTimeout), errors.Is(err, stan.ErrSubReqTimeout), errors.Is(err, stan.ErrUnsubReqTimeout),
		errors.Is(err, stan.ErrCloseReqTimeout), errors.Is(err, stan.ErrConnectReqTimeout):
		is = driver.ErrTimeout
	case text == takenClient:
		is = driver.ErrUnsupported
	case strings.Contains(text, tooManyChannels), strings.Contains(text, tooManySubs),
		strings.Contains(text, noLeader), strings.Contains(text, lostLeader):
		is = driver.ErrOverloaded
	default:
		return natsconn.Cause(err)
	}
	return fmt.Errorf("%w: %w", is, err)
}

// passing reports whether an error may be gone when asked again: nobody has
// answered, as while a cluster elects, the server has said so, or the connection
// is being made again.
func passing(err error) bool {
	return errors.Is(err, driver.ErrDisconnected) || errors.Is(err, stan.ErrConnectReqTimeout) || errors.Is(err, stan.ErrSubReqTimeout) ||
		errors.Is(err, stan.ErrUnsubReqTimeout) || errors.Is(err, stan.ErrCloseReqTimeout) ||
		strings.Contains(err.Error(), noLeader) || strings.Contains(err.Error(), lostLeader) ||
		err.Error() == unknownClient
}
