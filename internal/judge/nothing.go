package judge

import (
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

func (c *check) nothingReceived(s *subject) {
	held := s.evidence.StillHeld
	switch {
	case held != nil && *held == 0:
		c.finds(result.Invalid, say("run.nothing_to_receive"), say("run.up_to_date"))
		return
	case held != nil:
		c.finds(result.Invalid, say("run.unreceived"), say("run.held_back", "held", *held))
	default:
		c.finds(result.Invalid, say("run.unreceived"), say("run.nothing_came"))
	}
	if s.evidence.Errors != nil {
		c.why = append(c.why, say("advice.events"))
	}
}

// nothingSent says why a run sent nothing in its measured window, and what to do, as the end of a sentence.
func nothingSent(s *subject) finding.Finding {
	switch by := BlockedBySystem(s.Result); {
	case by.Code != "":
		return say("unsent.waited", "by", by)
	case s.evidence.Errors != nil:
		return say("unsent.events")
	case s.fellBehind():
		return say("unsent.behind")
	case s.evidence.Filled != nil && s.evidence.Filled.Full:
		return say("unsent.full", "held", s.evidence.Filled.Held)
	case s.closed():
		return say("unsent.closed")
	case s.Messages.Scheduled == 0:
		return say("unsent.nothing_due")
	case s.Messages.Dropped > 0:
		return say("unsent.dropped")
	}
	return say("unsent.no_room")
}

// deliveredNothing reports whether consumers were owed messages of the window and got none before the drain
// ended.
func (s *subject) deliveredNothing() bool {
	m := &s.Messages
	return s.evidence.Subscriptions > 0 && m.Confirmed > 0 && m.Delivered+m.Corrupted == 0
}

// nothingDelivered says what happened to the messages of a run that delivered none in time, and what to do.
func nothingDelivered(s *subject) finding.Finding {
	switch m := &s.Messages; {
	case m.Lost == m.Confirmed*uint64(s.evidence.Subscriptions):
		return say("run.all_lost")
	case m.Late > 0:
		return say("run.some_late")
	}
	return say("run.receives")
}
