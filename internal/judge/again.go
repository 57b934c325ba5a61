package judge

import (
	"slices"

	"github.com/weirmq/weir/result"
)

// A Review is the verdict of a stored result, judged again from what is stored.
type Review struct {
	// Verdict is this version's verdict. If a check or an objective could not be repeated, it has the
	// stored finding; without one, the check has not run.
	Verdict result.Verdict
	Stored  result.Status // of the stored verdict
	Kept    []string      // checks and objectives that keep their stored finding
	Lacking []string      // checks that could not be repeated and have no stored finding
	Changes []Change      // differences from the stored verdict
}

// A Change is a check or an objective on which the two verdicts differ.
type Change struct {
	Name        string // of the check, or the objective's expression
	Stored, Now string // a status or an outcome; "" if absent
}

// Again judges a stored result by the rules of this version. It needs nothing but r, and does not change
// it. A result of an older version may lack what a check needs: the stored finding then stands, so that no
// check passes for lack of evidence.
func Again(r *result.Result) Review {
	var objectives []Objective
	for i := range r.Verdict.SLO {
		if o, err := ParseObjective(r.Verdict.SLO[i].Expr); err == nil {
			objectives = append(objectives, o)
		}
	}
	v := Review{Verdict: Verdict(r, objectives), Stored: r.Verdict.Status}
	v.checks(r)
	v.objectives(r)
	v.Verdict.Status = Worst(v.Verdict.Checks)
	return v
}

// Whole reports whether every check and objective was judged again.
func (v *Review) Whole() bool { return len(v.Kept) == 0 && len(v.Lacking) == 0 }

// checks restores the stored finding of each check that could not be repeated, and notes the changes.
func (v *Review) checks(r *result.Result) {
	s := subjectOf(r, nil)
	checks := v.Verdict.Checks
	for i := range checks {
		c, stored := &checks[i], find(r.Verdict.Checks, checks[i].Name)
		switch {
		case s.lacks(c.Name) && stored == nil:
			v.Lacking = append(v.Lacking, c.Name)
		case s.lacks(c.Name):
			*c = *stored
			v.Kept = append(v.Kept, c.Name)
		case stored == nil && rankOf(c.Status) > 0:
			v.Changes = append(v.Changes, Change{c.Name, "", string(c.Status)})
		case stored != nil && stored.Status != c.Status:
			v.Changes = append(v.Changes, Change{c.Name, string(stored.Status), string(c.Status)})
		}
	}
	for _, c := range r.Verdict.Checks {
		switch {
		case find(checks, c.Name) != nil:
		case s.lacks(c.Name) && (c.Name == CheckDrain || c.Name == CheckReceived): // not even stored whether they apply
			v.Verdict.Checks = append(v.Verdict.Checks, c)
			v.Kept = append(v.Kept, c.Name)
		case rankOf(c.Status) > 0:
			v.Changes = append(v.Changes, Change{c.Name, string(c.Status), ""})
		}
	}
	for i := range v.Verdict.Checks {
		c := &v.Verdict.Checks[i]
		if other := find(v.Verdict.Checks, c.With); other == nil || rankOf(other.Status) <= 0 {
			c.With = "" // the other check no longer reports it
		}
	}
}

func (v *Review) objectives(r *result.Result) {
	v.Verdict.SLO = nil
	for _, stored := range r.Verdict.SLO {
		now := stored
		if o, err := ParseObjective(stored.Expr); err != nil || o.figure.lacks(r) {
			v.Kept = append(v.Kept, stored.Expr)
		} else if now = o.judged(r, &v.Verdict); now.Outcome() != stored.Outcome() {
			v.Changes = append(v.Changes, Change{stored.Expr, string(stored.Outcome()), string(now.Outcome())})
		}
		v.Verdict.SLO = append(v.Verdict.SLO, now)
	}
}

func find(checks []result.Check, name string) *result.Check {
	i := slices.IndexFunc(checks, func(c result.Check) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &checks[i]
}

// lacks reports whether the result, from an older version, lacks what a check needs.
func (s *subject) lacks(check string) bool {
	switch check {
	case CheckOverflow, CheckStart, CheckClock, CheckNetwork: // these depend on distributions, agents, clocks and the network only
		return false
	case CheckLateness:
		return slices.ContainsFunc(Responses(&s.Latency), func(r Response) bool { return r.OnTime == nil })
	case CheckCPU, CheckHiccups:
		older := func(h *result.Host) bool { return h.Hiccups != nil && h.Hiccups.HeldNS == nil }
		if s.closed() && !s.everyHost(func(h *result.Host) bool { return !older(h) }) {
			return true
		}
	}
	if s.Evidence != nil {
		return false
	}
	switch check {
	case CheckSamples:
		return s.response() == nil && s.e2e() == nil
	case CheckCPU, CheckSteal, CheckThrottling, CheckSwap:
		return !s.everyHost(func(h *result.Host) bool { return h.Usage != nil })
	case CheckHiccups:
		return !s.everyHost(func(h *result.Host) bool { return h.Hiccups != nil && h.Calibration != nil })
	}
	return true
}

// everyHost reports whether so holds on every host with figures.
func (s *subject) everyHost(so func(*result.Host) bool) bool {
	if len(s.Agents) == 0 {
		return so(&s.Host)
	}
	for i := range s.Agents {
		if a := &s.Agents[i]; !a.Missing && !so(s.on(a).host) {
			return false
		}
	}
	return true
}

// lacks reports whether the result, from an older version, does not record how strongly the figure's
// samples depend on one another: its interval is then too narrow to decide anything.
func (f figure) lacks(r *result.Result) bool {
	if f.kind != latencyFigure || f.stat != "p" && f.stat != "mean" {
		return false
	}
	d := r.Dist(f.distribution())
	return d != nil && d.MeanDeff == 0 && !slices.ContainsFunc(d.Percentiles, func(p result.Percentile) bool {
		return p.Deff > 0 || p.Blocks > 0 || p.UnboundedBy != ""
	})
}
