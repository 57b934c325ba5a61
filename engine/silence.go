package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
)

// goneLimit is for how long, until the end of the drain, a system neither confirms
// nor delivers anything of what it is offered when it counts as gone for good.
// Shorter silences leave unconfirmed messages, which the run tells by themselves.
const goneLimit = 5 * time.Second

// goneLeast is how many messages it leaves without an answer at the least: one lost
// confirmation is not silence.
const goneLeast = 5

// A Silence is how long the system took nothing any more of what a part handed
// over, until the end of the drain, and then answered no question.
type Silence struct {
	From   int64  // ns since the epoch: the latest confirmation or delivery; the first hand-over where nothing was confirmed at all
	Handed uint64 // messages handed over since; none was confirmed
	Silent bool   // long enough, and enough of them, for the system to be gone for good; it does not say itself that it takes none
}

// A stallDetector detects when confirmations stop. The goroutine of Execute uses
// it, but for the counts of failures, which whoever completes a message adds to.
type stallDetector struct {
	failures   atomic.Uint64 // messages
	unanswered atomic.Uint64 // of them, those that the system did not answer with a reason of its own

	confirmed uint64 // as of the last look
	at        int64  // when that last grew
	asked     int64  // the first hand-over since; 0: none
	handed    uint64 // messages handed over by at
	before    uint64 // of the unanswered, those by at
}

// fail counts a message that failed. What is unanswered comes first: a look between
// the two must not take it for a later one.
func (h *stallDetector) fail(err error) {
	if !refusal(err) {
		h.unanswered.Add(1)
	}
	h.failures.Add(1)
}

// refusal reports whether a failure is an answer of the system, which is there and
// says what it does not want, or of the other side in mode Request.
func refusal(err error) bool {
	return driver.IsAnswer(err) || errors.Is(err, errCorruptedReply) || errors.Is(err, errForeignReply)
}

// look takes how many messages are confirmed, and how many are handed over and not
// completed, at the instant now.
func (h *stallDetector) look(now int64, confirmed, open uint64) {
	handed := confirmed + h.failures.Load() + open
	switch {
	case confirmed > h.confirmed:
		h.confirmed, h.at, h.asked = confirmed, now, 0
		h.handed, h.before = handed, h.unanswered.Load()
	case h.asked == 0 && handed > h.handed:
		h.asked = now
	}
}

// away reports whether messages failed without an answer since the latest confirmation.
func (h *stallDetector) away() bool { return h.unanswered.Load() > h.before }

// silence judges what was found at the end of the drain. heard is the latest
// delivery, open what is not completed, and full says that a producer had no slot
// left, so that more was offered than could be handed over.
func (h *stallDetector) silence(ended, heard int64, open uint64, full bool) Silence {
	s := Silence{From: max(h.at, heard)}
	handed := h.confirmed + h.failures.Load() + open
	if h.asked == 0 || handed <= h.handed {
		return s
	}
	if s.From == 0 {
		s.From = h.asked
	}
	s.Handed = handed - h.handed
	// Whoever refuses every message for a reason is there.
	unanswered := open + h.unanswered.Load() - h.before
	s.Silent = ended-max(s.From, h.asked) >= int64(goneLimit) && unanswered > 0 && (s.Handed >= goneLeast || full)
	return s
}

// inFlight is how many messages are handed over and not completed, and whether a
// producer has no slot left. A batch that is being gathered counts as handed over.
func (r *run) inFlight() (n uint64, full bool) {
	for _, s := range r.senders {
		free := s.free.len()
		if s.finished.Load() {
			free += len(s.taken) // for a batch that never came
		}
		n += uint64(len(s.slots) - free)
		full = full || free == 0
	}
	return n, full
}

// silence tells how the system answered until the end of the drain.
func (r *run) silence() Silence {
	var s Status
	r.status(&s, true)
	open, full := r.inFlight()
	silence := r.stall.silence(s.At, s.Last, open, full)
	silence.Silent = silence.Silent && !r.blocks.open()
	return silence
}

// awaitAnswer asks until the system answers; false: ctx ended before.
func (r *run) awaitAnswer(ctx context.Context) bool {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, probeLimit)
		_, err := bounded(limited, r.conn.Facts, nil)
		back := answered(err) && r.answers(limited)
		cancel()
		if back {
			return true
		}
		select {
		case <-time.After(askLimit):
		case <-ctx.Done():
		}
	}
	return false
}

// gone makes the reason for which the system counts as gone, where no part that
// sends had an answer.
func (j *assembly) gone() error {
	from, handed, senders := int64(0), uint64(0), 0
	for _, p := range j.parts {
		if p.Missing {
			continue
		}
		from = max(from, p.Silence.From)
		if s := (&assigned{Worker: p.Worker, of: j.cfg.Plan.Producers}); j.cfg.Mode == Consume || s.producers() == 0 {
			continue
		}
		if senders++; !p.Silence.Silent {
			return nil
		}
		handed += p.Silence.Handed
	}
	if senders == 0 || j.raw.Ended-from < int64(goneLimit) {
		return nil
	}
	since, seconds := "the warm-up on", func(ns int64) string { return fmt.Sprintf("%.1f s", float64(ns-j.from)/1e9) }
	if from >= j.from {
		since = seconds(from)
	}
	return fmt.Errorf("nothing was confirmed from %s until the end of the drain at %s of the measurement, of %d messages handed over in that time", since, seconds(j.raw.Ended), handed)
}
