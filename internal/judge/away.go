package judge

import (
	"fmt"

	"github.com/weirmq/weir/result"
)

// awayWithin is how far from weir's own fault the latest confirmation or delivery may be
// where the fault is what keeps the system away.
const awayWithin = int64(1e9)

// ByOwnFault says, as a clause, that a system that counts as gone was away from weir's own
// fault on, which is not known to be for good; "" where no fault explains it.
func ByOwnFault(r *result.Result) string {
	g := r.Run.Gone
	if g == nil {
		return ""
	}
	for i := range r.Faults {
		f := &r.Faults[i]
		if len(f.Processes) == 0 || f.Error != "" {
			continue
		}
		over := f.BeganNS
		if f.Do == "restart" && f.UndoneNS != nil { // a server that ends in order confirms meanwhile
			over = *f.UndoneNS
		}
		if g.FromNS < f.BeganNS-awayWithin || g.FromNS > over+awayWithin {
			continue
		}
		what := fmt.Sprintf("weir's own %s %s at %.1f s", f.Do, f.To, float64(f.BeganNS-r.WindowFrom())/1e9)
		if f.UndoneNS == nil {
			return what + " was never undone, and lasted until the end of the drain"
		}
		return "the system had not come back from " + what + " when the drain ended; a longer drain (--drain) shows whether it does"
	}
	return ""
}
