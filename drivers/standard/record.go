package standard

import (
	_ "embed"

	"github.com/weirmq/weir/driver/tested"
)

//go:embed tested.yaml
var record string

// Tested returns what the conformance suites of all drivers last passed against. A
// record that cannot be read, which a test refuses, has no entries.
func Tested() []tested.Entry {
	es, err := tested.Parse([]byte(record))
	if err != nil {
		return nil
	}
	return es
}
