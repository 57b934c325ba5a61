package protocol

import (
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A Look is an agent's assessment of its host.
type Look struct {
	Error    string         `json:"error,omitempty"`
	Findings []host.Finding `json:"findings,omitempty"`
	Daemon   host.Daemon    `json:"daemon"`
}

// A Roster is a coordinator's description of itself.
type Roster struct {
	Session string   `json:"session"`
	Version string   `json:"version"`
	Host    string   `json:"host"`
	Members []Member `json:"members,omitempty"`
}

// A Member says when an agent that joined was last heard from.
type Member struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Host     string `json:"host"`
	Version  string `json:"version"`
	AgoNS    int64  `json:"ago_ns"`
}

// Check returns ErrMalformed for an invalid roster. A valid one is safe to show on a terminal.
func (b *Roster) Check() error {
	words := []string{b.Session, b.Version, b.Host}
	for _, m := range b.Members {
		words = append(words, m.Name, m.Instance, m.Host, m.Version)
		if m.AgoNS < 0 {
			return fmt.Errorf("%w: an agent with an instant in the future", ErrMalformed)
		}
	}
	for _, w := range words {
		if !IsWord(w) {
			return fmt.Errorf("%w: a coordinator describes itself with something too long, or not text", ErrMalformed)
		}
	}
	if b.Session == "" {
		return fmt.Errorf("%w: a coordinator without a session", ErrMalformed)
	}
	return nil
}

// A Beacon announces the coordinator.
type Beacon struct {
	Session string `json:"session"`
	Version string `json:"version"`
	Host    string `json:"host"`
}

// A Challenge requests a nonce; the answer has one, or an error.
type Challenge struct {
	Agent string `json:"agent"`
}

// An Answer is the answer of a coordinator or an agent to a request.
type Answer struct {
	Error string `json:"error,omitempty"`
	Kind  string `json:"kind,omitempty"` // of the error; see errorKinds
	Nonce string `json:"nonce,omitempty"`
	Busy  bool   `json:"busy,omitempty"` // with an error: another job is in progress, retry
	// For a query about a subscription.
	Nothing  bool `json:"nothing,omitempty"`
	Answered bool `json:"answered,omitempty"`
	// For a query which servers lead, as in driver.Facts.
	Leaders []string `json:"leaders,omitempty"`
}

// A Job is an agent's part of a run. It is sealed for that agent, and has references in place of the values
// that a scenario refers to.
type Job struct {
	Session  string              `json:"session"`
	Run      string              `json:"run"`
	Number   uint32              `json:"number"` // of the run, in payload headers
	Scenario []byte              `json:"scenario"`
	Files    Files               `json:"files,omitempty"` // payloads and traces of the scenario, by path
	Address  []string            `json:"address,omitempty"`
	Options  map[string][]string `json:"options,omitempty"` // of the system, if the coordinator started it
	Servers  []Server            `json:"servers,omitempty"` // its servers, if faults have the agent break its connections to them
	Index    int                 `json:"index"`
	Agents   []string            `json:"agents"`
	Workers  []engine.Worker     `json:"workers"`
	Wire     bool                `json:"wire,omitempty"` // record kernel instants where the host allows it
}

// Check returns ErrMalformed for a job that cannot be.
func (j *Job) Check() error {
	switch {
	case j.Session == "", j.Run == "", len(j.Scenario) == 0:
		return fmt.Errorf("%w: a job without a session, a run or a scenario", ErrMalformed)
	case len(j.Agents) == 0, len(j.Agents) != len(j.Workers), j.Index < 0, j.Index >= len(j.Agents):
		return fmt.Errorf("%w: a job of agent %d of %d, with %d shares", ErrMalformed, j.Index, len(j.Agents), len(j.Workers))
	}
	if err := checkServers(j.Servers); err != nil {
		return err
	}
	for _, s := range j.Workers {
		if s.Producers.Count < 1 || s.Producers.Index < 0 || s.Producers.Index >= s.Producers.Count ||
			s.Consumers.Count < 1 || s.Consumers.Index < 0 || s.Consumers.Index >= s.Consumers.Count {
			return fmt.Errorf("%w: a share of no part of a run", ErrMalformed)
		}
	}
	return nil
}

