package userfile

import (
	"encoding/json"
	"fmt"
)

// JSON parses a document of a schema into v. It checks the field schema first, since other schemas'
// documents may have another shape.
func JSON(b []byte, schema string, v any) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Schema != schema {
		return fmt.Errorf("schema %q is not known (%s)", head.Schema, schema)
	}
	return json.Unmarshal(b, v)
}
