package judge

import (
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// awayWithin is the largest distance, in ns, between weir's own fault and the last confirmation or
// delivery, if the fault is to explain the system's absence.
const awayWithin = int64(1e9)

// ByOwnFault says, as a clause, that a system that counts as gone has been away since weir's own fault, so
// it may not be gone for good. It is empty if no fault explains the absence.
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
		if f.Do == "restart" && f.UndoneNS != nil { // a server that shuts down in order still confirms
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
