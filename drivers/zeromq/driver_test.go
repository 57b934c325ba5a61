//go:build !libzmq

package zeromq

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
)

// left lists goroutines that the library leaks.
var left = []string{"github.com/go-zeromq/zmq4.(*pubMWriter).run", "github.com/go-zeromq/zmq4.(*qreader).listen"}

func TestMain(m *testing.M) {
	var ignore []goleak.Option
	for _, f := range append(left, "github.com/go-zeromq/zmq4/internal/inproc.(*conn).read") { // not used by the driver's sockets
		ignore = append(ignore, goleak.IgnoreAnyFunction(f))
	}
	goleak.VerifyTestMain(m, ignore...)
}

func TestConformance(t *testing.T) {
	for _, test := range []struct{ pattern, transport, bind string }{
		{"pipeline", "ipc", "consumers"},
		{"pipeline", "tcp", "consumers"},
		{"pubsub", "ipc", "consumers"},
		{"pubsub", "tcp", "producers"},
	} {
		t.Run(test.pattern+", "+test.transport+", "+test.bind+" bind", func(t *testing.T) {
			options := map[string][]string{"pattern": {test.pattern}, "transport": {test.transport}, "bind": {test.bind}}
			def, expect := Definition(), 24
			if test.pattern == "pipeline" {
				def.New = func() driver.Config { return &attended{Config: *Definition().New().(*Config)} }
				expect = 23 // without GroupsEachGetAll
			}
			drivertest.Run(t, def, drivertest.Harness{Quiet: 50 * time.Millisecond, Options: options, Goroutines: left, Allocs: 30, Expect: expect + 1})
		})
	}
}
