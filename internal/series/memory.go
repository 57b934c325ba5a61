package series

import (
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/scenario"
)

// ownMemory is what a run needs besides its messages, in bytes: histograms, ledger, the client. A run of
// 120 million messages was seen to take 57 MiB.
const ownMemory = 64 << 20

// Fits refuses, with driver.ErrUnsupported, scenarios that a fleet, or this host if it is nil, cannot run
// for lack of agents, of memory for the servers that weir starts here, or of a watched process.
func Fits(f *Fleet, scenarios []*scenario.Scenario) error {
	if err := enough(f, scenarios); err != nil {
		return err
	}
	for _, s := range scenarios {
		if _, err := watched(s); err != nil {
			return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
		}
		if s.System.Recipe == nil || f != nil { // checked on the host that starts the servers
			continue
		}
		v := broker.Serving{Recipe: s.System.Recipe, Nodes: s.System.Nodes, Settings: s.System.ForRecipe}
		if err := v.Fits(); err != nil && len(scenarios) > 1 {
			return fmt.Errorf("%s: %w", s.Name, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// checkMemory limits this process to its control group's memory, and returns a warning if the messages in
// flight of s may not fit; "" if they do, or no limit is known.
func checkMemory(s *scenario.Scenario) string {
	room, limited := host.MemoryRoom()
	if !limited {
		return ""
	}
	host.KeepWithin(room)
	flight := int64(s.Topology.Producers) * int64(s.Load.InFlight) * int64(s.Message.Largest())
	if uint64(flight)+ownMemory <= room {
		return ""
	}
	return fmt.Sprintf("the control group of this process leaves %d MiB, and messages in flight may take %d MiB: "+
		"the kernel may kill it (set --in-flight lower, or give the group more memory)", room>>20, flight>>20)
}
