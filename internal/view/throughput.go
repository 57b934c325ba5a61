package view

import (
	"math"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// apart reports whether the windows of what is received and of what is sent differ in length by more than a
// thousandth.
func apart(p result.Throughput) bool {
	return p.SendS > 0 && p.ReceiveS > 0 && math.Abs(p.ReceiveS-p.SendS) > p.SendS/1000
}

func (t *single) throughput() {
	rates, bytes := t.flows()
	text := strings.Join(rates, ", ")
	if len(bytes) > 0 {
		text += "; " + strings.Join(bytes, ", ")
	}
	t.Labelled("throughput", plain(text))
	if p := t.r.Throughput; sent(t.r) && watched(t.r) && differs(t.r) {
		t.Labelled("", plain("throughput counts what was delivered in these "+quantity.Time(int64(p.ReceiveS*1e9))+", even if sent in the warm-up; messages counts what was sent in them, even if delivered later"))
	}
	t.shortDrain()
}

// shortDrain warns that a backlog drained too fast to quote its rate.
func (t *single) shortDrain() {
	if s := t.r.Throughput.ReceiveS; t.r.Run.Mode == result.ModeBacklog && s > 0 && s < shortDrainS {
		t.Labelled("", layout.Doubtful.Of("the drain took less than "+quantity.Span(shortDrainS*time.Second)+": a single stall changes its rate; fill with more messages (--measure, --rate) before you quote it"))
	}
}

// flows returns the rates of the directions in use, in messages and in bytes.
func (t *single) flows() (rates, bytes []string) {
	p := t.r.Throughput
	if sent(t.r) {
		if t.r.Run.Loop != result.LoopClosed {
			rates = append(rates, "offered "+quantity.Rate(p.OfferedPerS))
		}
		rates = append(rates, "sent "+quantity.Rate(p.SentPerS), "confirmed "+quantity.Rate(p.ConfirmedPerS))
		bytes = append(bytes, quantity.ByteRate(p.SentBytesPerS)+" out")
	}
	if watched(t.r) || !sent(t.r) {
		if len(rates) > 0 && apart(p) {
			rates[len(rates)-1] += " in " + quantity.Time(int64(p.SendS*1e9))
		}
		word := arrived(t.r) + " "
		if t.r.Run.Mode == result.ModeBacklog {
			word += drainedMessages(t.r) // while nothing else was happening
		}
		switch perS, known := p.Received(); {
		case known:
			word += quantity.Rate(perS)
			if apart(p) {
				word += " in " + quantity.Time(int64(p.ReceiveS*1e9))
			}
		case t.r.MessagesAll.Deliveries() == 0:
			word += "nothing"
		default:
			word += "not known (all came in one call)"
			if t.r.Evidence != nil && t.r.Consuming() && t.r.Evidence.Received == 0 {
				word = arrived(t.r) + " nothing"
			}
		}
		rates = append(rates, word)
		if p.ReceivedBytesPerS != nil {
			bytes = append(bytes, quantity.ByteRate(*p.ReceivedBytesPerS)+" in")
		}
	}
	return rates, bytes
}

// differs reports whether the messages delivered in the window differ by more than a hundredth from those
// due in it that arrived.
func differs(r *result.Result) bool {
	perS, known := r.Throughput.Received()
	if !known || r.Run.Mode == result.ModeBacklog || r.Throughput.ReceiveS <= 0 {
		return false
	}
	came, of := perS*r.Throughput.ReceiveS, float64(r.Messages.Delivered)
	return math.Abs(came-of) > max(came, of)/100
}

// Arrived names the rate at which messages reach consumers: delivered if the run sends, drained for a
// backlog, received if others sent.
func Arrived(sends, backlog bool) string {
	switch {
	case backlog:
		return "drained"
	case sends:
		return "delivered"
	}
	return "received"
}

// arrived is that word for a run, or for several runs with the same; otherwise one that is true of all.
func arrived(runs ...*result.Result) string {
	word := ""
	for _, r := range runs {
		own := Arrived(sent(r), r.Run.Mode == result.ModeBacklog)
		if word != "" && own != word {
			return "delivered"
		}
		word = own
	}
	return word
}

// shortDrainS is the shortest drain, in s, that gives a usable rate: in a shorter one, a stall of a tenth
// of a second is over a tenth of it.
const shortDrainS = 1

// drainedMessages is the number of messages behind a drain's rate; "" if not stored.
func drainedMessages(r *result.Result) string {
	if r.Evidence == nil || r.Evidence.Filled == nil || r.Evidence.Filled.Messages == 0 {
		return ""
	}
	return quantity.Count(r.Evidence.Filled.Messages) + " messages" + warmed(r) + " at "
}
