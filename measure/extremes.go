package measure

// Extremes are the least and the greatest value of each distribution of a
// snapshot. They travel beside the intervals: an interval's own are bounds of
// buckets where its exact ones are not known, and a snapshot's may be those of a
// value that only a later one counts, so that a sum of intervals alone may have
// others than the snapshot at their end.
type Extremes [NumKinds][NumPhases]Range

// A Range is the least and the greatest of some values in ns.
type Range struct {
	Min, Max int64
	Any      bool // whether there are any; where not, Min and Max are 0
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

// Widen makes the extremes of a reach to those of e at least, where a counts
// anything. When all intervals of a recorder were added to a, then with the
// extremes of the recorder's last snapshot a is that snapshot exactly; with
// those of several recorders, it is what Merge makes of theirs. It may be done
// after each interval, or once.
func (a *Snapshot) Widen(e *Extremes) {
	for k := range a.Kinds {
		for p := range a.Kinds[k] {
			if c, r := &a.Kinds[k][p], &e[k][p]; r.Any && c.total > 0 {
				c.extremes(r.Min, r.Max)
			}
		}
	}
}
