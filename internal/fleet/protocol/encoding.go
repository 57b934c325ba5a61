package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode returns the JSON of a value of this package.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fleet: %T cannot be written: %v", v, err)) // every type here can be marshalled
	}
	return b
}

// Decode parses foreign data: at most that many bytes, one value, no unknown field. Its errors are
// ErrMalformed.
func Decode(b []byte, most int, into any) error {
	if len(b) > most {
		return fmt.Errorf("%w: %d bytes (at most %d)", ErrMalformed, len(b), most)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more than one value", ErrMalformed)
	}
	return nil
}

// DecodeLoosely is Decode, but ignores unknown fields.
func DecodeLoosely(b []byte, most int, into any) error {
	if len(b) > most {
		return fmt.Errorf("%w: %d bytes (at most %d)", ErrMalformed, len(b), most)
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
