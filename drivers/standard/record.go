package standard

import (
	_ "embed"

	"github.com/weirmq/weir/driver/tested"
)

//go:embed tested.yaml
var record string

// Tested returns what all drivers' conformance suites last passed against. A record that cannot be
// read, which a test detects, has no entries.
func Tested() []tested.Entry {
	es, err := tested.Parse([]byte(record))
	if err != nil {
		return nil
	}
	return es
}
