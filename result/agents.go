package result

import (
	"fmt"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
)

// An Agent is one process of a fleet, and what is known of its part of the run.
type Agent struct {
	Name        string            `json:"name"`
	Hostname    string            `json:"hostname"`
	Labels      map[string]string `json:"labels,omitempty"`
	Producers   int               `json:"producers"`           // that it carried
	Consumers   int               `json:"consumers"`           // likewise, of all subscriptions together
	StartsNS    *int64            `json:"starts_ns,omitempty"` // when it turned to its first message, less when that was due, by the coordinator's clock; absent where it sent none, or is missing
	Missing     bool              `json:"missing"`             // it vanished: what it had reported until then counts
	LostReports uint64            `json:"lost_reports"`        // that never came, between others that did
	Absences    []Absence         `json:"absences,omitempty"`  // when it was not heard of
	Clock       AgentClock        `json:"clock"`
	Host        *AgentHost        `json:"host,omitempty"` // absent of one that is missing
	Cost        *Cost             `json:"cost,omitempty"` // of the instrument on its host; nil of one that is missing, and in results of older versions
}

// A Loss names the agents whose work is missing from the figures of a run. A figure that needs
// a side of which an agent is lost must not be used.
type Loss struct {
	Senders   []string
	Receivers []string
}

// Any reports whether an agent is lost.
func (l Loss) Any() bool { return len(l.Senders)+len(l.Receivers) > 0 }

// Agents names the agents that are lost, each once.
func (l Loss) Agents() []string {
	all := slices.Clone(l.Senders)
	for _, name := range l.Receivers {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Lost returns the agents that are lost: some of their reports never came, or they vanished
// before the measured window ended or while messages of the window were open. An agent that
// vanished afterwards had reported all that the figures need.
func (r *Result) Lost() (l Loss) {
	end := r.WindowFrom() + int64(math.Round(r.Run.MeasureS*1e9))
	for i := range r.Agents {
		a := &r.Agents[i]
		if !a.Missing && a.LostReports == 0 {
			continue
		}
		last := len(a.Absences) - 1
		early := a.LostReports > 0 || last < 0 || a.Absences[last].FromNS < end || r.Consuming()
		if a.Producers > 0 && (early || r.Messages.Unsent+r.Messages.Unconfirmed > 0) {
			l.Senders = append(l.Senders, a.Name)
		}
		receives := a.Consumers > 0 || r.Run.Mode == ModeRequest // there every agent receives replies
		if receives && (early || r.Messages.Pending+r.Messages.Unknown > 0) {
			l.Receivers = append(l.Receivers, a.Name)
		}
	}
	return l
}

// An Absence is a time for which an agent was not heard of, by the run's clock.
type Absence struct {
	FromNS int64  `json:"from_ns"`
	ToNS   *int64 `json:"to_ns"` // nil where it was not heard of again
}

// An AgentClock is how an agent's clock went against the coordinator's.
type AgentClock struct {
	Same      bool    `json:"same"`             // it is the coordinator's own
	OffsetNS  int64   `json:"offset_ns"`        // what was to be added to its readings, at the epoch
	DriftPPB  int64   `json:"drift_ppb"`        // by how many ns a second that grew
	BoundNS   *int64  `json:"bound_ns"`         // of its instants as they were corrected, over the run; nil where nothing is known
	Steps     []Step  `json:"steps,omitempty"`  // that it took
	Exchanges int     `json:"exchanges"`        // that this is known by
	Chrony    *Chrony `json:"chrony,omitempty"` // nil where chrony says nothing on either host
}

// A Chrony is what chrony says of the wall clocks of an agent's host and of the
// coordinator's, held against the offset that was measured.
type Chrony struct {
	BoundNS int64 `json:"bound_ns"` // how far the two wall clocks may be off from each other, as it says
	Agrees  bool  `json:"agrees"`   // both can be true
	ApartNS int64 `json:"apart_ns"` // by how much more than both bounds allow they differ; 0 where they agree
}

// A Step is where a clock was set, or the one that it is held against, or where
// the rate of either changed.
type Step struct {
	AtNS        int64 `json:"at_ns"`        // since the epoch, the middle of the time within which it happened
	UncertainNS int64 `json:"uncertain_ns"` // half of that time
	ByNS        int64 `json:"by_ns"`        // by how much the offset grew
}

// An AgentHost is what an agent's process and its host did in the run, as Host.
type AgentHost struct {
	Usage          *host.Usage       `json:"usage,omitempty"`
	Lanes          int               `json:"lanes"`
	LaneWaits      uint64            `json:"lane_waits"`
	Calibration    *pace.Calibration `json:"calibration,omitempty"`
	SlotsAbandoned uint64            `json:"slots_abandoned"`
	Hiccups        *Hiccups          `json:"hiccups,omitempty"`
}

// Precedence says whether the run's lanes took precedence over the rest of their
// hosts: "SCHED_FIFO", "none", of a fleet "SCHED_FIFO of 2 agents"; "" where the
// result does not tell.
func (r *Result) Precedence() string {
	if len(r.Agents) == 0 {
		switch c := r.Host.Calibration; {
		case c == nil:
			return ""
		case c.FIFO:
			return "SCHED_FIFO"
		}
		return "none"
	}
	told, first := 0, 0
	for _, a := range r.Agents {
		if a.Host != nil && a.Host.Calibration != nil {
			told++
			if a.Host.Calibration.FIFO {
				first++
			}
		}
	}
	switch {
	case told == 0:
		return ""
	case first == 0:
		return "none"
	case first == 1:
		return "SCHED_FIFO of 1 agent"
	}
	return fmt.Sprintf("SCHED_FIFO of %d agents", first)
}

// A FleetClock is what comparing instants of several agents is good for: end to
// end times of messages that went from one to another.
type FleetClock struct {
	Crosses         bool   `json:"crosses"`           // messages went from one agent to another
	Same            bool   `json:"same"`              // all such agents read one clock
	BoundNS         *int64 `json:"bound_ns"`          // of the difference of two instants; nil where it is not known, or nothing crosses
	Negative        uint64 `json:"negative"`          // deliveries of the measured window before they were sent; they count as 0
	WorstNegativeNS int64  `json:"worst_negative_ns"` // by how much, at most
}

// Why a percentile is not supported, other than by too few samples.
const (
	ByClock        = "clock"         // it is finer than the bound of the clocks
	ByUnknownClock = "unknown clock" // nothing is known of the clocks that it is of
	ByLostAgents   = "lost agents"   // it needs what agents did that were lost
)

// Why an end of a percentile's interval is not known.
const (
	ByDependence = "dependence" // the run is too short for how much its samples depend on one another
	ByEpisodes   = "episodes"   // the samples beyond it came in too few separate spells
)
