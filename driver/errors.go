package driver

import (
	"errors"
	"slices"
)

// The errors that callers decide by. Drivers wrap them with %w; any other error
// counts as "other" and is tallied by its text.
var (
	// ErrUnreachable: the system does not answer at its address.
	ErrUnreachable = errors.New("system unreachable")
	// ErrAuth: the system refused the credentials.
	ErrAuth = errors.New("credentials refused")
	// ErrUnsupported: the system or the driver cannot do what was asked.
	ErrUnsupported = errors.New("not supported")
	// ErrTooLarge: the system does not take a message of this size.
	ErrTooLarge = errors.New("message too large")
	// ErrTimeout: no confirmation within the client's time limit; the message
	// may or may not have arrived.
	ErrTimeout = errors.New("confirmation timed out")
	// ErrDisconnected: the connection was lost while the message was on its way,
	// or (to Sink.Fault) is being made again.
	ErrDisconnected = errors.New("connection lost")
	// ErrOverloaded: the system refused the message for want of room.
	ErrOverloaded = errors.New("system overloaded")
	// ErrBlocked: the system answers, and takes no messages for now: it is out of memory
	// or disk, over a quota, still loading its data, or without a leader or enough replicas.
	ErrBlocked = errors.New("system takes no messages")
	// ErrClosed: the producer was closed before the message was confirmed.
	ErrClosed = errors.New("closed")
	// ErrAbandoned: the client library may still read the message's bytes, so
	// that they must not be used again. It joins another of these errors.
	ErrAbandoned = errors.New("abandoned to the client library")
)

// IsAnswer reports whether err is what a system said that is there: callers never take it
// for unreachable or gone.
func IsAnswer(err error) bool {
	return wraps(err, ErrAuth, ErrUnsupported, ErrTooLarge, ErrOverloaded, ErrBlocked)
}

// IsContract reports whether err wraps one of the errors that callers decide by.
func IsContract(err error) bool {
	return IsAnswer(err) || wraps(err, ErrUnreachable, ErrTimeout, ErrDisconnected, ErrClosed)
}

func wraps(err error, any ...error) bool {
	return slices.ContainsFunc(any, func(e error) bool { return errors.Is(err, e) })
}
