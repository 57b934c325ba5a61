package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

// Judge says what a run at a rate says of that rate, and why where it did not pass. broken
// says that messages were lost, or worse than the driver declares became of them. A run that
// lost an agent says nothing about the system, since its death has consequences too. Else the
// system's own failure counts first. A run that the generator or its host spoilt says
// nothing about the system, whatever its objectives say, and so does one that missed
// something while other programs used the host.
func Judge(r *result.Result, broken bool) (j Judgement, why string) {
	find := func(name string) *result.Check {
		i := slices.IndexFunc(r.Verdict.Checks, func(c result.Check) bool { return c.Name == name })
		if i < 0 {
			return &result.Check{}
		}
		return &r.Verdict.Checks[i]
	}
	switch rate := find(judge.CheckRate); {
	case r.Lost().Any():
		return Limited, "INVALID for " + judge.CheckAgents + ": " + find(judge.CheckAgents).Value
	case broken:
		m := r.MessagesAll
		return Failed, fmt.Sprintf("lost %d, corrupted %d, duplicated %d, reordered %d", m.Lost, m.Corrupted, m.Duplicated, m.Reordered)
	case find(judge.CheckFailed).Status != result.Valid && find(judge.CheckFailed).Status != "":
		return Failed, "failed messages: " + find(judge.CheckFailed).Value
	case judge.Full(*rate):
		return missed(r, rate.Value)
	case r.Verdict.Status == result.Invalid:
		return Limited, "INVALID for " + judge.Reasons(&r.Verdict)
	}
	if steady := find(judge.CheckSteady); steady.Status == result.Suspect {
		if grows, _ := judge.Growing(*steady); grows {
			return missed(r, steady.Value)
		}
	}
	for _, x := range []struct {
		was result.Outcome
		j   Judgement
	}{{result.Fail, Failed}, {result.Undecided, Undecided}} {
		for i := range r.Verdict.SLO {
			s := &r.Verdict.SLO[i]
			if s.Outcome() != x.was {
				continue
			}
			if x.j == Failed && find(judge.CheckLateness).Status == result.Suspect && keptOnTime(r, s.Expr) {
				return Limited, s.Expr + ": failed because the generator was late; without that it does not fail"
			}
			if why = s.Expr + ": " + string(x.was); s.NeedsS > 0 {
				why += fmt.Sprintf(" (a window of %.0f s would probably decide it)", math.Ceil(s.NeedsS))
			}
			if disturbed := judge.Disturbed(&r.Verdict); len(disturbed) > 0 {
				why += "; the host was disturbed: " + strings.Join(disturbed, ", ")
			}
			if x.j == Failed {
				return missed(r, why)
			}
			return x.j, why
		}
	}
	return Passed, ""
}

// missed says what a run says of its rate that missed something: nothing where other
// programs took the host's cores from the system.
func missed(r *result.Result, why string) (Judgement, string) {
	if others := judge.Others(r); others > judge.OthersMost {
		return Limited, fmt.Sprintf("%s; other programs used %.0f %% of the host's cores", why, 100*others)
	}
	return Failed, why
}

// keptOnTime reports whether an objective that failed would not have failed without the
// generator's lateness.
func keptOnTime(r *result.Result, expr string) bool {
	o, err := judge.ParseObjective(expr)
	if err != nil {
		return false
	}
	s, ok := o.JudgeOnTime(r)
	return ok && s.Outcome() != result.Fail
}
