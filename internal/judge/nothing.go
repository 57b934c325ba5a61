package judge

import (
	"fmt"
	"strings"
)

// nothingReceived says of a run that only receives, and did not, what was the case
// and what to do.
func nothingReceived(s *subject) (value, why string) {
	switch value = "nothing was received"; {
	case s.evidence.StillHeld != nil && *s.evidence.StillHeld == 0:
		return "there was nothing to receive", "The system says that it holds nothing more for this subscription. Its consumers are up to date, or it begins behind the last message. Send messages first, or begin at older ones (consume.from)."
	case s.evidence.StillHeld != nil:
		why = fmt.Sprintf("The system says that it holds %s messages for this subscription, and none of them came. Another consumer may have them unsettled, or the system waits for something.", count(*s.evidence.StillHeld))
	default:
		why = "No message came. Check that the destinations hold messages, and that this subscription begins before them (consume.from)."
	}
	if s.evidence.Errors != nil {
		why += " Look at the errors in events.jsonl."
	}
	return value, why
}

// nothingSent is for a run that sent nothing in its measured window. It says why and what
// to do, as the end of a sentence.
func nothingSent(s *subject) string {
	switch by := s.blockedBySystem(); {
	case by != "":
		return "it waited for room. " + strings.TrimSpace(by)
	case s.evidence.Errors != nil:
		return "look at the errors in events.jsonl."
	case s.fellBehind():
		return "the generator did not keep up, and had not reached the measured window when the run ended. Lower the rate, or give it more cores."
	case s.evidence.Filled != nil && s.evidence.Filled.Full:
		return fmt.Sprintf("the system was full, with %s messages, before the measured window began. It takes more only when a consumer receives. Send no more than it holds (messages, warmup), or let it hold more.", count(s.evidence.Filled.Held))
	case s.closed():
		return "messages from before the measured window took all places in flight (in_flight), and the system confirmed none in time. Check whether it stands still or is full."
	case s.Messages.Scheduled == 0:
		return "no message was due in the measured window. Measure for longer, or at a higher rate."
	case s.Messages.Dropped > 0:
		return "the system had no room for any message that was due, and when_full dropped them. Check whether it stands still or is full."
	}
	return "messages were due, and the system had no room for any until the drain ended. Check whether it stands still or is full."
}

// deliveredNothing reports whether consumers were owed the messages of the window and got
// none of them before the drain ended.
func (s *subject) deliveredNothing() bool {
	m := &s.Messages
	return s.evidence.Subscriptions > 0 && m.Confirmed > 0 && m.Delivered+m.Corrupted == 0
}

// nothingDelivered says what became of the messages of a run that delivered none in time,
// and what to do.
func nothingDelivered(s *subject) string {
	why := "No message of the measured window arrived before the drain ended, so the run has no end-to-end latency, only a lower bound."
	switch m := &s.Messages; {
	case m.Lost == m.Confirmed*uint64(s.evidence.Subscriptions):
		return why + " All of them are lost. Check what the system keeps for a consumer that is slow or not there."
	case m.Late > 0:
		return why + " Some came after it. Give the run a longer drain, or lower the rate."
	}
	return why + " Check whether the consumers receive at all. If they are only slow, give the run a longer drain, or lower the rate."
}
