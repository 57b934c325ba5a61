package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/result"
)

// mostReasons bounds the reasons that a sentence names.
const mostReasons = 3

// blockedBySystem is BlockedBySystem as a sentence with a space behind it.
func (s *subject) blockedBySystem() string {
	by := BlockedBySystem(s.Result)
	if by == "" {
		return ""
	}
	return strings.ToUpper(by[:1]) + by[1:] + ". "
}

// BlockedBySystem says, as a clause, for how long and why the system took no messages,
// in its own words; "" where it never said so. The times of several producers and agents
// count once.
func BlockedBySystem(r *result.Result) string {
	if r.Evidence == nil || len(r.Evidence.BySystem) == 0 {
		return ""
	}
	all := slices.Clone(r.Evidence.BySystem)
	slices.SortFunc(all, func(a, b result.Block) int { return cmp.Compare(a.FromNS, b.FromNS) })
	var ns, end int64
	var whys []string
	open := ""
	for _, b := range all {
		ns += max(0, b.ToNS-max(b.FromNS, end))
		end = max(end, b.ToNS)
		if !slices.Contains(whys, b.Why) && len(whys) < mostReasons {
			whys = append(whys, b.Why)
		}
		if b.Open {
			open = ", until the end of the drain"
		}
	}
	return fmt.Sprintf("the system answered, and took no messages for %.1f s%s: %s", float64(ns)/1e9, open, strings.TrimSuffix(strings.Join(whys, "; "), "."))
}
