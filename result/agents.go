package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
)

// An Agent is one process of a fleet, with what is known of its part of the run.
type Agent struct {
	Name        string            `json:"name"`
	Hostname    string            `json:"hostname"`
	Labels      map[string]string `json:"labels,omitempty"`
	Producers   int               `json:"producers"`           // that it carried
	Consumers   int               `json:"consumers"`           // likewise, of all subscriptions together
	StartsNS    *int64            `json:"starts_ns,omitempty"` // when it turned to its first message, less when that was due, by the coordinator's clock; absent if it sent none, or is missing
	Missing     bool              `json:"missing"`             // the process vanished: what it had reported until then counts
	LostReports uint64            `json:"lost_reports"`        // reports that never arrived, between others that did
	Absences    []Absence         `json:"absences,omitempty"`  // when the coordinator did not hear from it
	Reported    *Reported         `json:"reported,omitempty"`  // all that is known of a missing agent's messages
	Clock       AgentClock        `json:"clock"`
	Host        *AgentHost        `json:"host,omitempty"` // absent for a missing agent
	Cost        *Cost             `json:"cost,omitempty"` // of the instrument on its host; nil for a missing agent, and in results of older versions
}

// Reported is what an agent had reported before it vanished. What it did afterwards is unknown.
type Reported struct {
	UntilNS  int64  `json:"until_ns"` // end of its last report, ns since the epoch
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
}

// A Loss names the agents whose work is missing from the figures of a run. Figures that need a side
// with a lost agent must not be used.
type Loss struct {
	Senders   []string
	Receivers []string
}

// Any reports whether an agent is lost.
func (l Loss) Any() bool { return len(l.Senders)+len(l.Receivers) > 0 }

// Agents returns the names of the lost agents, each once.
func (l Loss) Agents() []string {
	all := slices.Clone(l.Senders)
	for _, name := range l.Receivers {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Lost returns the lost agents: some of their reports never arrived, or they vanished before the
// measured window ended or while messages of the window were open. An agent that vanished later had
// reported everything that the figures need.
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

// An Absence is a period in which the coordinator did not hear from an agent, by the run's clock.
type Absence struct {
	FromNS int64  `json:"from_ns"`
	ToNS   *int64 `json:"to_ns"` // nil if it was not heard from again
}

// An AgentClock compares an agent's clock with the coordinator's.
type AgentClock struct {
	Same      bool        `json:"same"`             // it is the coordinator's own clock
	OffsetNS  int64       `json:"offset_ns"`        // what to add to its readings, at the epoch
	DriftPPB  int64       `json:"drift_ppb"`        // growth of the offset in ns per second
	BoundNS   *int64      `json:"bound_ns"`         // error bound of its corrected instants, over the run; nil if unknown
	Steps     []Step      `json:"steps,omitempty"`  // detected clock steps
	Exchanges int         `json:"exchanges"`        // number of clock exchanges behind this
	Daemon    *TimeDaemon `json:"chrony,omitempty"` // nil if no time daemon speaks for both hosts; the key is older than ptp4l's

	// Course is the offset over the run: a line, or several with a step between each pair.
	Course []ClockLine `json:"course,omitempty"`
}

// MostClockLines is how many lines of a course a result holds; the rest are left out.
const MostClockLines = 64

// A ClockLine is a period in which an agent's clock kept its rate. Its instants are since the run's epoch, by
// that clock.
type ClockLine struct {
	FromNS   int64 `json:"from_ns"`
	ToNS     int64 `json:"to_ns"`
	OffsetNS int64 `json:"offset_ns"` // at FromNS, beyond the offset at the epoch
	DriftPPB int64 `json:"drift_ppb"` // growth in ns per second
	BoundNS  int64 `json:"bound_ns"`  // the true offset is no further from the line than that
}

// A TimeDaemon compares what the time daemons report for the wall clocks of an agent's host and of the
// coordinator's with the measured offset.
type TimeDaemon struct {
	By      string `json:"by,omitempty"` // ptp4l or chrony; "": chrony, in results of older versions
	BoundNS int64  `json:"bound_ns"`     // maximum difference of the two wall clocks, according to it
	Agrees  bool   `json:"agrees"`       // the two are compatible
	ApartNS int64  `json:"apart_ns"`     // excess of the difference over both bounds; 0 if they agree
}

// Name is the name of the daemon.
func (d *TimeDaemon) Name() string { return cmp.Or(d.By, "chrony") }

// A Step is where one of the two clocks was set, or the rate of either changed.
type Step struct {
	AtNS        int64 `json:"at_ns"`        // since the epoch, the middle of the period in which it happened
	UncertainNS int64 `json:"uncertain_ns"` // half of that period
	ByNS        int64 `json:"by_ns"`        // by how much the offset grew
}

// An AgentHost is the usage of an agent's process and its host during the run, as Host.
type AgentHost struct {
	Usage          *host.Usage       `json:"usage,omitempty"`
	Pacers         int               `json:"lanes"`
	PacerWaits     uint64            `json:"lane_waits"`
	Calibration    *pace.Calibration `json:"calibration,omitempty"`
	SlotsAbandoned uint64            `json:"slots_abandoned"`
	Hiccups        *Hiccups          `json:"hiccups,omitempty"`
}

// Precedence describes the real-time priority of the run's pacers: "SCHED_FIFO", "none", for a
// fleet "SCHED_FIFO of 2 agents"; "" if the result does not say.
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
	reported, first := 0, 0
	for _, a := range r.Agents {
		if a.Host != nil && a.Host.Calibration != nil {
			reported++
			if a.Host.Calibration.FIFO {
				first++
			}
		}
	}
	switch {
	case reported == 0:
		return ""
	case first == 0:
		return "none"
	case first == 1:
		return "SCHED_FIFO of 1 agent"
	}
	return fmt.Sprintf("SCHED_FIFO of %d agents", first)
}

// A FleetClock is how well instants of several agents compare, for end-to-end times of messages
// between agents.
type FleetClock struct {
	Crosses         bool   `json:"crosses"`           // messages went from one agent to another
	Same            bool   `json:"same"`              // all such agents read one clock
	BoundNS         *int64 `json:"bound_ns"`          // of the difference of two instants; nil if unknown, or nothing crosses
	Negative        uint64 `json:"negative"`          // deliveries of the measured window before they were sent; they count as 0
	WorstNegativeNS int64  `json:"worst_negative_ns"` // by how much, at most
}

// Why a percentile is not supported, other than by too few samples.
const (
	ByClock        = "clock"         // it is below the error bound of the clocks
	ByUnknownClock = "unknown clock" // nothing is known of the clocks involved
	ByLostAgents   = "lost agents"   // it needs the work of lost agents
)

// Why an end of a percentile's interval is unknown.
const (
	ByDependence = "dependence" // the run is too short, given how strongly its samples depend on one another
	ByEpisodes   = "episodes"   // the samples beyond it came in too few separate episodes
)
