package scenario

// Fleet is how many agents do a run, and how much each of them has. The zero value is all
// agents that there are, and what the topology says.
type Fleet struct {
	Agents    int // 0: all
	Producers int // of each agent; 0: topology.producers are dealt over all
	Consumers int // of each agent and subscription; 0: topology.consumers are
}

// producersDealt and consumersDealt say that the topology has how many there are.
func (s *Scenario) producersDealt() bool { return s.Fleet.Producers == 0 }
func (s *Scenario) consumersDealt() bool { return s.Fleet.Consumers == 0 }

// combineFleet counts what all agents have together.
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
