package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/result"
)

// CheckFailed is the name of the check of messages that the system refused, failed
// or never confirmed. Where it is not valid the run has an exit code of its own.
const CheckFailed = "failed messages"

// classOverloaded begins the text of an error that is a refusal for want of room.
const classOverloaded = "overloaded: "

// failures are the counts that the check is about.
var failures = [...]string{"failed", "unconfirmed"}

// Tolerates returns which share of what was sent the objective lets fail or stay
// unconfirmed, given the outcomes of the measured window; 0 where it is about
// something else.
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

// mayFail is the share of the sent messages that may fail or stay unconfirmed: as the
// scenario's limit has it, or its objectives.
func (s *subject) mayFail() float64 {
	most := s.evidence.MayFail
	for _, o := range s.objectives {
		most = max(most, o.Tolerates(&s.MessagesAll))
	}
	return min(1, most)
}

// beyond returns how many messages failed or were never confirmed, and whether
// that is more than may. What was open when weir itself ended the run, or when an
// agent vanished, is not the system's failure.
func (s *subject) beyond() (n uint64, beyond bool) {
	m := &s.MessagesAll
	n = m.Failed
	if !s.Run.Interrupted && s.evidence.EndedFor == "" && len(s.vanished()) == 0 {
		n += m.Unconfirmed
	}
	return n, float64(n) > s.mayFail()*float64(m.Sent)
}

// failed checks that the system took what it was offered. The figures of a run in
// which it did not are right, and are those of a load that was not done.
func failed(s *subject) result.Check {
	m := &s.MessagesAll
	c := result.Check{Name: CheckFailed, Status: result.Valid, Limit: shareText(s.mayFail()) + " of what was sent (limits.failed)"}
	switch {
	case s.Consuming():
		return inapplicable(c.Name, c.Limit, "This run sends no messages.")
	case m.Sent == 0:
		c.Status, c.Why = result.NotRun, "Nothing was sent."
		return c
	}
	n, beyond := s.beyond()
	c.Value = fmt.Sprintf("%s of %s failed or were never confirmed", count(n), count(m.Sent))
	if n > 0 {
		share := shareText(float64(n) / float64(m.Sent))
		switch sent, open := count(m.Sent), n-m.Failed; {
		case open == 0:
			c.Value = fmt.Sprintf("%s of %s messages failed (%s)", count(n), sent, share)
		case m.Failed == 0:
			c.Value = fmt.Sprintf("%s of %s messages were never confirmed (%s)", count(n), sent, share)
		default:
			c.Value = fmt.Sprintf("%s of %s messages failed, and %s were never confirmed (%s)", count(m.Failed), sent, count(open), share)
		}
	}
	if !beyond {
		return c
	}
	if lost := s.Lost(); lost.Any() {
		return notRun(c.Name, c.Limit, fmt.Sprintf("%s. That may be because %s was lost.", c.Value, agentsNamed(lost.Agents())))
	}
	c.Status = result.Suspect
	slow, refused := s.slowStart(), s.blockedBySystem()
	if e := s.evidence.Errors; e != nil && e.Blocked > 0 && refused == "" {
		refused = fmt.Sprintf("The system answered, and failed %s of them because it takes no messages for now. ", count(e.Blocked))
	}
	frequent := ""
	if e := s.evidence.Errors; e != nil && e.Worst != "" {
		frequent = fmt.Sprintf("The most frequent error, %s times: %s. ", count(e.Failed), e.Worst)
	}
	if after, what := s.afterFaults(); after >= n {
		c.Why = fmt.Sprintf("All of it came after weir's own %s. ", what)
	} else if after > 0 && after >= m.Failed { // when the others would have failed is not known
		c.Why = fmt.Sprintf("All that failed came after weir's own %s. ", what)
	} else if after > 0 {
		c.Why = fmt.Sprintf("%s of it came after weir's own %s, and %s without a fault: the system did not carry the load. ", count(after), what, count(n-after))
	} else if refused != "" {
		c.Why = refused
	} else if slow > 0 {
		c.Why = fmt.Sprintf("All of it failed %s: the system was slow at first, and carried the load from then on. ", atFirst(slow)) + frequent
		if s.Messages.Failed == 0 {
			c.Why += "No message of the measured window failed, so its figures stand. State the share that may fail (limits.failed)."
		} else {
			c.Why += "The latencies count what failed as lower bounds. " + warmUpFor(slow) + " Failures in a warm-up count here too, unless a share may fail (limits.failed)."
		}
		return c
	} else {
		c.Why = "The system did not carry the load. "
	}
	c.Why += frequent + "The rates describe what the system accepted. The latencies count what failed as lower bounds. "
	if e := s.evidence.Errors; e != nil && strings.HasPrefix(e.Worst, classOverloaded) && refused == "" {
		c.Why += "Allow fewer messages in flight (--in-flight), or lower the rate."
	} else if refused != "" {
		c.Why += "Give the system what it lacks, and repeat the run."
	} else {
		c.Why += "Look at the errors in events.jsonl, or state the share that may fail (limits.failed)."
	}
	return c
}

// afterFaults returns how many messages failed between a fault that weir did and the next
// one or the end of the window, and what the first such fault was, with its time in the
// window.
func (s *subject) afterFaults() (n uint64, what string) {
	faults, from := 0, s.WindowFrom()
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Effect == nil || f.Effect.Failed == 0 || len(f.Processes) == 0 {
			continue
		}
		n += f.Effect.Failed
		if faults++; faults == 1 {
			what = fmt.Sprintf("fault %s %s at %.1f s", f.Do, f.To, float64(f.BeganNS-from)/1e9)
		}
	}
	if faults > 1 {
		what = fmt.Sprintf("%d faults, the first %s", faults, strings.TrimPrefix(what, "fault "))
	}
	return n, what
}

// shareText writes a part of 1 in percent, to three digits, and never as 0 or 100
// where it is not.
func shareText(part float64) string {
	percent := part * 100
	switch {
	case percent <= 0:
		return "0 %"
	case percent < 0.01:
		return "below 0.01 %"
	case percent < 100 && percent >= 99.95:
		return "over 99.9 %"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(percent))))
	scale := math.Pow10(digits)
	return fmt.Sprintf("%v %%", math.Round(percent*scale)/scale)
}
