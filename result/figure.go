package result

// A Figure says whether one figure of the measured window can be quoted, and if not, why.
type Figure struct {
	Name     string `json:"name"` // as in an objective: "e2e.p99.9", "received.rate"
	Quotable bool   `json:"quotable"`

	// What else than the system moved the figure most. Absent if it is quotable.
	By     string         `json:"by,omitempty"`      // the check that found it
	Part   float64        `json:"part,omitempty"`    // by how much, as a fraction of the figure
	AtMost bool           `json:"at_most,omitempty"` // Part is a bound
	Why    string         `json:"why,omitempty"`
	Code   string         `json:"code,omitempty"` // of Why, from docs/method/findings.md
	Values map[string]any `json:"values,omitempty"`
}

// Figure returns the verdict on a figure; nil if there is none.
func (v *Verdict) Figure(name string) *Figure {
	for i := range v.Figures {
		if v.Figures[i].Name == name {
			return &v.Figures[i]
		}
	}
	return nil
}

// Stalls is by how much stalls of the host can have moved a percentile. A thread that only sleeps, and is
// due at each millisecond, detects them.
type Stalls struct {
	Met     float64 `json:"met"`               // largest share of the messages that met a stall, from 0 to 1
	LeastNS int64   `json:"least_ns"`          // lower bound of the percentile without them, and without lateness
	Calm    float64 `json:"calm,omitempty"`    // share of the samples from slices of time with too few stalls to move the percentile
	CalmNS  *int64  `json:"calm_ns,omitempty"` // the percentile of these samples without lateness; absent if too few, or if it is only a bound
}
