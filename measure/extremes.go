package measure

// Extremes are the smallest and the largest value of each distribution of a snapshot. They travel
// beside the intervals: an interval's own are bucket bounds if its exact ones are unknown, and a
// snapshot's may be those of a value that only a later one counts, so that a sum of intervals alone
// may differ from the snapshot at their end.
type Extremes [NumKinds][NumPhases]Range

// A Range is the smallest and the largest of some values in ns.
type Range struct {
	Min, Max int64
	Any      bool // whether there are any values; if not, Min and Max are 0
}

// Extremes returns the extremes of a.
func (a *Snapshot) Extremes() Extremes {
	var e Extremes
	for k := range a.Kinds {
		for p := range a.Kinds[k] {
			if c := &a.Kinds[k][p]; c.total > 0 {
				e[k][p] = Range{c.min, c.max, true}
			}
		}
	}
	return e
}

// Widen extends the extremes of a to at least e, wherever a counts anything. If all intervals of a
// recorder were added to a, then with the extremes of the recorder's last snapshot a is that
// snapshot exactly; with those of several recorders, it is what Merge makes of their snapshots.
// Call it after each interval, or once.
func (a *Snapshot) Widen(e *Extremes) {
	for k := range a.Kinds {
		for p := range a.Kinds[k] {
			if c, r := &a.Kinds[k][p], &e[k][p]; r.Any && c.total > 0 {
				c.extremes(r.Min, r.Max)
			}
		}
	}
}
