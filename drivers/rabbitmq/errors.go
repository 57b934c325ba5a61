package rabbitmq

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// oversize matches the server's error for a message that is too large.
var oversize = regexp.MustCompile(`message size (\d+) is larger than configured max size`)

// errorMap maps the client's errors, which carry a protocol code
// (https://www.rabbitmq.com/amqp-0-9-1-reference#constants).
var errorMap = failure.Map{Is: func(err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		return nil
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
		// The server also answers "not found" for a queue on a node that is down.
		if strings.Contains(e.Reason, "down or inaccessible") || strings.Contains(e.Reason, "due to timeout") {
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
	default: // 320, and the client's own codes: 501, 504
		is = driver.ErrDisconnected
	}
	return failure.Said(is, err, describe(e))
}}

// describe returns a protocol error's text, with its code if the server sent it.
func describe(e *client.Error) string {
	if !e.Server {
		return failure.Map{}.Plain(errors.New(e.Reason)).Error()
	}
	return strconv.Itoa(e.Code) + " " + e.Reason
}

// lost returns why a connection, or its channel, ended. What the server no longer has, or permits,
// is ErrDisconnected: everything else in flight was lost with the channel.
func lost(e *client.Error) error {
	if e == nil {
		return fmt.Errorf("%w: closed", driver.ErrDisconnected)
	}
	if err := errorMap.Cause(e); !failure.Hopeless(err) {
		return err
	}
	return fmt.Errorf("%w: %s", driver.ErrDisconnected, describe(e))
}

// unreachable maps an error of the network or a context to ErrUnreachable.
func unreachable(err error) error {
	if driver.IsContract(err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, errorMap.Plain(err))
}
