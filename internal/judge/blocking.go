package judge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// mostReasons limits the reasons in a sentence.
const mostReasons = 3

// BlockedBySystem says, as a clause, for how long and why the system reported that it took no messages, in
// its own words; empty if it never did. Simultaneous blocking of several producers and agents counts once.
func BlockedBySystem(r *result.Result) finding.Finding {
	if r.Evidence == nil || len(r.Evidence.BySystem) == 0 {
		return finding.Finding{}
	}
	all := slices.Clone(r.Evidence.BySystem)
	slices.SortFunc(all, func(a, b result.Block) int { return cmp.Compare(a.FromNS, b.FromNS) })
	var ns, end int64
	var whys []string
	open := false
	for _, b := range all {
		ns += max(0, b.ToNS-max(b.FromNS, end))
		end = max(end, b.ToNS)
		if !slices.Contains(whys, b.Why) && len(whys) < mostReasons {
			whys = append(whys, b.Why)
		}
		open = open || b.Open
	}
	return say("system.blocks", "blocked", ns, "open", open, "whys", strings.TrimSuffix(strings.Join(whys, "; "), "."))
}
