package capacity

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// Schema names the format of a Report, File its file, and MostBytes the file's maximum size.
const (
	Schema    = "weir.capacity/v1"
	File      = "capacity.json"
	MostBytes = 16 << 20
)

// Parse parses the content of a report's file.
func Parse(b []byte) (*Report, error) {
	r := new(Report)
	if err := userfile.JSON(b, Schema, r); err != nil {
		return nil, err
	}
	if len(r.Over) > 0 && r.Plan.Over == nil {
		return nil, errors.New("is malformed: over without plan.over")
	}
	return r, nil
}

// A Report is the content of capacity.json: the plan, each probe so far, and the results. Rates are in
// messages per second over all producers.
type Report struct {
	Schema  string   `json:"schema"`
	Promise []string `json:"promise"` // objectives that a rate must keep
	Plan    Planned  `json:"plan"`
	Probes  []Probed `json:"probes"`
	Answer  Answered `json:"answer"`
	Curve   []Probed `json:"curve,omitempty"` // at even fractions of the highest rate that passed

	// With Plan.Over: the result of each search, in the order of the numbers. Answer is then that of the
	// number with the highest rate that passed.
	Over []Ended `json:"over,omitempty"`
	// The Universal Scalability Law fitted to Over; nil: the system set the upper end of fewer than four
	// searches.
	Law *Law `json:"law,omitempty"`
	// With Plan.TargetPerS: how many are needed.
	Target *Needed `json:"target,omitempty"`
}

// Ended is the result of the search at one number.
type Ended struct {
	N int `json:"n"`
	Answered
}

// Needed is how many are needed to reach a rate: of what was varied, or of independent systems like the
// measured one.
type Needed struct {
	PerS   float64 `json:"per_s"`
	Of     string  `json:"of"`               // producers, consumers, partitions, destinations, nodes or systems
	Least  int     `json:"least,omitempty"`  // at the upper end of the interval; 0: the system set none
	Middle int     `json:"middle,omitempty"` // at the estimate; 0: no law
	Most   int     `json:"most,omitempty"`   // at the lower end
	Why    string  `json:"why,omitempty"`    // why the numbers are missing
}

// MostProbes is the maximum number of probes of a search.
const MostProbes = 200

// Planned is a Plan as stored.
type Planned struct {
	FromPerS   float64 `json:"from_per_s"`
	MostPerS   float64 `json:"most_per_s,omitempty"` // 0: unlimited
	Precision  float64 `json:"precision"`            // of the interval, relative to its lower end
	Retests    int     `json:"retests"`
	Probes     int     `json:"probes"`
	Curve      int     `json:"curve,omitempty"` // requested number of points
	Seed       uint64  `json:"seed"`
	LongestS   float64 `json:"longest_s,omitempty"`    // limit on extending a probe until its objectives are decided; 0: not extended
	Over       *Varied `json:"over,omitempty"`         // nil: a single search
	TargetPerS float64 `json:"target_per_s,omitempty"` // 0: not requested
}

// Varied is what takes one number in each search.
type Varied struct {
	Of      string `json:"of"`      // producers, consumers, partitions, destinations or nodes
	Numbers []int  `json:"numbers"` // in the order of the searches
}

// Plan converts it for a search.
func (p Planned) Plan() Plan {
	return Plan{From: p.FromPerS, Most: p.MostPerS, Precision: p.Precision, Retests: p.Retests, Probes: p.Probes, Seed: p.Seed}
}

// A Probed is one run, and what it says about its rate.
type Probed struct {
	N         int           `json:"n,omitempty"` // number of what is varied; absent: nothing is
	RatePerS  float64       `json:"rate_per_s"`
	Purpose   Purpose       `json:"purpose"`
	Judgement string        `json:"judgement"`     // passed, failed, generator-limited, undecided
	Why       string        `json:"why,omitempty"` // why it did not pass
	Verdict   result.Status `json:"verdict"`       // of the run
	Dir       string        `json:"dir"`           // result folder, within the folder of capacity.json

	// Response times: of the first of e2e, rtt and send that an objective is about, else of the first one
	// present.
	Of      string   `json:"of,omitempty"`
	Figures []Figure `json:"figures,omitempty"` // the 50th, the 99th, and those of objectives, ascending; without those with too few samples

	// As in Figures, in ns; absent if a lower bound. Older files have only these.
	P50NS *int64 `json:"p50_ns,omitempty"`
	P99NS *int64 `json:"p99_ns,omitempty"`
}

