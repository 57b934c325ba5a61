package nanomsg

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	expect := map[string]int{"pipeline": 24, "pubsub": 24}
	for _, pattern := range []string{"pipeline", "pubsub"} {
		for transport, bind := range map[string]string{"inproc": "producers", "ipc": "consumers", "tcp": "producers"} {
			t.Run(pattern+", "+transport+", "+bind+" bind", func(t *testing.T) {
				// The suite publishes up to 1,050 messages before there is a consumer.
				options := map[string][]string{"pattern": {pattern}, "transport": {transport}, "bind": {bind}, "hwm": {"4096"}}
				def := Definition()
				cfg := def.New()
				for name, values := range options {
					if err := driver.SetOption(cfg, name, values...); err != nil {
						t.Fatal(err)
					}
				}
				def.Capabilities = def.Capabilities.With(cfg)
				drivertest.Run(t, def, drivertest.Harness{Quiet: 50 * time.Millisecond, Options: options, Allocs: 8, Expect: expect[pattern] + 1})
			})
		}
	}
}
