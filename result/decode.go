package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of a JSON document. The longest possible run, of 78 h, has 280,800 intervals of 17 values
// in 3 objects each, in some 140 MB. Decoding takes up to some hundred bytes of memory per value,
// so limiting the document's size alone would not bound it.
const (
	maxDocument   = 256 << 20 // bytes of a result.json
	maxValues     = 8 << 20
	maxContainers = 1 << 20 // objects and lists
	maxDepth      = 32      // a result has 7
)

// decodeJSON reads a whole document that names its schema into v. Unknown
// fields are ignored. The error is a *FileError without a path.
func decodeJSON(b []byte, schema string, v any) error {
	if err := weigh(b); err != nil {
		return err
	}
	var head struct {
		Schema any `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return jsonError(b, err, schema)
	}
	got, _ := head.Schema.(string)
	if err := checkSchema(got, schema); err != nil {
		return &FileError{Err: err}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return jsonError(b, err, schema)
	}
	return nil
}

// weigh rejects a document with more in it than its kind can have, before any of it is decoded.
func weigh(b []byte) error {
	var values, containers, depth int
	quoted, escaped := false, false
	for i, c := range b {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			containers++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if depth > maxDepth || containers > maxContainers || values > maxValues {
			what := fmt.Sprintf("nests deeper than %d levels", maxDepth)
			switch {
			case containers > maxContainers:
				what = fmt.Sprintf("holds more than %d objects and lists", maxContainers)
			case values > maxValues:
				what = fmt.Sprintf("holds more than %d values", maxValues)
			}
			return at(b, i, fmt.Errorf("%w: %s", ErrMalformed, what))
		}
	}
	return nil
}

// at returns an error about the byte at offset.
func at(b []byte, offset int, err error) *FileError {
	offset = min(max(offset, 0), len(b))
	line := 1 + bytes.Count(b[:offset], []byte("\n"))
	return &FileError{Line: line, Column: offset - bytes.LastIndexByte(b[:offset], '\n'), Err: err}
}

// jsonError describes where a document is not JSON, or not JSON of its schema.
func jsonError(b []byte, err error, schema string) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return &FileError{Err: fmt.Errorf("%w: it is empty", ErrTorn)}
	}
	if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
		// Package json ends a document with a space, which a truncated word or number does not
		// accept.
		if e.Offset >= int64(len(b)) && (strings.Contains(e.Error(), "unexpected end") ||
			strings.HasPrefix(e.Error(), "invalid character ' '") && b[len(b)-1] != ' ') {
			return at(b, len(b), fmt.Errorf("%w: it ends within its JSON", ErrTorn))
		}
		return at(b, int(e.Offset)-1, fmt.Errorf("%w: no JSON: %w", ErrMalformed, err))
	}
	if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) {
		if e.Field == "" {
			return &FileError{Err: fmt.Errorf("%w: it is a JSON %s, not an object of schema %q", ErrNotResult, e.Value, schema)}
		}
		return at(b, int(e.Offset)-1, fmt.Errorf("%w: %s is a %s, not %s", ErrMalformed, e.Field, e.Value, e.Type))
	}
	return &FileError{Err: fmt.Errorf("%w: %w", ErrMalformed, err)}
}

// checkSchema accepts the schema that this code writes and older versions of it.
func checkSchema(got, want string) error {
	kind, version, _ := strings.Cut(want, "/v")
	most, err := strconv.Atoi(version)
	if err != nil {
		return fmt.Errorf("%w: schema %q has no version", ErrNotResult, want)
	}
	gotKind, gotVersion, _ := strings.Cut(got, "/v")
	n, err := strconv.Atoi(gotVersion)
	switch {
	case got == "":
		return fmt.Errorf("%w: it names no schema, where %q belongs", ErrNotResult, want)
	case gotKind == kind && (err == nil && n > most || errors.Is(err, strconv.ErrRange)):
		return fmt.Errorf("%w: its schema is %q, this one reads up to %q", ErrNewer, got, want)
	case gotKind != kind || err != nil || n < 1:
		return fmt.Errorf("%w: its schema is %q, not %q", ErrNotResult, brief(got), want)
	}
	return nil
}

// brief shortens text from a foreign file.
func brief(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
