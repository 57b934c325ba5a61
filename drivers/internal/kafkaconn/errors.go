package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

// Errors of the protocol by the contract's error that they are.
// (https://kafka.apache.org/43/design/protocol/#protocol_error_codes)
func kinds() map[error][]error {
	return map[error][]error{
		driver.ErrTooLarge: {kerr.MessageTooLarge, kerr.RecordListTooLarge},
		driver.ErrAuth: {
			kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.TopicAuthorizationFailed,
			kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed,
		},
		driver.ErrTimeout:    {kgo.ErrRecordTimeout, kgo.ErrRecordRetries, kerr.RequestTimedOut},
		driver.ErrOverloaded: {kgo.ErrMaxBuffered, kerr.ThrottlingQuotaExceeded, kerr.KafkaStorageError},
		driver.ErrClosed:     {kgo.ErrClientClosed, kgo.ErrAborting},
		driver.ErrUnsupported: {
			kerr.InvalidReplicationFactor, kerr.InvalidPartitions, kerr.PolicyViolation, kerr.UnsupportedVersion, kerr.InvalidTopicException,
			kerr.UnsupportedCompressionType,
		},
	}
}

// A plainError is an error whose text says nothing that only one connection says.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// local is the local address in an error of a socket ("read tcp
// 127.0.0.1:50312->127.0.0.1:9092: ...").
var local = regexp.MustCompile(`\S+->`)

// plain takes from an error's text what would keep two of the same kind apart:
// errors are tallied by their texts.
func plainly(err error) error {
	text := err.Error()
	if p := local.ReplaceAllString(text, ""); p != text {
		return &plainError{p, err}
	}
	return err
}

// Cause adds to an error of the client the contract's error that it is. What has
// none stays as it is, but for its text: local ports are left out. It allocates;
// there are no errors on the hot path.
func Cause(err error) error {
	if err == nil || IsContract(err) {
		return err
	}
	is := func(e error) bool { return errors.Is(err, e) }
	for kind, of := range kinds() {
		if slices.ContainsFunc(of, is) {
			return fmt.Errorf("%w: %w", kind, plainly(err))
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", driver.ErrTimeout, plainly(err))
	case slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNREFUSED}, is):
		return fmt.Errorf("%w: %w", driver.ErrDisconnected, plainly(err))
	}
	return plainly(err)
}

// IsContract reports whether err already speaks the contract's words.
func IsContract(err error) bool {
	return slices.ContainsFunc([]error{
		driver.ErrUnreachable, driver.ErrAuth, driver.ErrUnsupported, driver.ErrTooLarge, driver.ErrTimeout,
		driver.ErrDisconnected, driver.ErrOverloaded, driver.ErrClosed,
	}, func(e error) bool { return errors.Is(err, e) })
}

// Unanswered returns err as ErrUnreachable where it is not an answer of a broker.
func Unanswered(err error) error {
	if err = Cause(err); err == nil || errors.Is(err, driver.ErrUnreachable) {
		return err
	}
	if k := (*kerr.Error)(nil); errors.As(err, &k) || errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrAuth) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
}

// code returns the error of a response's code and message, nil for none.
func code(c int16, message *string) error {
	err := kerr.ErrorForCode(c)
	if err != nil && message != nil && *message != "" {
		err = fmt.Errorf("%w: %s", err, *message)
	}
	return err
}
