package redispubsub

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/served"
)

func TestMain(m *testing.M) {
	served.Main(Definition(), redistest.Definition())
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback, an unexpected message would arrive within microseconds.
const quiet = 60 * time.Millisecond

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	for _, recipe := range []string{"redis", "valkey"} {
		t.Run(recipe, func(t *testing.T) {
			s := served.Up(t, Definition(), 1, served.With{Recipe: recipe})
			drivertest.Run(t, Definition(), drivertest.Harness{
				Quiet: quiet, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Allocs: 15, Expect: 26,
			})
		})
	}
}
