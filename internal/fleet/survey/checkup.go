package survey

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/host"
)

// The minimum for a fleet.
const (
	wantBound  = time.Millisecond // of the clock offset
	wantMemory = 1 << 30          // free bytes, the default room for messages in flight (limits.memory)
)

// A Complaint is something about agents that would make their run invalid, fail, or be worse than
// necessary.
type Complaint struct {
	Agents []string `json:"agents,omitempty"` // names; empty: the whole fleet
	host.Finding
}

// Check returns what is wrong with the agents of a survey with doctors, for a coordinator of that version.
// It omits what is fine.
func (s *Sight) Check(version string) []Complaint {
	c := &checkup{version: version, sight: s, first: map[string]string{}}
	c.fleet()
	for i := range s.Agents {
		if x := &s.Agents[i]; !x.Gone {
			c.agent(x)
			c.clock(x)
			c.host(x)
		}
	}
	return c.all
}

// A checkup collects complaints.
type checkup struct {
	version string
	sight   *Sight
	all     []Complaint
	first   map[string]string // first finding, by check and machine
}

// ofMachine are checks of the machine, whose findings differ slightly between its agents.
var ofMachine = []string{"other work", "steal", "memory"}

// add adds a complaint about agents; identical findings share one.
func (c *checkup) add(f host.Finding, agents ...string) {
	for i := range c.all {
		if x := &c.all[i]; x.Name == f.Name && x.Health == f.Health && x.Found == f.Found {
			x.Agents = append(x.Agents, agents...)
			return
		}
	}
	c.all = append(c.all, Complaint{agents, f})
}

// fleet checks the agents against each other.
func (c *checkup) fleet() {
	if n := len(c.sight.Coordinators); n > 1 {
		var where []string
		for _, b := range c.sight.Coordinators {
			where = append(where, b.Host)
		}
		c.add(host.Finding{
			Name: "coordinators", Health: host.Warn, Found: fmt.Sprintf("%d meet their agents here, on %s", n, strings.Join(where, ", ")),
			Why: "an agent belongs to the one that it hears first, and is missing from the other", Do: "Stop all but one, or give each a server of its own.",
		})
	}
	names, machines := map[string][]string{}, map[string][]string{}
	var order []string // of machines, as first seen
	for _, x := range c.sight.Agents {
		if x.Gone {
			c.add(host.Finding{
				Name: "missing", Health: host.Bad, Found: fmt.Sprintf("joined from %s and does not answer", x.Host),
				Why: "a run waits for it until it gives up, and then lacks its part", Do: "Check whether it runs and reaches this address; then start it again.",
			}, x.Name)
			continue
		}
		names[x.Name] = append(names[x.Name], x.Host)
		if x.Boot == "" {
			continue
		}
		if machines[x.Boot] == nil {
			order = append(order, x.Boot)
		}
		machines[x.Boot] = append(machines[x.Boot], x.Name)
	}
	for _, x := range c.sight.Agents {
		if hosts := names[x.Name]; len(hosts) > 1 {
			delete(names, x.Name)
			c.add(host.Finding{
				Name: "name", Health: host.Bad, Found: fmt.Sprintf("%d agents have this name, on %s", len(hosts), strings.Join(hosts, ", ")),
				Why: "only the first of them can join", Do: "Give each a --name of its own.",
			}, x.Name)
		}
	}
	for _, boot := range order {
		if on := machines[boot]; len(on) > 1 {
			c.add(host.Finding{
				Name: "machine", Health: host.Warn, Found: fmt.Sprintf("%d agents run on one machine", len(on)),
				Why: "they share its cores and its network, and delay each other", Do: "Run one agent on each machine, unless you measure just that.",
			}, on...)
		}
	}
}

