package judge

import (
	"slices"

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
