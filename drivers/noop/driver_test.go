package noop

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	drivertest.Run(t, Definition(), drivertest.Harness{
		Waive:  map[string]string{"LostConnectionReported": "there is no connection to lose"},
		Quiet:  50 * time.Millisecond,
		Expect: 15,
	})
}

// TestConformanceOfASimulatedSystem: delayed answers fulfill the same contract.
func TestConformanceOfASimulatedSystem(t *testing.T) {
	d := Definition()
	d.New = func() driver.Config { return &config{Answer: 20 * time.Microsecond} }
	drivertest.Run(t, d, drivertest.Harness{
		Waive:  map[string]string{"LostConnectionReported": "there is no connection to lose"},
		Quiet:  50 * time.Millisecond,
		Expect: 15,
	})
}
