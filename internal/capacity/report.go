package capacity

import "github.com/weirmq/weir/result"

// Schema names the format of a Report.
const Schema = "weir.capacity/v1"

// A Report is what capacity.json holds: what was asked, each probe so far, and what they
// come to. Rates are in messages per second, of all producers together.
type Report struct {
	Schema  string   `json:"schema"`
	Promise []string `json:"promise"` // the objectives that a rate must keep
	Plan    Planned  `json:"plan"`
	Probes  []Probed `json:"probes"`
	Answer  Answered `json:"answer"`
	Curve   []Probed `json:"curve,omitempty"` // at even parts of the highest rate that passed
}

// Planned is a Plan as it is stored.
type Planned struct {
	FromPerS  float64 `json:"from_per_s"`
	MostPerS  float64 `json:"most_per_s,omitempty"` // 0: no limit
	Precision float64 `json:"precision"`            // of the interval, relative to its lower end
	Retests   int     `json:"retests"`
	Probes    int     `json:"probes"`
	Curve     int     `json:"curve,omitempty"` // how many points of it were asked for
	Seed      uint64  `json:"seed"`
}

// Plan returns it as a search takes it.
func (p Planned) Plan() Plan {
	return Plan{From: p.FromPerS, Most: p.MostPerS, Precision: p.Precision, Retests: p.Retests, Probes: p.Probes, Seed: p.Seed}
}

// A Probed is one run, and what it says of its rate.
type Probed struct {
	RatePerS  float64       `json:"rate_per_s"`
	Purpose   Purpose       `json:"purpose"`
	Judgement string        `json:"judgement"`     // passed, failed, generator-limited, undecided
	Why       string        `json:"why,omitempty"` // it did not pass
	Verdict   result.Status `json:"verdict"`       // of the run
	Dir       string        `json:"dir"`           // of the run's result, below the folder of capacity.json

	// Response times from the due instant, of e2e, else rtt, else send, in ns; absent
	// where the run has too few samples for them.
	Of    string `json:"of,omitempty"`
	P50NS *int64 `json:"p50_ns,omitempty"`
	P99NS *int64 `json:"p99_ns,omitempty"`
}

// Answered is an Answer as it is stored.
type Answered struct {
	PassPerS float64 `json:"pass_per_s"`           // highest rate that passed, below every one that did not; 0: none
	FailPerS float64 `json:"fail_per_s,omitempty"` // lowest rate that did not pass; absent: none was found
	Stop     Stop    `json:"stop"`                 // why the search ended
}

// Measured fills in what a run's result says.
func (p *Probed) Measured(r *result.Result) {
	p.Verdict = r.Verdict.Status
	for _, x := range []struct {
		of string
		d  *result.Dist
	}{{"e2e", r.Latency.E2E.Response}, {"rtt", r.Latency.RTT.Response}, {"send", r.Latency.Send.Response}} {
		if x.d == nil {
			continue
		}
		p.Of, p.P50NS, p.P99NS = x.of, supported(x.d, 50), supported(x.d, 99)
		return
	}
}

// supported is a percentile that has samples enough; nil otherwise.
func supported(d *result.Dist, p float64) *int64 {
	if x := d.Percentile(p); x != nil && x.Supported {
		return &x.NS
	}
	return nil
}

// Again returns the search as far as the report's probes go.
func (r *Report) Again() *Search {
	s := New(r.Plan.Plan())
	for _, p := range r.Probes {
		j := Limited
		for _, known := range []Judgement{Passed, Failed, Undecided} {
			if p.Judgement == known.String() {
				j = known
			}
		}
		s.Add(Probe{p.RatePerS, p.Purpose, j})
	}
	return s
}
