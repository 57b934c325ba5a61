package userfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// JSON parses a document of a schema into v. It checks the field schema first, since other schemas'
// documents may have another shape.
func JSON(b []byte, schema string, v any) error {
	var head struct {
		Schema string `json:"schema"`
	}
	switch err := json.NewDecoder(bytes.NewReader(b)).Decode(&head); {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("cut short: it ends within its JSON (copy the file again from where weir wrote it)")
	case err != nil:
		return err
	}
	if head.Schema != schema {
		return fmt.Errorf("schema %q is not known (%s)", head.Schema, schema)
	}
	return json.Unmarshal(b, v)
}
