package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/hosts"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
)

// ShowAgents writes the agents of a fleet to a page, for this version of weir.
func ShowAgents(p *layout.Page, s *survey.Sight, version string) {
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
		t.Row("state", agentState(&x, hosts))
		t.Row("last seen", ago(x.Ago))
		t.Row("host", fmt.Sprintf("%s, %s, %s", x.OS, quantity.Counted(x.Cores, "core", "cores"), freeMemory(x.MemoryB)))
		t.Row("clock", agentClock(&x.Clock))
		if text := x.Daemon.String(); text != "" {
			t.Row("time daemon", text)
		}
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
		p.Say(fmt.Sprintf("%s at %s.", quantity.Counted(n, "agent", "agents"), s.Where()))
	}
	if s.Strange > 0 {
		p.Say(quantity.Counted(s.Strange, "answer", "answers") + " could not be read.")
	}
}

// ShowHosts writes how the hosts are that weir brought agents to, with what a survey saw of these agents.
func ShowHosts(p *layout.Page, all []hosts.Reached, s *survey.Sight) {
	if len(all) == 0 {
		return
	}
	t := layout.Listing("agent", "reached by", "platform", "cores", "clock", "state")
	for _, h := range all {
		cores, clock, state := "", "", "does not answer"
		for _, x := range s.Agents {
			if x.Name == h.Name && !x.Gone {
				cores, clock, state = fmt.Sprint(x.Cores), hostClock(&x), "joins directly"
				if h.Forwarded {
					state = "joins through ssh"
				}
			}
		}
		if h.Ended != "" {
			state = "its agent ended: " + h.Ended
		}
		t.Row(h.Name, "ssh "+h.SSH, h.Platform, cores, clock, state)
	}
	p.Table(t)
	p.Gap()
}

// hostClock is how well an agent's clock is known, to weir and to the host's time daemon.
func hostClock(x *survey.Seen) string {
	bound := func(ns int64) string { return "± " + time.Duration(ns).Round(100*time.Nanosecond).String() }
	text := bound(x.Clock.BoundNS)
	switch {
	case x.Clock.Same:
		text = "this host's"
	case !x.Clock.Known:
		text = "not known"
	}
	if x.Daemon.Known() {
		text += ", by " + x.Daemon.Name + " " + bound(x.Daemon.BoundNS)
	}
	return text
}

// agentState says what an agent is doing, and for whom.
func agentState(x *survey.Seen, hosts map[string]string) string {
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

// agentClock describes an agent's clock.
func agentClock(r *survey.Reading) string {
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
	return fmt.Sprintf("%v ± %v; its wall clock differs by %v", signedDuration(offset), time.Duration(r.BoundNS).Round(100*time.Nanosecond), signedDuration(time.Duration(r.WallNS).Round(time.Microsecond)))
}

// A signedDuration is formatted with its sign.
type signedDuration time.Duration

func (d signedDuration) String() string {
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
	return quantity.Span(d.Round(time.Second)) + " ago"
}

func freeMemory(b uint64) string {
	if b == 0 {
		return "free memory not known"
	}
	return fmt.Sprintf("%.1f GiB free", float64(b)/(1<<30))
}

// ShowFleet writes the problems of a fleet's agents, worst first.
func ShowFleet(p *layout.Page, d *survey.Diagnosis) {
	p.Say(fmt.Sprintf("%s at %s: %s", quantity.Counted(len(d.Agents), "agent", "agents"), survey.Where(d.At), strings.Join(d.Agents, ", ")))
	var all []host.Finding
	for _, f := range d.Findings {
		if len(f.Agents) > 0 {
			f.Found = strings.Join(f.Agents, ", ") + ": " + f.Found
		}
		all = append(all, f.Finding)
	}
	counts := ShowFindings(p, all)
	if len(counts) == 0 {
		counts = []string{"No finding that would make a run invalid"}
	}
	p.Gap()
	p.Say(strings.Join(counts, ", ") + ".")
}
