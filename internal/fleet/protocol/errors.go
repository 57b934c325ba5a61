package protocol

import (
	"errors"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
)

// ErrNotAllowed: an agent does not do that on its host.
var ErrNotAllowed = errors.New("not allowed")

// ErrMalformed: a message is not what it should be.
var ErrMalformed = errors.New("malformed message")

// An errorKind is an error by which a caller decides how a run ended, and its name
// in messages.
type errorKind struct {
	name string
	err  error
}

// errorKinds are all, the first being the name of what is several.
func errorKinds() []errorKind {
	return []errorKind{
		{"guarantee", engine.ErrGuarantee},
		{"contract", engine.ErrContract},
		{"auth", driver.ErrAuth},
		{"unsupported", driver.ErrUnsupported},
		{"too-large", driver.ErrTooLarge},
		{"unreachable", driver.ErrUnreachable},
		{"not-ready", engine.ErrNotReady},
		{"timeout", driver.ErrTimeout},
		{"disconnected", driver.ErrDisconnected},
		{"overloaded", driver.ErrOverloaded},
		{"blocked", driver.ErrBlocked},
		{"not-allowed", ErrNotAllowed},
	}
}

// KindOf names the error that err wraps; "" for another.
func KindOf(err error) string {
	for _, k := range errorKinds() {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return ""
}

// A told is an error that an agent told of.
type told struct {
	text string
	kind error
}

func (t *told) Error() string { return t.text }

func (t *told) Unwrap() error { return t.kind }

// ErrorOf makes an error of what an agent told; nil of nothing.
func ErrorOf(text, kind string) error {
	if text == "" {
		return nil
	}
	t := &told{text: text}
	for _, k := range errorKinds() {
		if k.name == kind {
			t.kind = k.err
		}
	}
	return t
}
