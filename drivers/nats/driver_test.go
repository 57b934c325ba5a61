package nats

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/natsd"
)

func TestMain(m *testing.M) {
	natstest.Main()
	servedMain()
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback, an unexpected message would arrive within microseconds.
const quiet = 60 * time.Millisecond

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	for _, confirm := range []string{confirmNone, confirmFlush} {
		t.Run(confirm, func(t *testing.T) {
			s := natstest.Start(t, natsd.Options{})
			drivertest.Run(t, Definition(), drivertest.Harness{
				Quiet:   quiet,
				Options: map[string][]string{"address": s.Address, "confirm": {confirm}},
				Cut:     s.Restart,
				Expect:  31,
				Stall:   s.Stall,
			})
		})
	}
}
