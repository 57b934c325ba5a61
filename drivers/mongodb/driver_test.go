package mongodb

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

func TestConformance(t *testing.T) {
	s := shared.Up(t, 1)
	// The recipe uses one each, because SQLite allows one writer.
	s.Options["senders"], s.Options["receivers"] = []string{"2"}, []string{"2"}
	drivertest.Run(t, Definition(), drivertest.Harness{
		Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Kill: s.Kill, Stall: s.Stall, Allocs: 700, Expect: 33,
	})
}
