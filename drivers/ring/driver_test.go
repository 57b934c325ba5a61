package ring

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	drivertest.Run(t, Definition(), drivertest.Harness{Options: map[string][]string{"capacity": {"256"}}, Quiet: 50 * time.Millisecond, Expect: 24})
}
