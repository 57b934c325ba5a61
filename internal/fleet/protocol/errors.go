package protocol

import (
	"errors"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
)

// ErrNotAllowed says that an agent does not permit this on its host.
var ErrNotAllowed = errors.New("not allowed")

// ErrMalformed says that a message is invalid.
var ErrMalformed = errors.New("malformed message")

// ErrLeft says that an agent was ended by its own user or host.
var ErrLeft = errors.New("the agent was ended")

// An errorKind is an error that callers distinguish, with its name in messages.
type errorKind struct {
	name string
	err  error
}

// errorKinds returns all kinds; if several apply, the first one names the error. Those that driver.IsAnswer
// has come before those of a system that does not answer: an error of both counts as an answer everywhere.
func errorKinds() []errorKind {
	return []errorKind{
		{"left", ErrLeft},
		{"guarantee", engine.ErrGuarantee},
		{"contract", engine.ErrContract},
		{"auth", driver.ErrAuth},
		{"unsupported", driver.ErrUnsupported},
		{"too-large", driver.ErrTooLarge},
		{"overloaded", driver.ErrOverloaded},
		{"blocked", driver.ErrBlocked},
		{"unreachable", driver.ErrUnreachable},
		{"not-ready", engine.ErrNotReady},
		{"timeout", driver.ErrTimeout},
		{"disconnected", driver.ErrDisconnected},
		{"not-allowed", ErrNotAllowed},
	}
}

// KindOf names the error that err wraps; "" for any other.
func KindOf(err error) string {
	for _, k := range errorKinds() {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return ""
}

// An agentError is an error that an agent reported.
type agentError struct {
	text string
	kind error
}

func (t *agentError) Error() string { return t.text }

func (t *agentError) Unwrap() error { return t.kind }

// ErrorOf returns the error that an agent reported; nil if none.
func ErrorOf(text, kind string) error {
	if text == "" {
		return nil
	}
	t := &agentError{text: text}
	for _, k := range errorKinds() {
		if k.name == kind {
			t.kind = k.err
		}
	}
	return t
}
