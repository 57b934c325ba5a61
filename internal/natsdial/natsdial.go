// Package natsdial makes the connections to NATS servers that drivers and fleets
// have in common: what the client does not do by itself when it connects, and what
// its errors mean.
package natsdial

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// attempts bounds how often a connection that was overtaken is made again.
const attempts = 5

// Connect connects as nats.Connect does, to what the options say, and again where
// the server was first with its question, five times at most while ctx goes on. It
// blocks for as long as the options let one attempt. Errors are the client's.
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

// overtaken reports whether the server asked whether the client is there before it
// had the client's first word, as it does after two seconds: a client that was held
// up for so long takes the question for the answer, and fails.
func overtaken(err error) bool {
	return strings.Contains(err.Error(), "expected 'PONG', got 'PING'")
}

// IsAuth reports whether an error of the client says that the server refused the
// credentials. Not all that do are wrapped sentinels.
func IsAuth(err error) bool {
	for _, e := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, e) {
			return true
		}
	}
	return strings.Contains(strings.ToLower(err.Error()), "authorization violation")
}
