package exec

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/drivers/internal/served"

	"github.com/weirmq/weir/drivers/redisstreams"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// shared is the Redis server of the Python child.
var shared = served.NewShared(redisstreams.Definition())

func TestMain(m *testing.M) {
	if faults := os.Getenv(role); faults != "" && len(os.Args) == 1 {
		playChild(faults)
	}
	served.Main(systems()...)
	goleak.VerifyTestMain(shared.Around(m))
}

// example returns a file of docs/examples/exec.
func example(t testing.TB, name string) string {
	t.Helper()
	path := must.Get(filepath.Abs(filepath.Join("..", "..", "docs", "examples", "exec", name)))(t)
	return path
}

// TestConformance runs the suite with the Python child, for the capabilities that the child
// declares.
func TestConformance(t *testing.T) {
	if _, err := osexec.LookPath("python3"); err != nil {
		needs.Host(t, "python3", err)
	}
	s := shared.Up(t, 1)
	def := Definition()
	can := &def.Capabilities
	can.Partitions, can.Replicas = false, false
	can.Settle = slices.DeleteFunc(slices.Clone(can.Settle), func(s driver.Settle) bool { return s == driver.SettleNone })
	options := map[string][]string{
		"command": {"python3", example(t, "redis_streams.py"), s.Address[0]}, "order": {"destination"}, "retains": {"yes"},
	}
	t.Setenv(tested.VariableRecipe, "") // belongs to another driver
	t.Run("Python, Redis Streams", func(t *testing.T) {
		drivertest.Run(t, def, drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: options, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Expect: 30,
		})
	})
}
