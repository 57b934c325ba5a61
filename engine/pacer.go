package engine

import (
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// Bounds of a pacer's waits.
const (
	// revisit is the maximum time between a pacer's looks at waiting messages (DESIGN 3).
	revisit = int64(50_000)
	// longestSleep bounds how late a pacer notices that it has to stop.
	longestSleep = int64(20_000_000)
)

const (
	// catchUp is how long after the plan's end a pacer continues that is itself later than that.
	// What it has not reached by then is unsent.
	catchUp = time.Second
	// isBehind is the lateness from which what a pacer leaves unsent is its own fault, and not because
	// something ended the run.
	isBehind = 50 * time.Millisecond
)

// A pacer is a pacing thread. It turns to each message of its part at its due instant and
// never waits for a producer.
type pacer struct {
	run     *run
	part    schedule.Part
	waiter  *pace.Waiter
	shard   *measure.Sender
	pool    *chunkPool
	senders []*sender // producers of the run with an index in the part; indexed by producer / parts
	waiting []*sender // with a nonempty backlog, if the pacer itself works it off
	looked  int64     // last look at waiting
	held    int64     // the least lateness since it last waited with nothing else to do: the pacer caused at most the rest
	account account   // of what delayed the pacer

	counted [2]uint64 // messages that came due since the last flush, by phase
	first   int64     // how late the pacer turned to its first message; -1 before
	waits   atomic.Uint64
	behind  uint64      // messages left because the pacer itself was late
	walking atomic.Bool // iterates over what it left; see run.leave
}

// pace executes the pacer's part of the plan until its end or until the run stops.
func (l *pacer) pace() {
	defer l.waiter.Lock()()
	r := l.run
	defer l.account.open(r)()
	latest, left := r.plan.End()+int64(catchUp), remainder{}
	for index, due := range r.plan.Due(l.part) {
		if left.begun {
			if !l.leave(&left, index, due) {
				break
			}
			continue
		}
		now, ok := l.wait(due)
		if l.first < 0 && ok {
			l.first = now - due
		}
		ready := l.account.turned(due, now)
		if !ok || now > latest && l.ownDelay(ready-due) > int64(catchUp) {
			l.giveUp(&left, index, ready-due)
			if !l.leave(&left, index, due) {
				break
			}
			continue
		}
		l.count(due)
		l.held = min(l.held, ready-due)
		l.offer(l.senders[r.plan.Producer(index)/l.part.Count], item{index: index, due: due, ready: ready, held: l.held}, now)
	}
	l.walking.Store(false)
	l.flush()
	if l.behind > 0 {
		r.event("behind", "the generator did not keep up: a pacer was "+left.late.String()+" behind at the end, and "+itoa(int(l.behind))+" messages that were due were not sent")
	}
	for _, s := range l.senders {
		s.closed.Store(true)
		s.rouse()
	}
	if r.direct {
		l.drainOut()
	}
	if n := l.waiter.Yielded(); n > 0 {
		r.event("precedence", "a pacer that used over half of a core ran without SCHED_FIFO for a while, "+itoa(int(n))+" times")
	}
}

// A remainder is the part of its plan that a pacer leaves: from the message at which it gave up,
// everything due by then.
type remainder struct {
	begun bool
	index uint64        // of that message
	end   int64         // ns; messages due later do not belong to it
	late  time.Duration // caused by the pacer itself
}

// ownDelay returns the part of a lateness that the pacer caused: none if it had to wait for room,
// since then the system had none.
func (l *pacer) ownDelay(late int64) int64 {
	if l.waits.Load() > 0 {
		return 0
	}
	return late
}

// giveUp starts the remainder at the given message, to which the pacer turned that late.
func (l *pacer) giveUp(left *remainder, index uint64, late int64) {
	left.begun, left.index = true, index
	left.end = min(l.run.stopped.Load(), l.run.plan.End()-1)
	if own := l.ownDelay(late); own >= int64(isBehind) {
		left.late = time.Duration(own).Round(time.Millisecond)
	}
	l.walking.Store(true)
	l.waiter.Yield()
}

// leave accounts for a message of the remainder, and reports whether another may follow: after
// many, the rest is counted at once.
func (l *pacer) leave(left *remainder, index uint64, due int64) bool {
	if due > left.end {
		return false
	}
	if index-left.index < mostWalked {
		l.count(due)
		l.shard.Unsent(due)
		if left.late > 0 {
			l.behind++
		}
		return true
	}
	plan := l.run.plan
	for p, n := range l.shard.UnsentBetween(due, left.end+1, func(t int64) uint64 { return plan.Remaining(l.part, index, due, t) }) {
		l.counted[p] += n
		if left.late > 0 {
			l.behind += n
		}
	}
	return false
}

// published records, if Publish may block the pacer, what delayed it in a long one.
func (l *pacer) published(start int64) {
	if !l.run.inline {
		return
	}
	if left := l.run.now(); left-start > revisit {
		l.account.settle(left)
		if l.run.sending.Err() != nil {
			l.run.halt()
		}
	}
}

// count accounts for a message that is due.
func (l *pacer) count(due int64) {
	p := l.run.recorder.Phase(due)
	l.counted[p]++
	if l.counted[p]&255 == 0 {
		l.flush()
	}
}

// flush reports the counts; only now and then, since each is an atomic addition.
func (l *pacer) flush() {
	for p, n := range l.counted {
		if n > 0 {
			l.shard.ScheduledN(measure.Phase(p), n)
			l.counted[p] = 0
		}
	}
}

// wait returns the first clock reading that is not before due; false if the run stops first.
func (l *pacer) wait(due int64) (int64, bool) {
	now := l.waiter.Until(min(due, l.looked)) // one reading: looked has passed
	if now >= due {
		if now-l.looked > revisit {
			l.look(now)
			now = l.account.settle(now)
		}
		return now, !l.run.stop.Load()
	}
	l.flush()
	l.account.onTime()
	for {
		if l.run.stop.Load() {
			return now, false
		}
		next, idle := min(due, now+longestSleep), len(l.waiting) == 0
		if !idle {
			l.look(now)
			next = min(due, now+revisit)
		}
		if now = l.rest(next, now); now >= due {
			if l.looked = now; idle {
				l.held = now - due
			}
			return now, true
		}
	}
}

// rest waits until t; now is an earlier reading.
func (l *pacer) rest(t, now int64) int64 {
	if l.account.wants(t, now) {
		l.waiter.Until(t - readingTakes)
		l.account.begin(l.run.now())
	}
	return l.waiter.Until(t)
}

// look hands over whatever waits and can be handed over now.
func (l *pacer) look(now int64) {
	l.looked = now
	rest := l.waiting[:0]
	for _, s := range l.waiting {
		if l.work(s, now) {
			rest = append(rest, s)
		} else {
			s.listed = false
		}
	}
	l.waiting = rest
}

// offer gives a message to its sender, at the instant now.
func (l *pacer) offer(s *sender, it item, now int64) {
	r := l.run
	if r.direct && r.cfg.Plan.BatchMax == 1 && s.queue.len() == 0 {
		if s.gather(1) {
			s.hand(s.taken[0], s.target(), it, &instants{due: it.due, ready: it.ready, held: it.held, start: now})
			s.dispatch()
			s.taken = s.taken[:0]
			l.published(now)
			return
		}
	}
	if r.cfg.WhenFull != Wait && l.isFull(s) {
		if r.cfg.WhenFull == Fail {
			r.fail("producer " + itoa(s.index) + " had " + itoa(r.cfg.InFlight) + " messages in flight (when_full: fail)")
			l.shard.Unsent(it.due)
			return
		}
		l.shard.Dropped(it.due)
		return
	}
	for !s.queue.put(it) {
		// The pacer's backlog memory is exhausted: it has to wait, which shows as lateness of
		// everything behind it, and is reported.
		if l.waits.Add(1) == 1 {
			r.event("backlog-full", "a pacer's backlog of "+itoa(pacerBacklog)+" messages is full: the pacer waits")
		}
		at := r.now()
		now = l.rest(at+revisit, at)
		l.look(now)
		if r.stop.Load() {
			l.shard.Unsent(it.due)
			return
		}
	}
	if !r.direct {
		s.rouse()
		return
	}
	if l.work(s, now) && !s.listed {
		s.listed = true
		l.waiting = append(l.waiting, s)
	}
}

// isFull reports whether the policy for a full producer applies.
func (l *pacer) isFull(s *sender) bool {
	if l.run.direct && l.run.cfg.Plan.BatchMax == 1 {
		return true // there was no free slot
	}
	return s.full()
}

// work hands over from the sender's queue, at the instant now, while it has whole batches and free
// slots. It reports whether a whole batch still waits.
func (l *pacer) work(s *sender, now int64) bool {
	for first := true; ; first = false {
		n := s.need()
		have := s.queue.len()
		if have < n {
			if have == 0 || !s.closed.Load() {
				return false
			}
			n = have
		}
		if !s.gather(n) {
			return true
		}
		if s.listed || !first {
			now = l.run.now()
			l.waiter.Observe(now)
		}
		s.handQueued(n, -1, now)
		l.published(now)
	}
}

// drainOut works off the backlogs after the plan's end.
func (l *pacer) drainOut() {
	for _, s := range l.senders {
		if s.queue.len() > 0 && !s.listed {
			s.listed = true
			l.waiting = append(l.waiting, s)
		} else if s.queue.len() == 0 {
			s.finished.Store(true)
		}
	}
	for len(l.waiting) > 0 && !l.run.ended.Load() && l.run.sending.Err() == nil {
		at := l.run.now()
		l.look(l.rest(at+revisit, at))
	}
	for _, s := range l.senders {
		s.finished.Store(true)
	}
}