// A Figure is a percentile of a probe.
type Figure struct {
	P       float64 `json:"p"` // in percent
	NS      int64   `json:"ns"`
	LoNS    *int64  `json:"lo_ns,omitempty"`    // 95 % interval; nil: unknown
	HiNS    *int64  `json:"hi_ns,omitempty"`    // nil: unknown, or unbounded
	AtLeast bool    `json:"at_least,omitempty"` // NS is a lower bound: messages that never completed reach into it
}

// Value returns the percentile in ns.
func (f *Figure) Value() result.Value { return result.Bound(float64(f.NS), f.AtLeast) }

// Figure returns percentile p of the probe, or nil.
func (p *Probed) Figure(percent float64) *Figure {
	for i := range p.Figures {
		if p.Figures[i].P == percent {
			return &p.Figures[i]
		}
	}
	switch {
	case len(p.Figures) > 0:
	case percent == 50 && p.P50NS != nil:
		return &Figure{P: 50, NS: *p.P50NS}
	case percent == 99 && p.P99NS != nil:
		return &Figure{P: 99, NS: *p.P99NS}
	}
	return nil
}

// Answered is an Answer as stored.
type Answered struct {
	PassPerS float64 `json:"pass_per_s"`           // highest rate that passed, below all that did not; 0: none
	FailPerS float64 `json:"fail_per_s,omitempty"` // lowest rate that did not pass; absent: none
	FailBy   string  `json:"fail_by,omitempty"`    // result of its probes: failed, generator-limited, undecided; absent in older files
	Stop     Stop    `json:"stop"`                 // why the search ended

	UndecidedPerS float64 `json:"undecided_per_s,omitempty"` // lowest undecided rate between the two; absent: none
}

// answered converts an answer for storage.
func answered(a Answer) Answered {
	s := Answered{PassPerS: a.Pass, FailPerS: a.Fail.Rate, Stop: a.Stop, UndecidedPerS: a.Undecided}
	if a.Fail.Rate > 0 {
		s.FailBy = a.Fail.By.String()
	}
	return s
}

// Fail is the upper end. For an older file the reason for the stop says what set it, or else it was not the
// system.
func (a *Answered) Fail() End {
	by := judgement(a.FailBy)
	if a.FailBy == "" {
		switch a.Stop {
		case Found, Between, NonePassed:
			by = Failed
		case TooShort:
			by = Undecided
		case Generator, AtMost, Doubtful, OutOfTries, Unstarted, Unfinished:
		}
	}
	if a.FailPerS == 0 {
		by = 0
	}
	return End{a.FailPerS, by}
}

// judgement parses a judgement; an unknown one says nothing about the system.
func judgement(word string) Judgement {
	for _, j := range []Judgement{Passed, Failed, Undecided} {
		if word == j.String() {
			return j
		}
	}
	return Limited
}

// Measured fills in the run's result. broken is as for Judge.
func (p *Probed) Measured(r *result.Result, broken bool) {
	j, why := Judge(r, broken)
	if p.Judgement = j.String(); j != Passed {
		p.Why = why
	}
	p.Verdict = r.Verdict.Status
	all := []struct {
		of string
		d  *result.Dist
	}{{"e2e", r.Latency.E2E.Response}, {"rtt", r.Latency.RTT.Response}, {"send", r.Latency.Send.Response}}
	for i := range all {
		x := &all[i]
		promised := slices.ContainsFunc(r.Verdict.SLO, func(s result.SLO) bool { return strings.HasPrefix(s.Expr, x.of+".") })
		if x.d != nil && (p.Of == "" || promised) {
			p.figures(x.of, x.d, r.Verdict.SLO)
		}
		if x.d != nil && promised {
			return
		}
	}
}

// figures fills in the percentiles of a response.
func (p *Probed) figures(of string, d *result.Dist, slo []result.SLO) {
	percents := []float64{50, 99}
	for i := range slo {
		if o, err := judge.ParseObjective(slo[i].Expr); err == nil {
			percent, ok := o.Percentile()
			if name, service := o.Latency(); ok && name == of && !service && percent < 100 {
				percents = append(percents, percent)
			}
		}
	}
	slices.Sort(percents)
	p.Of, p.Figures, p.P50NS, p.P99NS = of, nil, nil, nil
	for _, percent := range slices.Compact(percents) {
		if x := d.Percentile(percent); x != nil && x.Supported {
			p.Figures = append(p.Figures, Figure{x.P, x.NS, x.LoNS, x.HiNS, x.AtLeast})
		}
	}
	for percent, old := range map[float64]**int64{50: &p.P50NS, 99: &p.P99NS} {
		if f := p.Figure(percent); f != nil && !f.AtLeast {
			*old = &f.NS
		}
	}
}

