package driver

import (
	"errors"
	"slices"
)

// The errors that callers distinguish. Drivers wrap them with %w; any other error counts as "other"
// and is tallied by its text.
var (
	// ErrUnreachable: the system does not answer at its address.
	ErrUnreachable = errors.New("system unreachable")
	// ErrAuth: the system rejected the credentials.
	ErrAuth = errors.New("credentials refused")
	// ErrUnsupported: the system or the driver does not support the request.
	ErrUnsupported = errors.New("not supported")
	// ErrTooLarge: the system does not accept a message of this size.
	ErrTooLarge = errors.New("message too large")
	// ErrTimeout: no confirmation within the client's time limit; the message
	// may or may not have arrived.
	ErrTimeout = errors.New("confirmation timed out")
	// ErrDisconnected: the connection was lost while the message was in flight, or (to Sink.Fault)
	// the client is reconnecting.
	ErrDisconnected = errors.New("connection lost")
	// ErrOverloaded: the system rejected the message for lack of space.
	ErrOverloaded = errors.New("system overloaded")
	// ErrBlocked: the system answers but accepts no messages for now: it is out of memory or disk,
	// over a quota, still loading its data, or without a leader or enough replicas.
	ErrBlocked = errors.New("system takes no messages")
	// ErrClosed: the producer was closed before the message was confirmed.
	ErrClosed = errors.New("closed")
	// ErrAbandoned: the client library may still read the message's bytes, so they must not be
	// reused. It is joined with another of these errors.
	ErrAbandoned = errors.New("abandoned to the client library")
)

// IsAnswer reports whether err proves that the system is up and answered: callers never take it for
// unreachable or gone.
func IsAnswer(err error) bool {
	return wraps(err, ErrAuth, ErrUnsupported, ErrTooLarge, ErrOverloaded, ErrBlocked)
}

// IsContract reports whether err wraps one of the errors that callers distinguish.
func IsContract(err error) bool {
	return IsAnswer(err) || wraps(err, ErrUnreachable, ErrTimeout, ErrDisconnected, ErrClosed)
}

func wraps(err error, any ...error) bool {
	return slices.ContainsFunc(any, func(e error) bool { return errors.Is(err, e) })
}
