package natsstreaming

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// Errors that the server sends as texts (server/server.go, stores/store.go).
const (
	unknownPublisher = "stan: invalid publish request"      // the server does not know the session
	unknownClient    = "stan: unknown clientID"             // the same, for a subscription
	takenClient      = "stan: clientID already registered"  // an active session has the client ID
	tooManyChannels  = "too many channels"                  // max_channels
	tooManySubs      = "too many subscriptions per channel" // max_subs
	noLeader         = "node is not the leader"             // of Raft: the cluster is electing
	lostLeader       = "leadership lost while committing log"
)

// errNoSession is the error of a message while there is no session.
var errNoSession = fmt.Errorf("%w: the session is being made again", driver.ErrDisconnected)

// unanswered lists the timeouts of requests other than publishing.
var unanswered = []error{stan.ErrConnectReqTimeout, stan.ErrSubReqTimeout, stan.ErrUnsubReqTimeout, stan.ErrCloseReqTimeout}

func isAny(err error, errs ...error) bool {
	return slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) })
}

// electing reports whether the server has answered that it is not the leader.
func electing(err error) bool {
	return strings.Contains(err.Error(), noLeader) || strings.Contains(err.Error(), lostLeader)
}

// words maps the errors of the client, and of sessions.
var words = natsconn.Words(func(err error) error {
	text := err.Error()
	switch {
	case isAny(err, stan.ErrConnectionClosed, stan.ErrBadConnection, stan.ErrMaxPings), text == unknownPublisher, text == unknownClient:
		return driver.ErrDisconnected
	case isAny(err, unanswered...), errors.Is(err, stan.ErrTimeout):
		return driver.ErrTimeout
	case text == takenClient:
		return driver.ErrUnsupported
	case strings.Contains(text, tooManyChannels), strings.Contains(text, tooManySubs):
		return driver.ErrOverloaded
	case electing(err):
		return driver.ErrBlocked
	}
	return nil
})

// passing reports whether an error may disappear on retry: there was no answer, as during an
// election, the server has said so, or the client is reconnecting.
func passing(err error) bool {
	return errors.Is(err, driver.ErrDisconnected) || isAny(err, unanswered...) || electing(err) || err.Error() == unknownClient
}
