package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
)

// refusals are what a server's errors begin with, or hold, by the contract's
// words. (https://redis.io/docs/latest/develop/reference/protocol-spec/, errors)
var refusals = []struct {
	text string
	is   error
}{
	{"NOAUTH", driver.ErrAuth},
	{"WRONGPASS", driver.ErrAuth},
	{"NOPERM", driver.ErrAuth},
	{"ERR invalid password", driver.ErrAuth},
	{"ERR AUTH", driver.ErrAuth},
	{"OOM", driver.ErrOverloaded},
	{"LOADING", driver.ErrOverloaded},
	{"BUSY ", driver.ErrOverloaded}, // BUSYGROUP is another
	{"MISCONF", driver.ErrOverloaded},
	{"NOREPLICAS", driver.ErrOverloaded},
	{"MASTERDOWN", driver.ErrOverloaded},
	{"ERR max number of clients", driver.ErrOverloaded},
	{"WRONGTYPE", driver.ErrUnsupported},
	{"READONLY", driver.ErrUnsupported},
	{"MOVED", driver.ErrUnsupported},
	{"CROSSSLOT", driver.ErrUnsupported},
	{"ERR unknown command", driver.ErrUnsupported},
	{"ERR Protocol error: invalid bulk length", driver.ErrTooLarge},
}

// local is what only one connection says in an error of a socket: "read tcp
// 127.0.0.1:50312->127.0.0.1:6379: ...".
var local = regexp.MustCompile(`\S+->`)

// A plainError is an error whose text says nothing that only one connection says.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// plain takes from an error's text what would keep two of the same kind apart:
// errors are tallied by their texts.
func plain(err error) error {
	text := err.Error()
	if !strings.Contains(text, "->") {
		return err
	}
	return &plainError{local.ReplaceAllString(text, ""), err}
}

// Cause adds to an error of the client or the server the contract's error that it
// is. What has none stays as it is, but for local ports in its text.
func Cause(err error) error {
	var is error
	var said redis.Error
	var network net.Error
	switch {
	case err == nil:
		return nil
	case isContract(err):
		return plain(err)
	case errors.As(err, &said):
		is = refusal(said)
		if is == nil {
			return err
		}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		is = driver.ErrTimeout
	case errors.As(err, &network), broken(err):
		is = driver.ErrDisconnected
	default:
		return plain(err)
	}
	return fmt.Errorf("%w: %w", is, plain(err))
}

// broken reports whether err is the end of a connection.
func broken(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNREFUSED, redis.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refusal returns the contract's error for what a server said; nil for none.
func refusal(said error) error {
	for _, r := range refusals {
		if strings.HasPrefix(said.Error(), r.text) {
			return r.is
		}
	}
	return nil
}

// Answered reports whether the server answered, be it with an error.
func Answered(err error) bool {
	var said redis.Error
	return err == nil || errors.As(err, &said)
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
