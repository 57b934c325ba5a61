package fleet

import (
	"context"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/result"
)

// A Run is a run for a fleet to execute.
type Run struct {
	// Config is the whole run's; its callbacks get the agents' combined data. Its Clock is not used.
	Config    engine.Config
	Scenario  []byte              // the source of Config
	Files     protocol.Files      // read by the scenario, by absolute path
	Address   []string            // of the system, if the coordinator started it
	Options   map[string][]string // further options to connect with
	StartOn   string              // agent that started the system on its host, with or without a part; "": none
	Started   *result.Started     // describes the system, for a resume
	Placement placement.Spec
	Agents    []string // names of the agents to use; nil: all that joined
	Folder    string   // result folder, for a resume

	// Restarts says that the run can be started again if an agent is lost before the measured window. Do
	// then returns coordinator.ErrLost.
	Restarts bool

	Troubled bool              // the agent of StartOn executes server faults of the scenario
	Servers  []protocol.Server // servers to which agents break connections as faults; nil: none

	// OnOpen gets a function that returns which servers lead, as in driver.Facts, before the run begins.
	// The function fails until the system is open. May be nil.
	OnOpen func(leaders func(context.Context) ([]string, error))

	// OnSample gets samples of StartOn's host, about once a second, with instants since the epoch on the
	// coordinator's clock. One goroutine calls it. May be nil.
	OnSample func(host.Sample)

	// Length is how long messages are sent; 0: unknown. Without a coordinator, an agent without a part
	// keeps the system for that long, plus the drain.
	Length time.Duration
}

// Done is the result of a fleet's run.
type Done struct {
	Raw        *engine.Raw
	Agents     []AgentReport
	Clock      Clock
	Gaps       []coordinator.Absence // times without a coordinator, until a resume
	Full       bool                  // the coordinator\'s disk had no room for reports
	Starter    *Starter              // where the system was started; nil: on no agent's host
	Faults     []result.Fault        // executed by agents, on the coordinator's clock
	Unreported error                 // why some of them are unknown; nil: none are
}

// A Starter is the agent that started the system of a run on its host.
type Starter struct {
	protocol.About
	Part     bool                  // it also had a part of the run
	Facts    host.Facts            // empty if it was not heard from in the run
	Absences []coordinator.Absence // of one without a part
}

// AgentReport describes one agent's part of a run.
type AgentReport struct {
	protocol.About
	Share    engine.Worker
	Part     *engine.WorkerResult
	Cost     result.Cost
	Facts    host.Facts // empty for one that vanished
	Procs    int
	Absences []coordinator.Absence
	Lost     uint64 // reports missing between received ones
	Clock    Watch
	Starts   int64 // start on the coordinator's clock, ns since the epoch
}
