package scenario

// Fleet says how many agents take part in a run, and how many clients each has. The zero value means
// all available agents, and the topology's counts.
type Fleet struct {
	Agents    int // 0: all
	Producers int // per agent; 0: topology.producers, divided over all agents
	Consumers int // per agent and subscription; 0: topology.consumers, divided likewise
}

// producersDealt and consumersDealt report whether the topology gives the totals.
func (s *Scenario) producersDealt() bool { return s.Fleet.Producers == 0 }
func (s *Scenario) consumersDealt() bool { return s.Fleet.Consumers == 0 }

// combineFleet computes the totals over all agents.
func (d *decoder) combineFleet(s *Scenario) {
	for _, side := range []struct {
		path, all string
		each      int
		total     *int
	}{
		{"fleet.producers", "topology.producers", s.Fleet.Producers, &s.Topology.Producers},
		{"fleet.consumers", "topology.consumers", s.Fleet.Consumers, &s.Topology.Consumers},
	} {
		switch n := side.each * s.Fleet.Agents; {
		case side.each == 0 || !d.took(side.path):
		case s.Fleet.Agents == 0:
			d.fault(d.at(side.path), side.path, "needs fleet.agents, which says how many agents there are (or %s)", side.all)
		case d.has(side.all):
			d.fault(d.later(side.path, side.all), side.path, "excludes %s: both say how many there are (give one of them)", side.all)
		case n > maxCount:
			d.fault(d.later(side.path, "fleet.agents"), side.path, "makes %d with %d agents (at most %d)", n, s.Fleet.Agents, maxCount)
		default:
			*side.total = n
		}
	}
}
