package judge

import (
	"slices"

	"github.com/weirmq/weir/result"
)

// A Review is the verdict of a stored result, reached again from what is stored.
type Review struct {
	// Verdict is what this version says. Where a check or an objective could not be
	// repeated, the stored finding stands in it; where none is stored, it has not run.
	Verdict result.Verdict
	Stored  result.Status // of the stored verdict
	Kept    []string      // names of the checks and objectives that keep their stored finding
	Lacking []string      // names of the checks that could not be repeated and have no stored finding
	Changes []Change      // where the verdict differs from the stored one
}

// A Change is a check or an objective about which the two verdicts differ.
type Change struct {
	Name        string // of the check, or the objective's expression
	Stored, Now string // a status or an outcome; "" where there is no such check
}

// Again reaches the verdict of a stored result again, by the rules of this version.
// It needs nothing but r, and leaves it as it is. A result that an older version
// wrote may lack what a check needs: then the stored finding stands, so that no
// check passes for want of evidence.
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

// checks puts the stored finding of each check that could not be repeated in its
// place, and notes what changed.
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
		case s.lacks(c.Name) && (c.Name == CheckDrain || c.Name == CheckReceived): // whether there is anything to judge is not stored either
			v.Verdict.Checks = append(v.Verdict.Checks, c)
			v.Kept = append(v.Kept, c.Name)
		case rankOf(c.Status) > 0:
			v.Changes = append(v.Changes, Change{c.Name, string(c.Status), ""})
		}
	}
	for i := range v.Verdict.Checks {
		c := &v.Verdict.Checks[i]
		if told := find(v.Verdict.Checks, c.With); told == nil || rankOf(told.Status) <= 0 {
			c.With = "" // what told it does so no more
		}
	}
}

func (v *Review) objectives(r *result.Result) {
	v.Verdict.SLO = nil
	for _, stored := range r.Verdict.SLO {
		now := stored
		if o, err := ParseObjective(stored.Expr); err != nil || o.figure.lacks(r) {
			v.Kept = append(v.Kept, stored.Expr)
		} else if now = o.Judge(r); now.Outcome() != stored.Outcome() {
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

// lacks reports whether the result does not hold what a check needs, because an
// older version wrote it.
func (s *subject) lacks(check string) bool {
	switch check {
	case CheckOverflow, CheckStart, CheckClock, CheckNetwork: // of distributions, agents, clocks and the network alone
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

// everyHost reports whether it is so on every host that gave figures.
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

// lacks reports whether it is not stored how much the samples of the figure depend on
// one another, because an older version wrote the result: its interval is too narrow
// then, and decides what it must not.
func (f figure) lacks(r *result.Result) bool {
	if f.kind != latencyFigure || f.stat != "p" && f.stat != "mean" {
		return false
	}
	d := f.distribution(&r.Latency)
	return d != nil && d.MeanDeff == 0 && !slices.ContainsFunc(d.Percentiles, func(p result.Percentile) bool {
		return p.Deff > 0 || p.Blocks > 0 || p.UnboundedBy != ""
	})
}
