package driver

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// A Secret is a password, token or key. It prints, logs and marshals as "***" in every form that Go
// has; only Reveal returns the value. The zero value is no secret.
type Secret struct {
	// A pointer, because package fmt calls no method of a Secret in an unexported field, but prints
	// what the field holds.
	value *string
	ref   string
}

// NewSecret returns a secret. ref is the scenario's text that names its source, such as
// "${env:PASSWORD}".
func NewSecret(value, ref string) Secret { return Secret{value: &value, ref: ref} }

// Reveal returns the value. Pass it to a client library and nowhere else.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Reference returns the text that names the source; "" for a literal.
func (s Secret) Reference() string { return s.ref }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

const hidden = "***"

// String returns "***", or "" for no secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return hidden
}

// GoString is String: %#v hides the value too.
func (s Secret) GoString() string { return s.String() }

// Format is String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.String()) }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String; YAML and XML encoders use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is String.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
