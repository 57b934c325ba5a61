package nsq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/weirmq/weir/driver"
)

// What one error of a kind has and the next has not: a message's identity, and
// the local address of a socket ("read tcp 127.0.0.1:50312->127.0.0.1:4150: ...").
// Errors are tallied by their texts.
var (
	identity = regexp.MustCompile(`\b[0-9a-f]{16}\b ?`)
	local    = regexp.MustCompile(`\S+->`)
)

// refusal returns an error that nsqd sent, such as "E_BAD_TOPIC PUB topic name
// ... is not valid", as the contract's error that it is, if it is one.
// (https://nsq.io/clients/tcp_protocol_spec.html)
func refusal(text string) error {
	text = identity.ReplaceAllString(strings.TrimSpace(text), "")
	var is error
	switch code, _, _ := strings.Cut(text, " "); {
	case strings.Contains(text, "too big"):
		is = driver.ErrTooLarge
	case strings.HasPrefix(code, "E_AUTH"), code == "E_UNAUTHORIZED":
		is = driver.ErrAuth
	case code == "E_BAD_TOPIC", code == "E_BAD_CHANNEL", code == "E_INVALID", strings.Contains(text, "TLS required"):
		is = driver.ErrUnsupported
	case strings.HasSuffix(text, "exiting"):
		is = driver.ErrDisconnected // the topic is being deleted, or nsqd ends
	default:
		return fmt.Errorf("nsqd: %s", text)
	}
	return fmt.Errorf("%w: nsqd: %s", is, text)
}

// connecting returns why the client could not connect. Its own errors are texts.
func connecting(err error) error {
	text := local.ReplaceAllString(err.Error(), "")
	switch {
	case isContract(err):
		return err
	case strings.Contains(text, "Auth Required"):
		return fmt.Errorf("%w: the server wants a secret (option token)", driver.ErrAuth)
	case strings.Contains(text, "E_AUTH"), strings.Contains(text, "E_UNAUTHORIZED"):
		return fmt.Errorf("%w: %s", driver.ErrAuth, text)
	case strings.Contains(text, "E_"):
		return fmt.Errorf("%w: %s", driver.ErrUnsupported, text)
	}
	return fmt.Errorf("%w: %s", driver.ErrUnreachable, text)
}

// lost returns why a connection ended.
func lost(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: closed by nsqd", driver.ErrDisconnected)
	case isContract(err):
		return err
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: reset", driver.ErrDisconnected)
	}
	return fmt.Errorf("%w: %s", driver.ErrDisconnected, local.ReplaceAllString(err.Error(), ""))
}

// unreachable returns an error of the network, or of a context, as one of a
// system that does not answer.
func unreachable(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("%w: %s", driver.ErrUnreachable, local.ReplaceAllString(op.Error(), ""))
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
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
