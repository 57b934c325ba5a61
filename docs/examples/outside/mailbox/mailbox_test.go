package mailbox

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver/drivertest"
)

// TestConformance holds the driver to the contract, as weir's own drivers are.
func TestConformance(t *testing.T) {
	drivertest.Run(t, Definition(), drivertest.Harness{Options: map[string][]string{"room": {"256"}}, Quiet: 50 * time.Millisecond})
}
