package measure

import (
	"encoding/binary"
	"math"
)

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

// AppendBinary appends e's binary form to b: a number of one bit for each
// distribution that has any values, and their extremes. It never fails.
func (e *Extremes) AppendBinary(b []byte) ([]byte, error) {
	var have uint64
	for k := range e {
		for p := range e[k] {
			if e[k][p].Any {
				have |= 1 << (k*int(NumPhases) + p)
			}
		}
	}
	b = binary.AppendUvarint(b, have)
	for k := range e {
		for p := range e[k] {
			if r := &e[k][p]; r.Any {
				b = binary.AppendUvarint(b, uint64(r.Min))
				b = binary.AppendUvarint(b, uint64(r.Max))
			}
		}
	}
	return b, nil
}

// DecodeBinary sets e to what AppendBinary wrote at the start of b and returns
// what follows it. An error wraps ErrFormat and leaves e empty.
func (e *Extremes) DecodeBinary(b []byte) (rest []byte, err error) {
	*e = Extremes{}
	d := newDecoder(b)
	have := d.natural("set of distributions", 1<<(int(NumKinds)*int(NumPhases))-1)
	for k := range e {
		for p := range e[k] {
			if have&(1<<(k*int(NumPhases)+p)) != 0 {
				e[k][p] = Range{d.natural("minimum", math.MaxInt64), d.natural("maximum", math.MaxInt64), true}
			}
		}
	}
	if d.Err() != nil {
		*e = Extremes{}
	}
	return d.end()
}
