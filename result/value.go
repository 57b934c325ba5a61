package result

import (
	"encoding/json"
	"slices"
)

// A Value is a figure that may be only a lower bound. Its number cannot be read without asking
// which of the two it is, so that no output shows a bound as if it were the value.
type Value struct {
	least   float64
	atLeast bool
}

// Exactly returns an exact value.
func Exactly(v float64) Value { return Value{least: v} }

// AtLeast returns a lower bound.
func AtLeast(v float64) Value { return Value{least: v, atLeast: true} }

// Bound returns AtLeast(v) if atLeast is set, and Exactly(v) otherwise.
func Bound(v float64, atLeast bool) Value { return Value{v, atLeast} }

// Exact returns the value; ok is false if only a lower bound is known.
func (v Value) Exact() (value float64, ok bool) { return v.least, !v.atLeast }

// Least returns the value or its lower bound, and which of them it is. It is for outputs that mark
// a bound in their own way: an arrow, a column, a name.
func (v Value) Least() (least float64, atLeast bool) { return v.least, v.atLeast }

// Text formats the value, with ">= " before a lower bound.
func (v Value) Text(write func(float64) string) string {
	if v.atLeast {
		return ">= " + write(v.least)
	}
	return write(v.least)
}

// bound is the JSON form of a lower bound.
type bound struct {
	AtLeast float64 `json:"at_least"`
}

// MarshalJSON writes a value as a number, and a lower bound as {"at_least": number}.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.atLeast {
		return json.Marshal(bound{v.least})
	}
	return json.Marshal(v.least)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var x bound
		if err := json.Unmarshal(b, &x); err != nil {
			return err
		}
		*v = AtLeast(x.AtLeast)
		return nil
	}
	*v = Value{}
	return json.Unmarshal(b, &v.least)
}

// Spread returns the median and the extremes of several values. Each is a lower bound if it could
// be larger if a bound among the values were.
func Spread(values []Value) (median, lowest, highest Value) {
	sorted := slices.SortedFunc(slices.Values(values), func(a, b Value) int {
		switch {
		case a.least < b.least:
			return -1
		case a.least > b.least:
			return 1
		case a.atLeast == b.atLeast:
			return 0
		case b.atLeast:
			return -1
		}
		return 1
	})
	n := len(sorted)
	if n == 0 {
		return Value{}, Value{}, Value{}
	}
	median = Value{least: (sorted[(n-1)/2].least + sorted[n/2].least) / 2}
	for _, v := range sorted {
		median.atLeast = median.atLeast || v.atLeast && v.least <= sorted[n/2].least
	}
	highest = sorted[n-1]
	highest.atLeast = slices.ContainsFunc(sorted, func(v Value) bool { return v.atLeast })
	return median, sorted[0], highest
}

// Value returns the percentile in ns.
func (p *Percentile) Value() Value { return Bound(float64(p.NS), p.AtLeast) }

// Value returns percentile p in ns if it is supported, or nil; d may be nil.
func (d *Dist) Value(p float64) *Value {
	if x := d.Percentile(p); x != nil && x.Supported {
		v := x.Value()
		return &v
	}
	return nil
}

// Found returns the figure that was compared with the objective.
func (s *SLO) Found() Value { return Bound(s.Value, s.AtLeast) }
