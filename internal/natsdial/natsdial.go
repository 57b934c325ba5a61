// Package natsdial provides what drivers and fleets share when connecting to NATS servers: a
// workaround for a race in the client's handshake, and the meaning of its errors.
package natsdial

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// attempts limits how often an overtaken connection is retried.
const attempts = 5

// Connect connects like nats.Connect with the given options, but retries if the server's ping came
// first, at most five times and until ctx ends. It blocks for as long as the options allow for one
// attempt. Errors are the client's.
func Connect(ctx context.Context, options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect("", options...)
	for range attempts {
		if err == nil || ctx.Err() != nil || !overtaken(err) {
			break
		}
		nc, err = nats.Connect("", options...)
	}
	return nc, err
}

// overtaken reports whether the server pinged before it received the client's first message, as it
// does after two seconds: a client delayed that long takes the ping for the reply, and fails.
func overtaken(err error) bool {
	return strings.Contains(err.Error(), "expected 'PONG', got 'PING'")
}

// IsAuth reports whether a client error means that the server rejected the credentials. Not all of
// them are wrapped sentinels.
func IsAuth(err error) bool {
	for _, e := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, e) {
			return true
		}
	}
	return strings.Contains(strings.ToLower(err.Error()), "authorization violation")
}
