//go:build unix

// Package served gives the tests of a driver a real server by the driver's own
// recipe, as weir starts it: several where asked, which can be stalled and
// restarted. A test binary that uses it calls Main from its TestMain.
package served

import (
	"testing"

	"github.com/weirmq/weir/driver"
)

// Main makes this process one of those that start and guard servers where it was
// started as one, and returns at once where it was not. drivers are all that the
// binary's tests start servers for.
func Main(drivers ...driver.Definition) {}

// With chooses what is not the recipe's default.
type With struct {
	Recipe   string            // by its name; "" for the driver's first
	Settings map[string]string // of the recipe
}

// A System is a real server, or several, for the length of a test.
type System struct {
	Address []string
	Options map[string][]string // for a Config: the address, and what else the recipe has the driver told
	Pids    []int               // of the servers, as they were when they had started
}

// Up starts a system of the driver's recipe. Where the host lacks what that
// needs the test is skipped, and lists it; where the environment has CI set it
// fails then.
func Up(t testing.TB, def driver.Definition, nodes int, with ...With) *System {
	t.Helper()
	t.Fatal("not built yet")
	return nil
}

// Restart ends the servers and starts them again, with the same folders, ports
// and settings, and returns when they answer. It is what a Harness calls Cut.
func (s *System) Restart() error { return nil }

// Stall makes every server stop reading until resume is called.
func (s *System) Stall() (resume func(), err error) { return nil, nil }
