package judge

import "fmt"

// nothingReceived says of a run that only receives, and did not, what was the case
// and what to do.
func nothingReceived(in *Inputs) (value, why string) {
	switch value = "nothing was received"; {
	case in.Left != nil && *in.Left == 0:
		return "there was nothing to receive", "The system says that it holds nothing more for this subscription, so there is nothing to judge: its consumers are up to date, or it begins behind the last message. Send something first, or begin where it lies (consume.from)."
	case in.Left != nil:
		why = fmt.Sprintf("The system says that it holds %s messages for this subscription, and none of them came: another consumer may have them unsettled, or it waits for something.", count(*in.Left))
	default:
		why = "There is nothing to judge: is anything in the destinations, and does this subscription begin where it lies?"
	}
	if in.Errors > 0 {
		why += " Look at the errors in events.jsonl."
	}
	return value, why
}

// nothingSent says of a run in whose measured window nothing was sent what was the
// case and what to do, as the end of a sentence.
func nothingSent(in *Inputs) string {
	switch {
	case in.Errors > 0:
		return "look at the errors in events.jsonl."
	case in.fellBehind():
		return "the generator did not keep up: at the end it was still at messages of before the measured window. Lower the rate, or give it more cores."
	case in.Full:
		return fmt.Sprintf("before the measured window the system was full, with %s messages, and it takes no more before somebody receives. Send no more than it holds (messages, warmup), or have it hold more.", count(in.Lay))
	case in.Closed:
		return "what was sent before the measured window took all that producers may have under way (in_flight), and none of it was confirmed in time. Look whether the system stands still or is full."
	case in.Scheduled == 0:
		return "no message was due in the measured window. Measure for longer, or at a higher rate."
	case in.Dropped > 0:
		return "the system had no room for any message that was due, and when_full dropped them. Look whether it stands still or is full."
	}
	return "messages were due, and until the drain ended the system had no room for any. Look whether it stands still or is full."
}
