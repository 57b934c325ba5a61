package redispubsub

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

func TestConformance(t *testing.T) {
	s := redistest.Start(t)
	drivertest.Run(t, Definition(), drivertest.Harness{
		Quiet:   quiet,
		Options: map[string][]string{"address": {s.Address}},
		Cut:     s.Restart,
		Expect:  21,
		Stall:   s.Stall,
	})
}
