package survey

import (
	"strings"

	"github.com/weirmq/weir/internal/fleet/hosts"
	"github.com/weirmq/weir/internal/host"
)

// A Status is the output of weir fleet status --json.
type Status struct {
	Schema       string      `json:"schema"`
	Weir         string      `json:"weir"`
	At           string      `json:"at"`       // address, without secrets
	StoodIn      bool        `json:"stood_in"` // there was no coordinator: this process listened
	Coordinators []seenBoss  `json:"coordinators"`
	Agents       []seenAgent `json:"agents"`
	Unreadable   int         `json:"unreadable"` // answers that could not be parsed
	// Hosts are those that weir fleet up brought agents to; none: others started the agents.
	Hosts []hosts.Reached `json:"hosts,omitempty"`
}

type seenBoss struct {
	ID   string `json:"id"`
	Host string `json:"host"`
	Weir string `json:"weir"`
}

type seenAgent struct {
	Name        string            `json:"name"`
	Host        string            `json:"host"`
	Weir        string            `json:"weir"`
	Answers     bool              `json:"answers"`
	SeenAgoNS   int64             `json:"seen_ago_ns"`
	OS          string            `json:"os,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Cores       int               `json:"cores,omitempty"`
	MemoryFreeB uint64            `json:"memory_free_b,omitempty"`
	Allow       []string          `json:"allow,omitempty"`
	Coordinator string            `json:"coordinator,omitempty"`
	Run         string            `json:"run,omitempty"`
	Clock       *seenClock        `json:"clock,omitempty"`
	TimeDaemon  *seenDaemon       `json:"time_daemon,omitempty"`
}

type seenClock struct {
	Same      bool  `json:"same"`
	OffsetNS  int64 `json:"offset_ns"`
	BoundNS   int64 `json:"bound_ns"`
	WallNS    int64 `json:"wall_ahead_ns"`
	Exchanges int   `json:"exchanges"`
}

type seenDaemon struct {
	Name     string `json:"name"`
	Source   string `json:"source"`
	Steers   bool   `json:"steers"`
	OffsetNS int64  `json:"offset_ns"`
	BoundNS  int64  `json:"bound_ns"`
}

// Status returns what was seen, for this version of weir.
func (s *Sight) Status(version string) *Status {
	out := &Status{Schema: "weir.fleet-status/v1", Weir: version, At: s.At, StoodIn: s.StoodIn, Coordinators: []seenBoss{}, Agents: []seenAgent{}, Unreadable: s.Strange}
	for _, b := range s.Coordinators {
		out.Coordinators = append(out.Coordinators, seenBoss{ID: b.Session, Host: b.Host, Weir: b.Version})
	}
	for _, x := range s.Agents {
		a := seenAgent{
			Name: x.Name, Host: x.Host, Weir: x.Version, Answers: !x.Gone, SeenAgoNS: int64(x.Ago), OS: x.OS, Labels: x.Labels, Cores: x.Cores,
			MemoryFreeB: x.MemoryB, Allow: x.Allow, Coordinator: x.Session, Run: x.Busy,
		}
		if r := x.Clock; r.Known {
			a.Clock = &seenClock{Same: r.Same, OffsetNS: r.OffsetNS, BoundNS: r.BoundNS, WallNS: r.WallNS, Exchanges: r.Exchanges}
		}
		if d := x.Daemon; d.Known() {
			a.TimeDaemon = &seenDaemon{Name: d.Name, Source: d.Source, Steers: d.Steers, OffsetNS: d.OffsetNS, BoundNS: d.BoundNS}
		}
		out.Agents = append(out.Agents, a)
	}
	return out
}

// Where is the queried address for people, without the fingerprint.
func (s *Sight) Where() string { return Where(s.At) }

// Where removes the fingerprint from an address.
func Where(at string) string {
	short, _, _ := strings.Cut(at, "?")
	return short
}

// A Diagnosis is the output of weir fleet doctor --json.
type Diagnosis struct {
	Schema   string      `json:"schema"`
	Weir     string      `json:"weir"`
	At       string      `json:"at"`
	Agents   []string    `json:"agents"` // those that answered
	Health   host.Health `json:"health"` // worst of all findings; unknown ones do not count
	Findings []Complaint `json:"findings"`
}

// Diagnosis returns what is wrong with the agents of a survey with doctors, for this version of weir.
func (s *Sight) Diagnosis(version string) *Diagnosis {
	d := &Diagnosis{Schema: "weir.fleet-doctor/v1", Weir: version, At: s.At, Agents: []string{}, Findings: []Complaint{}}
	d.Findings = append(d.Findings, s.Check(version)...)
	for _, x := range s.Agents {
		if !x.Gone {
			d.Agents = append(d.Agents, x.Name)
		}
	}
	var all []host.Finding
	for _, f := range d.Findings {
		all = append(all, f.Finding)
	}
	d.Health = host.Worst(all)
	return d
}
