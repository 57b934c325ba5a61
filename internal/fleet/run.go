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

// A Run is one that a fleet shall do.
type Run struct {
	// Config is the whole run's; its callbacks take what all agents do together, its
	// Clock is not used.
	Config    engine.Config
	Scenario  []byte              // that gives Config
	Files     protocol.Files      // that the scenario reads, by absolute path
	Address   []string            // where the system is, where the coordinator started it
	Options   map[string][]string // and what else it is connected by
	StartOn   string              // the agent that started the system on its host, which may do no part; "": none
	Started   *result.Started     // what is known of it; for who takes the run up again
	Placement placement.Spec
	Agents    []string // names of those that shall do it; nil: all that joined
	Folder    string   // of the result; for who takes the run up again

	Troubled bool              // the agent of StartOn does faults of the scenario to its servers
	Servers  []protocol.Server // to which agents break connections, as faults of the scenario say; nil: they break none

	// OnOpen takes what tells which servers lead, as driver.Facts has them, before the run
	// begins. Until the system is open that is an error. Nil: nothing does.
	OnOpen func(leaders func(context.Context) ([]string, error))

	// OnSample takes what the host of StartOn does, about once a second, with instants
	// since the epoch on the coordinator's clock. One goroutine calls it. Nil: nothing does.
	OnSample func(host.Sample)

	// Length is how long messages are sent; 0: it is not known. For so long, and the
	// drain, an agent that does no part keeps the system without a coordinator.
	Length time.Duration
}

// Done is what a fleet's run came to.
type Done struct {
	Raw     *engine.Raw
	Agents  []AgentReport
	Clock   Clock
	Gaps    []coordinator.Absence // when the run had no coordinator, until another took it up
	Full    bool                  // the coordinator\'s disk had no room for reports
	Starter *Starter              // where the system was started; nil: on no agent's host
	Faults  []result.Fault        // that agents did, by the coordinator's clock
	Untold  error                 // why not all of them are known; nil: they are
}

// A Starter is the agent that started the system of a run on its host.
type Starter struct {
	protocol.About
	Part     bool                  // it did a part of the run too
	Facts    host.Facts            // nothing, where it was not heard of in the run
	Absences []coordinator.Absence // of one that did no part
}

// AgentReport is what is known of one agent's part.
type AgentReport struct {
	protocol.About
	Share    engine.Worker
	Part     *engine.WorkerResult
	Cost     result.Cost
	Facts    host.Facts // nothing, of one that vanished
	Procs    int
	Absences []coordinator.Absence
	Lost     uint64 // reports that never came, between others that did
	Clock    Watch
	Starts   int64 // when it began by the coordinator's clock, ns since the epoch
}
