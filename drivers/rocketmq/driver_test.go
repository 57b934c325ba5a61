package rocketmq

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// servers is the server of tests that leave it as it was.
var servers = served.NewShared(Definition())

// stays names what is on the stacks of goroutines that the client leaves: the connection to
// a name server, for 2 minutes; a pull, for 30 s; a consumer's statistics, for a day.
var stays = []string{
	"github.com/apache/rocketmq-client-go/v2/primitive.WithRecover",
	"github.com/apache/rocketmq-client-go/v2/consumer.(*defaultPullConsumer).pullMessage",
}

func TestMain(m *testing.M) {
	served.Main(Definition())
	goleak.VerifyTestMain(servers.Around(m), goleak.IgnoreAnyFunction(stays[0]), goleak.IgnoreAnyFunction(stays[1]),
		goleak.IgnoreTopFunction("github.com/patrickmn/go-cache.(*janitor).Run")) // of a variable of the client's
}

func TestConformance(t *testing.T) {
	s := servers.Up(t, 1)
	drivertest.Run(t, Definition(), drivertest.Harness{
		Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Goroutines: stays,
		Offset: func(_, _ string, n int) (string, error) { return strconv.Itoa(n), nil },
		Expect: 31,
	})
}
