package offset

// An Interval is where a value lies, both ends included.
type Interval struct {
	Lo int64 `json:"lo"`
	Hi int64 `json:"hi"`
}

// Around returns the values that lie at most bound from a middle.
func Around(middle, bound int64) Interval {
	return Interval{satAdd(middle, -bound), satAdd(middle, bound)}
}

// Overlaps tells whether a and b have a value in common. Two intervals of one
// offset that do not overlap cannot both be right.
func Overlaps(a, b Interval) bool { return a.Lo <= b.Hi && b.Lo <= a.Hi }

// A Wall is where a host's wall clock was against the clock of its run, at some
// instant.
type Wall struct {
	Ahead int64 // the wall clock's reading, in ns since 1970, less the run clock's
	Bound int64 // of the wall clock against true time, as chrony tells it, in ns
}

// Expected returns where the offset of an agent's clock lies by what the time
// daemons of both hosts say of their wall clocks, at the time at which the walls
// were read. It knows nothing of exchanges, and so the two can be checked against
// each other by Overlaps.
func Expected(agent, coordinator Wall) Interval {
	return Around(satAdd(agent.Ahead, -coordinator.Ahead), satAdd(agent.Bound, coordinator.Bound))
}
