package result

import "strings"

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

// Dist returns the distribution with which the names of figures begin: "e2e" and "e2e.response" are the
// response, "e2e.service" and "e2e.system" parts of it. It is nil if the run does not have it.
func (r *Result) Dist(name string) *Dist {
	of, part, _ := strings.Cut(name, ".")
	pair, wire := Pair{}, (*WireParts)(nil)
	l, w := &r.Latency, r.Wire
	if w == nil {
		w = new(Wire)
	}
	switch of {
	case "send":
		pair, wire = Pair{Response: l.Send.Response, Service: l.Send.Service}, w.Send
	case "e2e":
		pair, wire = l.E2E, w.E2E
	case "rtt":
		pair = l.RTT
	case "settle":
		pair.Response = l.Settle
	}
	switch {
	case part == "" || part == "response":
		return pair.Response
	case part == "service":
		return pair.Service
	case part == "system" && wire != nil:
		return wire.System
	}
	return nil
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