// A Standing is an agent's state in a run.
type Standing struct {
	Run       string            `json:"run"`
	Come      int               `json:"come"` // stages reached
	Facts     *driver.Facts     `json:"facts,omitempty"`
	Status    *engine.Status    `json:"status,omitempty"`
	Error     string            `json:"error,omitempty"` // why it ended without figures
	Kind      string            `json:"kind,omitempty"`  // of the error; see errorKinds
	Exchanges []offset.Exchange `json:"exchanges,omitempty"`
}

// Orders are the coordinator's decisions.
type Orders struct {
	Run      string           `json:"run,omitempty"` // "": no run in progress
	Released int              `json:"released"`      // number of stages that all may pass
	Epoch    map[string]int64 `json:"epoch,omitempty"`
	Lay      uint64           `json:"lay,omitempty"`
	Stop     bool             `json:"stop,omitempty"`
	Why      string           `json:"why,omitempty"`
	Over     bool             `json:"over,omitempty"`
	Leave    bool             `json:"leave,omitempty"`   // stop listening after the drain
	Resume   int64            `json:"resume,omitempty"`  // when paused consumers resume, ns since the epoch; 0: not fixed
	Cut      bool             `json:"cut,omitempty"`     // end at once
	Abort    string           `json:"abort,omitempty"`   // why the run is called off
	Remover  string           `json:"remover,omitempty"` // agent that removes the destinations, if the one that made them is gone
	Lines    []Line           `json:"lines,omitempty"`   // of the agents' clocks, in the job's order
}

// A Line corrects an agent's instants, which count from its translated epoch, to the coordinator's clock:
// it adds Add at the instant At, and PPB billionths of the time since then.
type Line struct {
	At  int64   `json:"at"`
	Add int64   `json:"add"`
	PPB float64 `json:"ppb"`
}

// Added is the correction for the instant t, ns since the epoch.
func (l *Line) Added(t int64) int64 { return l.Add + int64(l.PPB*float64(t-l.At)/1e9) }

// A Final is the result of an agent's part, besides its histograms and its ledger.
type Final struct {
	Part     *engine.WorkerResult `json:"part"`
	Gone     string               `json:"gone,omitempty"`      // why the system counts as gone
	GoneKind string               `json:"gone_kind,omitempty"` // whether it answers
	Error    string               `json:"error,omitempty"`     // with figures
	Kind     string               `json:"kind,omitempty"`
	Late     []byte               `json:"late,omitempty"` // ledger of what arrived after the drain
	Extremes measure.Extremes     `json:"extremes"`       // of everything measured
	Cost     result.Cost          `json:"cost"`
	Host     host.Facts           `json:"host"`
	Procs    int                  `json:"procs"`
	Window   measure.Window       `json:"window"` // actual counts of the measured window
	Daemons  []host.Daemon        `json:"daemons,omitempty"`
	Faults   []result.Fault       `json:"faults,omitempty"` // on its own connections, by its clock
}

// Check returns ErrMalformed for a last report that cannot be.
func (f *Final) Check() error {
	if f.Part == nil || len(f.Part.Stages) > measure.MostStages || len(f.Faults) > MostFaults {
		return fmt.Errorf("%w: a last report without a part, or of too many stages or faults", ErrMalformed)
	}
	for i := range f.Faults {
		if err := CheckFault(&f.Faults[i]); err != nil {
			return err
		}
	}
	for _, g := range f.Part.NotSent {
		if g.Phase >= measure.NumPhases || g.Stage < 0 || g.Stage >= measure.MostStages {
			return fmt.Errorf("%w: messages of phase %d and stage %d", ErrMalformed, g.Phase, g.Stage)
		}
	}
	return nil
}

// A Query asks whether an agent can resolve what a scenario refers to, and may and can execute its faults.
type Query struct {
	Driver string          `json:"driver"`
	Needs  []scenario.Need `json:"needs,omitempty"`
	Faults []string        `json:"faults,omitempty"` // verbs
}
