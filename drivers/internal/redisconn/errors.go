package redisconn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// refusals maps the prefixes of server errors to the contract's errors
// (https://redis.io/docs/latest/develop/reference/protocol-spec/, errors).
var refusals = []struct {
	text string
	is   error
}{
	{"NOAUTH", driver.ErrAuth},
	{"WRONGPASS", driver.ErrAuth},
	{"NOPERM", driver.ErrAuth},
	{"ERR invalid password", driver.ErrAuth},
	{"ERR AUTH", driver.ErrAuth},
	{"OOM", driver.ErrBlocked},
	{"LOADING", driver.ErrBlocked},
	{"BUSY ", driver.ErrOverloaded}, // BUSYGROUP is a different error
	{"MISCONF", driver.ErrBlocked},
	{"NOREPLICAS", driver.ErrBlocked},
	{"MASTERDOWN", driver.ErrBlocked},
	{"ERR max number of clients", driver.ErrOverloaded},
	{"WRONGTYPE", driver.ErrUnsupported},
	{"READONLY", driver.ErrUnsupported},
	{"MOVED", driver.ErrDisconnected},     // to another master; see CheckMoved
	{"ASK", driver.ErrOverloaded},         // the slot is moving to another master
	{"TRYAGAIN", driver.ErrOverloaded},    // the same, for several keys
	{"CLUSTERDOWN", driver.ErrBlocked},    // no majority of masters, or a slot without one
	{"UNBLOCKED", driver.ErrDisconnected}, // a blocking read on a former master
	{"CROSSSLOT", driver.ErrUnsupported},
	{"ERR unknown command", driver.ErrUnsupported},
	{"ERR This instance has cluster support disabled", driver.ErrUnsupported},
	{"ERR Protocol error: invalid bulk length", driver.ErrTooLarge},
}

// refusal maps a server's error text to the contract's error, nil for none.
func refusal(said string) error {
	for _, r := range refusals {
		if strings.HasPrefix(said, r.text) {
			return r.is
		}
	}
	return nil
}

// words maps the errors of the client and of the server.
var words = failure.Map{Is: func(err error) error {
	var said redis.Error
	switch {
	case errors.As(err, &said):
		return refusal(said.Error())
	case errors.Is(err, redis.ErrClosed):
		return driver.ErrDisconnected
	}
	return nil
}}

// Cause maps an error of the client or the server to the contract's. Without a match, it only
// removes local ports from the text.
func Cause(err error) error { return words.Cause(err) }

// Unreachable is Cause, but ErrUnreachable if the server did not answer.
func Unreachable(err error) error {
	if c := Cause(err); driver.IsAnswer(c) || Answered(err) {
		return c
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, words.Plain(err))
}

// Answered reports whether the server answered, even with an error.
func Answered(err error) bool {
	var said redis.Error
	return err == nil || errors.As(err, &said)
}
