//go:build libzmq

package zeromq

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for _, test := range []struct{ pattern, transport, bind string }{
		{"pipeline", "ipc", "consumers"},
		{"pipeline", "tcp", "consumers"},
		{"pubsub", "ipc", "consumers"},
		{"pubsub", "tcp", "producers"},
	} {
		t.Run(test.pattern+", "+test.transport+", "+test.bind+" bind", func(t *testing.T) {
			options := map[string][]string{"pattern": {test.pattern}, "transport": {test.transport}, "bind": {test.bind}, "hwm": {"4096"}}
			def := Definition()
			if test.pattern == "pipeline" {
				def.New = func() driver.Config { return &attended{Config: *Definition().New().(*Config)} }
			}
			cfg := def.New()
			for name, values := range options {
				if err := driver.SetOption(cfg, name, values...); err != nil {
					t.Fatal(err)
				}
			}
			def.Capabilities = def.Capabilities.With(cfg)
			drivertest.Run(t, def, drivertest.Harness{Quiet: 50 * time.Millisecond, Options: options, Expect: 24})
		})
	}
}
