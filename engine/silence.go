package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
)

// goneLimit is how long, until the end of the drain, a system must neither confirm nor deliver
// anything to count as gone for good. Shorter silences leave unconfirmed messages, which the run
// reports as such.
const goneLimit = 5 * time.Second

// goneLeast is the minimum number of unanswered messages for that: one lost confirmation is not
// silence.
const goneLeast = 5

// A Silence is how long, until the end of the drain, the system accepted nothing that a worker
// handed over, without answering a question afterwards.
type Silence struct {
	From   int64  // ns since the epoch: the latest confirmation or delivery; the first hand-over if nothing was confirmed at all
	Handed uint64 // messages handed over since; none was confirmed
	Silent bool   // long enough, with enough messages, for the system to count as gone for good; false if it says itself that it accepts no messages
}

// A stallDetector detects when confirmations stop. The goroutine of Execute uses it, except for the
// failure counts, which any completing goroutine increments.
type stallDetector struct {
	failures   atomic.Uint64 // messages
	unanswered atomic.Uint64 // of them, those without a reason given by the system

	confirmed uint64 // as of the last look
	at        int64  // when confirmed last grew
	asked     int64  // the first hand-over since; 0: none
	handed    uint64 // messages handed over by at
	before    uint64 // value of unanswered at at
}

// fail counts a message that failed. It updates unanswered first: a look between the two must not
// take it for a later failure.
func (h *stallDetector) fail(err error) {
	if !refusal(err) {
		h.unanswered.Add(1)
	}
	h.failures.Add(1)
}

// refusal reports whether a failure is an answer: of a system that is there and rejects the
// message, or of the responder in mode Request.
func refusal(err error) bool {
	return driver.IsAnswer(err) || errors.Is(err, errCorruptedReply) || errors.Is(err, errForeignReply)
}

// look records how many messages are confirmed, and how many are handed over and not completed, at
// the instant now.
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

// silence evaluates the end of the drain. heard is the latest delivery, open the number of messages
// not completed, and full says that a producer had no free slot, so that more was offered than
// could be handed over.
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
	// A system that rejects every message with a reason is there.
	unanswered := open + h.unanswered.Load() - h.before
	s.Silent = ended-max(s.From, h.asked) >= int64(goneLimit) && unanswered > 0 && (s.Handed >= goneLeast || full)
	return s
}

// inFlight returns how many messages are handed over and not completed, and whether a producer has
// no free slot. A batch being gathered counts as handed over.
func (r *run) inFlight() (n uint64, full bool) {
	for _, s := range r.senders {
		free := s.free.len()
		if s.finished.Load() {
			free += len(s.taken) // for a batch that was never sent
		}
		n += uint64(len(s.slots) - free)
		full = full || free == 0
	}
	return n, full
}

// silence returns how the system answered until the end of the drain.
func (r *run) silence() Silence {
	var s Status
	r.status(&s, true)
	open, full := r.inFlight()
	silence := r.stall.silence(s.At, s.Last, open, full)
	silence.Silent = silence.Silent && !r.blocks.open()
	return silence
}

// awaitAnswer asks until the system answers; false: ctx ended first.
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

// gone returns why the system counts as gone, if no sending worker had an answer.
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
