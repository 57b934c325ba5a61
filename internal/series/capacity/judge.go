package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

// Judge decides what a run says about its rate, and why if it did not pass. broken reports lost messages,
// or outcomes that the driver rules out. A run that lost an agent says nothing about the system, since its
// death has consequences. Otherwise the system's own failure takes precedence. A run spoilt by the
// generator or its host says nothing about the system, whatever its objectives say, and neither does one
// that missed an objective while other programs used the host.
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
			by := judge.SpoiltBy(&r.Verdict, s.Expr)
			switch {
			case x.j == Failed && find(judge.CheckLateness).Status == result.Suspect && keptOnTime(r, s.Expr):
				return Limited, s.Expr + ": failed because the generator was late; without that it does not fail"
			case judge.Spoilt(s) && by == judge.CheckWire:
				return Undecided, s.Expr + ": undecided, since too many of the sampled messages are left out (" + by + ")"
			case judge.Spoilt(s):
				return Limited, s.Expr + ": undecided, since something other than the system moved the figure (" + by + ")"
			}
			if why = s.Expr + ": " + string(x.was); s.NeedsS > 0 {
				why += fmt.Sprintf(" (a window of %.0f s would probably decide it)", math.Ceil(s.NeedsS))
			}
			disturbed := judge.Disturbed(&r.Verdict)
			if by != "" && !slices.Contains(disturbed, by) {
				disturbed = append(disturbed, by)
			}
			if len(disturbed) > 0 {
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

// missed judges a run that missed an objective: it is inconclusive if other programs took cores from the
// system.
func missed(r *result.Result, why string) (Judgement, string) {
	if others := judge.Others(r); others > judge.OthersMost {
		return Limited, fmt.Sprintf("%s; other programs used %.0f %% of the host's cores", why, 100*others)
	}
	return Failed, why
}

// keptOnTime reports whether a failed objective would have been kept without the generator's lateness.
func keptOnTime(r *result.Result, expr string) bool {
	o, err := judge.ParseObjective(expr)
	if err != nil {
		return false
	}
	s, ok := o.JudgeOnTime(r)
	return ok && s.Outcome() != result.Fail
}
