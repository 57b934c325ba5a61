package judge

import (
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// CheckFailed is the name of the check of messages that the system nacked, failed or never confirmed. A run
// that fails it has an exit code of its own.
const CheckFailed = "failed messages"

// classOverloaded begins the errors of a system that is out of room.
const classOverloaded = "overloaded: "

// failures are the counts of the check.
var failures = [...]string{"failed", "unconfirmed"}

// Tolerates returns the fraction of sent messages that the objective allows to fail or stay unconfirmed,
// given the outcomes of the measured window; 0 if it is about something else.
func (o Objective) Tolerates(m *result.Messages) float64 {
	f := o.figure
	if !slices.Contains(failures[:], f.of) || o.op != "<=" && o.op != "<" || m.Sent == 0 {
		return 0
	}
	switch f.kind {
	case countFigure:
		return min(1, o.limit/float64(m.Sent))
	case ratioFigure:
		return min(1, o.limit*float64(countOf(m, f.over))/float64(m.Sent))
	}
	return 0
}

// mayFail is the fraction of sent messages that may fail or stay unconfirmed: the scenario's limit, or its
// objectives'.
func (s *subject) mayFail() float64 {
	most := s.evidence.MayFail
	for _, o := range s.objectives {
		most = max(most, o.Tolerates(&s.MessagesAll))
	}
	return min(1, most)
}

// beyond returns how many messages failed or were never confirmed, and whether that exceeds the limit.
// Messages open when weir ended the run or an agent vanished do not count as failures.
func (s *subject) beyond() (n uint64, beyond bool) {
	m := &s.MessagesAll
	n = m.Failed
	if !s.Run.Interrupted && s.evidence.EndedFor == "" && len(s.vanished()) == 0 {
		n += m.Unconfirmed
	}
	return n, float64(n) > s.mayFail()*float64(m.Sent)
}

// failed checks that the system accepted the offered load. Otherwise the figures are right, but for a load
// that was not done.
func failed(s *subject) check {
	m := &s.MessagesAll
	limit := say("failed.limit", "limit", s.mayFail())
	switch {
	case s.Consuming():
		return inapplicable(CheckFailed, limit, say("no.sending"))
	case m.Sent == 0:
		return notRun(CheckFailed, limit, say("failed.unsent"))
	}
	n, beyond := s.beyond()
	code := "failed.both"
	switch {
	case n == 0:
		code = "failed.none"
	case n == m.Failed:
		code = "failed.failed"
	case m.Failed == 0:
		code = "failed.open"
	}
	c := valid(CheckFailed, limit, say(code, "n", n, "sent", m.Sent, "failed", m.Failed, "open", n-min(n, m.Failed), "share", float64(n)/float64(m.Sent)))
	if !beyond {
		return c
	}
	if lost := s.Lost(); lost.Any() {
		return notRun(CheckFailed, limit, say("failed.agent_lost", "found", c.value, "agents", lost.Agents()))
	}
	var refused finding.Finding
	var frequent []finding.Finding
	advice := "failed.look"
	if e := s.evidence.Errors; e != nil {
		if e.Blocked > 0 {
			refused = say("failed.blocks", "blocked", e.Blocked)
		}
		if e.Worst != "" {
			frequent = []finding.Finding{say("failed.frequent", "failures", e.Failed, "error", e.Worst)}
		}
		if strings.HasPrefix(e.Worst, classOverloaded) {
			advice = "failed.fewer_in_flight"
		}
	}
	if by := BlockedBySystem(s.Result); by.Code != "" {
		refused = say("system.blocks_sentence", "by", by)
	}
	if refused.Code != "" {
		advice = "failed.lacks"
	}
	cause := []finding.Finding{say("failed.load")}
	switch after, fault := s.afterFaults(); {
	case after >= n:
		cause = []finding.Finding{say("failed.after_fault", "fault", fault)}
	case after > 0 && after >= m.Failed: // the others' failures have no times
		cause = []finding.Finding{say("failed.failed_after_fault", "fault", fault)}
	case after > 0:
		cause = []finding.Finding{say("failed.partly_after_fault", "after", after, "fault", fault, "others", n-after)}
	case refused.Code != "":
		cause = []finding.Finding{refused}
	case s.slowStart() > 0:
		slow := s.slowStart()
		says := []finding.Finding{say("failed.bounds"), warmUpFor(slow), say("failed.warm_up")}
		if s.Messages.Failed == 0 {
			says = []finding.Finding{say("failed.stands")}
		}
		c.find(result.Suspect, slices.Concat([]finding.Finding{say("failed.slow_start", "slow", math.Round(slow))}, frequent, says)...)
		return c
	default:
		if slow := s.mostlySlowStart().findings(); slow != nil {
			cause = append(slow, say("failed.warm_up"))
		}
	}
	c.find(result.Suspect, slices.Concat(cause, frequent, []finding.Finding{say("failed.accepted"), say(advice)})...)
	return c
}

// afterFaults returns how many messages failed between one of weir's faults and the next or the end of the
// window, and the first such fault.
func (s *subject) afterFaults() (n uint64, what finding.Finding) {
	faults := 0
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Effect == nil || f.Effect.Failed == 0 || len(f.Processes) == 0 {
			continue
		}
		n += f.Effect.Failed
		if faults++; faults == 1 {
			what = say("fault.own", "do", f.Do, "to", f.To, "at", f.BeganNS-s.WindowFrom(), "faults", 1)
		}
		what.Values["faults"] = faults
	}
	return n, what
}
