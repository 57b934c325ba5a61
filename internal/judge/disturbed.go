package judge

import (
	"slices"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// Disturbed returns the names of the checks that found the host or the generator disturbing the figures. If
// there are any, an objective about times or rates may have failed because of them and not of the system.
func Disturbed(v *result.Verdict) (checks []string) {
	for _, c := range v.Checks {
		if rankOf(c.Status) > rankOf(result.Valid) && c.With == "" && slices.Contains([]string{
			CheckLateness, CheckRate, CheckHeadroom, CheckRecording, CheckCPU, CheckSteal, CheckThrottling, CheckSwap, CheckGC, CheckBlocked, CheckHiccups,
		}, c.Name) {
			checks = append(checks, c.Name)
		}
	}
	return checks
}

// Waive names the objectives that failed while the host was disturbed; empty if none. Objectives about
// counts are left out: no host loses messages. Those about latencies go by the verdict on their figure.
func Waive(v *result.Verdict) finding.Finding {
	var failed []string
	checks := Disturbed(v)
	for _, s := range v.SLO {
		if s.Outcome() != result.Fail || s.Unit != "ns" && s.Unit != "per_s" {
			continue
		}
		f := figureOf(v, s.Expr)
		switch {
		case f != nil && f.Quotable && s.Unit == "ns" && v.Status != result.Invalid:
			continue
		case f != nil && !f.Quotable && !slices.Contains(checks, f.By):
			checks = append(checks, f.By)
		}
		failed = append(failed, s.Expr)
	}
	for _, c := range v.Checks { // figures unusable for another reason keep that reason
		if c.Status == result.Invalid && !slices.Contains(checks, c.Name) {
			return finding.Finding{}
		}
	}
	if len(failed) == 0 || len(checks) == 0 {
		return finding.Finding{}
	}
	return say("objective.disturbed", "failed", failed, "checks", checks)
}

// figureOf returns the verdict on the figure of an objective; nil if there is none.
func figureOf(v *result.Verdict, expr string) *result.Figure {
	o, err := ParseObjective(expr)
	if err != nil {
		return nil
	}
	return v.Figure(o.Figure())
}

// Spoilt reports whether an objective is undecided because something other than the system may have made
// its figure miss the limit.
func Spoilt(s *result.SLO) bool { return slices.Contains(s.Codes, "objective.marked") }

// SpoiltBy names the check that found what moved an objective's figure; "" if it can be quoted.
func SpoiltBy(v *result.Verdict, expr string) string {
	if f := figureOf(v, expr); f != nil {
		return f.By
	}
	return ""
}

// Others returns the least fraction of the host's cores used by programs other than weir and the servers
// that it started; 0 if unknown, as with agents or servers that weir did not start.
func Others(r *result.Result) float64 {
	u := r.Host.Usage
	if r.Servers == nil || len(r.Agents) > 0 || u == nil || u.HostBusyShare == nil || u.CPUShare == nil || u.Cores <= 0 {
		return 0
	}
	servers := 0.0
	for _, p := range r.Servers.Processes {
		if p.Cores == nil {
			return 0
		}
		servers += *p.Cores
	}
	return max(0, *u.HostBusyShare-*u.CPUShare-servers/float64(u.Cores))
}

// OthersMost is the largest fraction of the host's cores that others may use before a shortfall says
// nothing about the system: half of one core of two.
const OthersMost = 0.25