// Numbers returns the numbers of what is varied, or 0 alone.
func (r *Report) Numbers() []int {
	if r.Plan.Over == nil {
		return []int{0}
	}
	return r.Plan.Over.Numbers
}

// Again returns the search at one of Numbers with the report's probes so far. Searches after the first
// begin at the rate that the previous one found.
func (r *Report) Again(n int) *Search {
	plan := r.Plan.Plan()
	for _, earlier := range r.Numbers() {
		if earlier == n {
			break
		}
		if a := r.search(earlier, plan).Answer(); a.Pass > 0 {
			plan.From = a.Pass
		}
	}
	return r.search(n, plan)
}

func (r *Report) search(n int, plan Plan) *Search {
	s := New(plan)
	for _, p := range r.Probes {
		if p.N != n {
			continue
		}
		s.Add(Probe{p.RatePerS, p.Purpose, judgement(p.Judgement)})
	}
	return s
}

// Next returns the next run, with the name of its folder, or false if the searches are over and the curve
// is complete. Sum must have been called since the last probe.
func (r *Report) Next() (p Probed, more bool) {
	for _, n := range r.Numbers() {
		if rate, why, more := r.Again(n).Next(); more {
			dir := fmt.Sprintf("%03d-%s", len(r.Probes)+1, strconv.FormatFloat(rate, 'f', -1, 64))
			if n > 0 {
				dir += fmt.Sprintf("-%d-%s", n, r.Plan.Over.Of)
			}
			return Probed{N: n, RatePerS: rate, Purpose: why, Dir: dir}, true
		}
	}
	i := len(r.Curve) + 1
	if r.Answer.PassPerS == 0 || i > r.Plan.Curve {
		return Probed{}, false
	}
	return Probed{RatePerS: Part(r.Answer.PassPerS, i, r.Plan.Curve), Purpose: Curving, Dir: fmt.Sprintf("curve-%02d", i)}, true
}

// Add adds a judged run from Next.
func (r *Report) Add(p Probed) {
	if p.Purpose == Curving {
		r.Curve = append(r.Curve, p)
		return
	}
	r.Probes = append(r.Probes, p)
}

// Sum computes the results of the probes so far: Answer, Over, Law and Target.
func (r *Report) Sum() {
	r.Over, r.Law, r.Target = nil, nil, nil
	var points []Point
	for i, n := range r.Numbers() {
		a := r.Again(n).Answer()
		ended := Ended{n, answered(a)}
		if i == 0 || a.Pass > r.Answer.PassPerS {
			r.Answer = ended.Answered
		}
		if n == 0 {
			continue
		}
		r.Over = append(r.Over, ended)
		if a.Pass > 0 {
			points = append(points, Point{n, a.Pass, a.Fail})
		}
	}
	for _, ended := range r.Over {
		if ended.Stop == Unfinished || ended.Stop == Unstarted {
			r.Answer.Stop = Unfinished
		}
	}
	var why error
	if len(r.Over) > 0 {
		r.Law, why = Fit(points)
	}
	if r.Plan.TargetPerS > 0 {
		r.Target = r.needed(why)
	}
}

// needed computes how many are needed. unfitted says why there is no law.
func (r *Report) needed(unfitted error) *Needed {
	t := &Needed{PerS: r.Plan.TargetPerS, Of: "systems"}
	switch {
	case r.Law != nil:
		t.Of = r.Plan.Over.Of
		var err error
		if t.Least, t.Middle, t.Most, err = r.Law.Needs(t.PerS); err != nil {
			t.Why = err.Error()
		}
	case unfitted != nil:
		t.Of, t.Why = r.Plan.Over.Of, unfitted.Error()
	case r.Answer.PassPerS == 0:
		t.Why = "no rate met every objective"
	case t.PerS > beyond*r.Answer.PassPerS:
		t.Why = ErrTooFar.Error()
	default:
		t.Most = int(math.Ceil(t.PerS / r.Answer.PassPerS))
		if fail := r.Answer.Fail().System(); fail > 0 {
			t.Least = int(math.Ceil(t.PerS / fail))
		}
	}
	return t
}
