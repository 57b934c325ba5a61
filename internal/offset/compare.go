package offset

// A Clock is what is known of a clock when its instants are set against those of
// another.
type Clock struct {
	// Boot and Base tell which clock of which host it is: the boot that its
	// readings belong to, as pace.Epoch has it, and what they count from there,
	// which on Linux is the time namespace of the process (where the link
	// /proc/self/ns/time leads). Clocks of equal Boot and Base are one clock;
	// with an empty Boot a clock is only itself.
	Boot string `json:"boot"`
	Base string `json:"base"`
	// Reading bounds how far an instant of the process may lie from the same
	// instant of the host's clock, in ns; below 0 the host has no clock that
	// processes share.
	Reading int64 `json:"reading_ns"`
	// Bound is how far the offset that its instants were corrected by may be off,
	// in ns; 0 for the coordinator's own clock.
	Bound int64 `json:"bound_ns"`
}

// Same tells whether a and b are one clock, so that their instants compare
// without a correction.
func Same(a, b Clock) bool {
	return a.Boot != "" && a.Boot == b.Boot && a.Base == b.Base && a.Reading >= 0 && b.Reading >= 0
}

// Compare returns how far the difference between an instant of a and one of b
// may be off. Of one clock that is the error of reading it twice; the instants
// must then be left as they are, or be corrected by the same offset. Of two it
// is the sum of both bounds, as each instant was corrected to the coordinator's
// clock by itself.
func Compare(a, b Clock) int64 {
	if Same(a, b) {
		return satAdd(a.Reading, b.Reading)
	}
	return satAdd(a.Bound, b.Bound)
}

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
