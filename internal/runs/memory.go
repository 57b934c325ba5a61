package runs

import (
	"fmt"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/scenario"
)

// ownMemory is what a run takes beside its messages, in bytes: histograms, ledger,
// the client. A run of 120 million messages was seen to take 57 MiB.
const ownMemory = 64 << 20

// Fits refuses, with driver.ErrUnsupported, servers that s has weir start on this host, and
// that need more memory than it has available.
func Fits(s *scenario.Scenario) error {
	if s.System.Recipe == nil {
		return nil
	}
	v := broker.Serving{Recipe: s.System.Recipe, Nodes: s.System.Nodes, Settings: s.System.ForRecipe}
	return v.Fits()
}

// heedMemory keeps this process within its control group, and returns a warning
// where the messages in flight of s may not fit; "" where they do, or no limit is
// known.
func heedMemory(s *scenario.Scenario, w *Words) string {
	room, limited := host.MemoryRoom()
	if !limited {
		return ""
	}
	host.KeepWithin(room)
	flight := int64(s.Topology.Producers) * int64(s.Load.InFlight) * int64(s.Message.Largest())
	if uint64(flight)+ownMemory <= room {
		return ""
	}
	advice := "give the group more memory"
	if w.LessInFlight != "" {
		advice = w.LessInFlight + ", or " + advice
	}
	return fmt.Sprintf("the control group of this process leaves %d MiB, and messages in flight may take %d MiB: "+
		"the kernel may kill it (%s)", room>>20, flight>>20, advice)
}
