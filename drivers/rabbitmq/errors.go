package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
)

// local is what the same error of two connections differs in: the address of our
// own socket ("read tcp 127.0.0.1:50312->127.0.0.1:5672: ..."). Errors are tallied
// by their texts.
var local = regexp.MustCompile(`\S+->`)

// oversize is what the server says of a message that is too large.
var oversize = regexp.MustCompile(`message size (\d+) is larger than configured max size`)

// isDown reports whether the server has what was asked for on a node that is not
// there, which it calls "not found".
func isDown(reason string) bool {
	return strings.Contains(reason, "down or inaccessible") || strings.Contains(reason, "due to timeout")
}

// meaning returns an error of the client library, which carries a code of the
// protocol, as the contract's error that it is.
// (https://www.rabbitmq.com/amqp-0-9-1-reference#constants)
func meaning(err error) error {
	var e *client.Error
	if err == nil || isContract(err) || !errors.As(err, &e) {
		return err
	}
	var is error
	switch e.Code {
	case client.AccessRefused:
		is = driver.ErrAuth
	case client.NotAllowed:
		is = driver.ErrUnsupported
		if strings.Contains(e.Reason, "access to vhost") {
			is = driver.ErrAuth
		}
	case client.NotFound:
		is = driver.ErrUnsupported
		if isDown(e.Reason) {
			is = driver.ErrUnreachable
		}
	case client.PreconditionFailed:
		is = driver.ErrUnsupported
		if oversize.MatchString(e.Reason) {
			is = driver.ErrTooLarge
		}
	case client.ContentTooLarge:
		is = driver.ErrTooLarge
	case client.ResourceError:
		is = driver.ErrOverloaded
	case client.ResourceLocked, client.InvalidPath, client.NotImplemented, client.CommandInvalid, client.SyntaxError:
		is = driver.ErrUnsupported
	default: // 320, and what the client calls its own end: 501, 504
		is = driver.ErrDisconnected
	}
	return fmt.Errorf("%w: %s", is, told(e))
}

// told is what an error of the protocol says, with its code.
func told(e *client.Error) string {
	if !e.Server {
		return local.ReplaceAllString(e.Reason, "")
	}
	return strconv.Itoa(e.Code) + " " + e.Reason
}

// lost returns why a connection, or the channel on it, ended.
func lost(e *client.Error) error {
	if e == nil {
		return fmt.Errorf("%w: closed", driver.ErrDisconnected)
	}
	if err := meaning(e); !errors.Is(err, driver.ErrAuth) && !errors.Is(err, driver.ErrUnsupported) {
		return err
	}
	// What it was about is not there any more; what else was under way was lost with
	// the channel.
	return fmt.Errorf("%w: %s", driver.ErrDisconnected, told(e))
}

// unreachable returns an error of the network, or of a context, as one of a
// system that does not answer.
func unreachable(err error) error {
	switch {
	case isContract(err):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op
	}
	return fmt.Errorf("%w: %s", driver.ErrUnreachable, local.ReplaceAllString(err.Error(), ""))
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
