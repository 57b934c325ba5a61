package redisstreams

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.Main()
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback what should not come would come in microseconds.
const quiet = 60 * time.Millisecond

// The runs follow one another: each looks for goroutines that are left.
func TestConformance(t *testing.T) {
	t.Run("append-only file", func(t *testing.T) {
		s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet:   quiet,
			Options: map[string][]string{"address": {s.Address}, "claim-after": {"300ms"}},
			Cut:     s.Restart,
			Expect:  26,
			Stall:   s.Stall,
		})
	})
}
