package driver

import "errors"

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
	// ErrClosed: the producer was closed before the message was confirmed.
	ErrClosed = errors.New("closed")
	// ErrAbandoned: the client library may still read the message's bytes, so
	// that they must not be used again. It joins another of these errors.
	ErrAbandoned = errors.New("abandoned to the client library")
)
