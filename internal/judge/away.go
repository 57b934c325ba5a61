package judge

import (
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// awayWithin is how far from weir's own fault the latest confirmation or delivery may be
// where the fault is what keeps the system away.
const awayWithin = int64(1e9)

// ByOwnFault says, as a clause, that a system that counts as gone was away from weir's own
// fault on, which is not known to be for good. It says nothing where no fault explains it.
func ByOwnFault(r *result.Result) finding.Finding {
	g := r.Run.Gone
	if g == nil {
		return finding.Finding{}
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
		code := "away.not_back"
		switch {
		case g.Answers:
			code = "away.empty"
		case f.UndoneNS == nil:
			code = "away.never_undone"
		}
		return say(code, "do", f.Do, "to", f.To, "at", f.BeganNS-r.WindowFrom())
	}
	return finding.Finding{}
}
