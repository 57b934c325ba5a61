package judge

import (
	"slices"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// Disturbed returns the names of the checks that found the host, or the generator on it,
// in the figures of a run. Where there are any, an objective about times or rates may have
// failed for them and not for the system.
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

// Waive says which objectives failed while the host was disturbed; nothing without any. Those
// about counts are left out: no host loses a message.
func Waive(v *result.Verdict) finding.Finding {
	var failed []string
	for _, s := range v.SLO {
		if s.Outcome() == result.Fail && (s.Unit == "ns" || s.Unit == "per_s") {
			failed = append(failed, s.Expr)
		}
	}
	checks := Disturbed(v)
	for _, c := range v.Checks { // where figures are unusable for another reason, that is the reason
		if c.Status == result.Invalid && !slices.Contains(checks, c.Name) {
			return finding.Finding{}
		}
	}
	if len(failed) == 0 || len(checks) == 0 {
		return finding.Finding{}
	}
	return say("objective.disturbed", "failed", failed, "checks", checks)
}

// Others returns which part of the host's cores programs used that are neither weir nor the
// servers that it started, at least; 0 where that is not known, as with agents, and with
// servers that weir did not start.
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

// OthersMost is how much of the host's cores others may use before what a system missed
// says nothing of it: half of a core of two.
const OthersMost = 0.25