// agent checks a single agent.
func (c *checkup) agent(x *Seen) {
	if !buildinfo.Same(x.Version, c.version) {
		c.add(host.Finding{
			Name: "version", Health: host.Bad, Found: fmt.Sprintf("weir %s; this one is %s", x.Version, c.version),
			Why: "a coordinator accepts agents of its own version only", Do: "Install the same weir on every host.",
		}, x.Name)
	}
	if x.Busy != "" {
		c.add(host.Finding{
			Name: "busy", Health: host.Bad, Found: "is doing its part of run " + x.Busy,
			Why: "it does one run at a time, so another run waits for it in vain", Do: "Wait until the run has ended.",
		}, x.Name)
	}
	if x.Unasked != "" && x.Busy == "" {
		c.add(host.Finding{
			Name: "host", Health: host.Unknown, Found: x.Unasked, Why: "the state of its host is not known", Do: "Ask again, or run weir doctor there.",
		}, x.Name)
	}
}

// clock checks an agent's clock.
func (c *checkup) clock(x *Seen) {
	r := &x.Clock
	const why = "times from one host to another are only as exact as the clock offsets"
	switch {
	case r.Same:
		return
	case !r.Known:
		c.add(host.Finding{
			Name: "clock", Health: host.Bad, Found: "its clock offset is not known: it answered no question about it",
			Why: why, Do: "Check whether the agent answers, and has this version.",
		}, x.Name)
		return
	case r.BoundNS > int64(wantBound):
		c.add(host.Finding{
			Name: "clock", Health: host.Warn, Found: fmt.Sprintf("its clock offset is known to ± %v", time.Duration(r.BoundNS).Round(time.Microsecond)),
			Why: why, Do: fmt.Sprintf("Use a quieter and shorter network path to its host (± %v at most), or keep a message's producer and consumer on one host (placement: paired).", wantBound),
		}, x.Name)
	}
	if apart, _ := x.Daemon.Apart(&c.sight.Daemon, r.OffsetNS, r.BoundNS); apart > 0 {
		c.add(host.Finding{
			Name: "time synchronisation", Health: host.Warn,
			Found: fmt.Sprintf("its wall clock is %v ahead of this host's, ± %v, more than %s on both hosts allows (± %v)",
				time.Duration(r.WallNS).Round(time.Microsecond), time.Duration(r.BoundNS).Round(time.Microsecond), x.Daemon.Name, time.Duration(x.Daemon.BoundNS+c.sight.Daemon.BoundNS).Round(time.Microsecond)),
			Why: "one of them is wrong, and weir cannot know which", Do: fmt.Sprintf("Check what %s follows on both hosts.", x.Daemon.Name), Commands: host.DaemonCommands(x.Daemon.Name),
		}, x.Name)
	}
}

// host adds the findings of an agent's own doctor, and checks its host's facts where the doctor found
// nothing, or was not asked.
func (c *checkup) host(x *Seen) {
	warned := func(name string) bool {
		return slices.ContainsFunc(x.Findings, func(f host.Finding) bool {
			return f.Name == name && (f.Health == host.Bad || f.Health == host.Warn)
		})
	}
	for _, f := range x.Findings {
		if f.Health == host.Bad || f.Health == host.Warn {
			if key := f.Name + " " + string(f.Health) + " " + x.Boot; x.Boot != "" && slices.Contains(ofMachine, f.Name) {
				if c.first[key] == "" {
					c.first[key] = f.Found
				}
				f.Found = c.first[key]
			}
			c.add(f, x.Name)
		}
	}
	if x.Cores == 1 && !warned("cores") {
		c.add(host.Finding{
			Name: "cores", Health: host.Warn, Found: "1 core", Why: "the generator's threads (pacers), the client library and all else share it, and wait for each other", Do: "Use a host with more cores.",
		}, x.Name)
	}
	if x.MemoryB > 0 && x.MemoryB < wantMemory && !warned("memory") {
		c.add(host.Finding{
			Name: "memory", Health: host.Warn, Found: fmt.Sprintf("%d MiB free", x.MemoryB>>20), Why: "weir holds up to limits.memory (1GiB) of messages in flight",
			Do: "Free some, or set limits.memory.",
		}, x.Name)
	}
}
