package survey

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// A Status is what weir fleet status --json prints.
type Status struct {
	Schema       string      `json:"schema"`
	Weir         string      `json:"weir"`
	At           string      `json:"at"`       // where, without secrets
	StoodIn      bool        `json:"stood_in"` // there was no coordinator: this process listened
	Coordinators []seenBoss  `json:"coordinators"`
	Agents       []seenAgent `json:"agents"`
	Unreadable   int         `json:"unreadable"` // answers that could not be read
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
}

type seenClock struct {
	Same      bool  `json:"same"`
	OffsetNS  int64 `json:"offset_ns"`
	BoundNS   int64 `json:"bound_ns"`
	WallNS    int64 `json:"wall_ahead_ns"`
	Exchanges int   `json:"exchanges"`
}

// Status is what was seen by weir of a version.
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
		out.Agents = append(out.Agents, a)
	}
	return out
}

// Show puts the agents on a page, for weir of a version.
func (s *Sight) Show(p *layout.Page, version string) {
	hosts := map[string]string{}
	for _, b := range s.Coordinators {
		hosts[b.Session] = b.Host
		p.Say(fmt.Sprintf("A coordinator runs on %s (%s), weir %s.", b.Host, b.Session, b.Version))
	}
	for _, x := range s.Agents {
		head := fmt.Sprintf("%s on %s: weir %s", x.Name, x.Host, x.Version)
		if !buildinfo.Same(x.Version, version) {
			head += ", another version than this one's " + version
		}
		p.Gap()
		p.Say(head)
		t := layout.Listing("", "")
		if x.Gone {
			t.Row("does not answer", "last seen "+ago(x.Ago))
			p.Inset(2).Table(t)
			continue
		}
		t.Row("state", doing(&x, hosts))
		t.Row("last seen", ago(x.Ago))
		t.Row("host", fmt.Sprintf("%s, %s, %s", x.OS, number(x.Cores, "core"), memory(x.MemoryB)))
		t.Row("clock", clockText(&x.Clock))
		if len(x.Labels) > 0 {
			var all []string
			for k, v := range x.Labels {
				all = append(all, k+"="+v)
			}
			slices.Sort(all)
			t.Row("labels", strings.Join(all, " "))
		}
		allowed := "drivers only"
		if len(x.Allow) > 0 {
			allowed = "drivers, " + strings.Join(x.Allow, ", ")
		}
		t.Row("allowed", allowed)
		p.Inset(2).Table(t)
	}
	if n := len(s.Agents); n > 0 {
		p.Gap()
		p.Say(fmt.Sprintf("%s at %s.", number(n, "agent"), s.Where()))
	}
	if s.Strange > 0 {
		p.Say(number(s.Strange, "answer") + " could not be read.")
	}
}

// Where is where agents were asked, for people: without the fingerprint.
func (s *Sight) Where() string { return place(s.At) }

func place(at string) string {
	short, _, _ := strings.Cut(at, "?")
	return short
}

// doing is what an agent does, and for whom.
func doing(x *Seen, hosts map[string]string) string {
	on, here := hosts[x.Session]
	switch {
	case x.Busy != "" && here:
		return fmt.Sprintf("busy with run %s of the coordinator on %s (%s)", x.Busy, on, x.Session)
	case x.Busy != "":
		return fmt.Sprintf("busy with run %s of coordinator %s, which does not answer", x.Busy, x.Session)
	case here:
		return fmt.Sprintf("idle; joined the coordinator on %s (%s)", on, x.Session)
	case x.Session != "":
		return "idle; waits for a coordinator (" + x.Session + ", its last, is gone)"
	}
	return "idle; waits for a coordinator"
}

// clockText is what is known of a clock.
func clockText(r *Reading) string {
	switch {
	case r.Same:
		return "this host's own"
	case !r.Known:
		return "not known"
	}
	offset := time.Duration(r.OffsetNS)
	switch {
	case offset.Abs() < 10*time.Second:
		offset = offset.Round(time.Microsecond)
	default:
		offset = offset.Round(time.Millisecond) // since its host was started, less since this was
	}
	return fmt.Sprintf("%v ± %v; its wall clock differs by %v", signed(offset), time.Duration(r.BoundNS).Round(100*time.Nanosecond), signed(time.Duration(r.WallNS).Round(time.Microsecond)))
}

// A signed duration shows its sign.
type signed time.Duration

func (d signed) String() string {
	s := time.Duration(d).String()
	if d > 0 {
		return "+" + s
	}
	return s
}

func ago(d time.Duration) string {
	if d < time.Second {
		return "now"
	}
	return d.Round(time.Second).String() + " ago"
}

func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func memory(b uint64) string {
	if b == 0 {
		return "free memory not known"
	}
	return fmt.Sprintf("%.1f GiB free", float64(b)/(1<<30))
}

// A Diagnosis is what weir fleet doctor --json prints.
type Diagnosis struct {
	Schema   string      `json:"schema"`
	Weir     string      `json:"weir"`
	At       string      `json:"at"`
	Agents   []string    `json:"agents"` // that answered
	Health   host.Health `json:"health"` // the worst of all findings; what is not known does not count
	Findings []Complaint `json:"findings"`
}

// Diagnosis is what is wrong with the agents that a survey saw with doctors, for weir of a
// version.
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
	d.Health = view.Worst(all)
	return d
}

// Show puts the findings on a page, the worst first.
func (d *Diagnosis) Show(p *layout.Page) {
	p.Say(fmt.Sprintf("%s at %s: %s", number(len(d.Agents), "agent"), place(d.At), strings.Join(d.Agents, ", ")))
	var all []host.Finding
	for _, f := range d.Findings {
		if len(f.Agents) > 0 {
			f.Found = strings.Join(f.Agents, ", ") + ": " + f.Found
		}
		all = append(all, f.Finding)
	}
	counts := view.ShowFindings(p, all)
	if len(counts) == 0 {
		counts = []string{"No finding that would make a run invalid"}
	}
	p.Gap()
	p.Say(strings.Join(counts, ", ") + ".")
}
