package nanomsg

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	for _, pattern := range []string{"pipeline", "pubsub"} {
		for transport, bind := range map[string]string{"inproc": "producers", "ipc": "consumers", "tcp": "producers"} {
			t.Run(pattern+", "+transport+", "+bind+" bind", func(t *testing.T) {
				// The suite publishes up to 1,050 messages before there is a consumer.
				options := map[string][]string{"pattern": {pattern}, "transport": {transport}, "bind": {bind}, "hwm": {"4096"}}
				drivertest.Run(t, Definition(), drivertest.Harness{Quiet: 50 * time.Millisecond, Options: options, Allocs: 8, Expect: 25})
			})
		}
	}
}
