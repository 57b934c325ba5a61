package ledger

import (
	"sync"
	"sync/atomic"
)

// A stream is the sending side of one stream's messages.
type stream struct {
	// Owned by the sender, and by anyone when it has stopped.
	sent    uint64           // messages, which is one above the last sequence
	last    point            // the largest due and start until now
	fresh   [reachEach]point // of the messages not yet in the timeline
	entered uint64           // number of messages in the timeline
	line    timeline
	_       [64]byte // completions run on other goroutines

	// next is twice the head of settled, plus frozen while somebody holds mu.
	// Messages confirmed in order move it without the lock; see Confirmed.
	next atomic.Uint64
	// unconfirmed is how many messages below the head of settled are not confirmed: of unknown
	// fate, or failed.
	unconfirmed atomic.Uint64

	mu      sync.Mutex
	settled set         // messages with a known fate; the head holds while mu is held
	failed  spans       // the failed ones among them
	closed  uint64      // everything below is in the closed books
	open    [2]uint64   // closed messages without a known fate, by phase
	late    [2]lateFate // those that got their fate since the closed books were last updated
}

// lateFate counts messages that got their fate after the bound had closed them.
type lateFate struct{ confirmed, failed uint64 }

// frozen is the bit of stream.next that keeps confirmations from moving it.
const frozen = 1

// lock locks the stream: settled.head is then current, and stays.
func (s *stream) lock() {
	s.mu.Lock()
	s.settled.head = s.next.Or(frozen) / 2
}

// unlock ends lock, and publishes settled.head.
func (s *stream) unlock() {
	s.next.Store(s.settled.head * 2)
	s.mu.Unlock()
}

// settle records that the fate of message seq is known, and reports whether that is new. The lock
// must be held.
func (s *stream) settle(seq uint64) bool {
	head := s.settled.head
	if !s.settled.insert(seq) {
		return false
	}
	switch {
	case seq > head:
		// Ledger.behind subtracts: the minuend must be updated first.
		s.next.Store(s.settled.head*2 + frozen)
		s.unconfirmed.Add(seq - head)
	case seq < head:
		s.unconfirmed.Add(^uint64(0))
	}
	return true
}

// confirmed returns how many messages are confirmed, possibly slightly too many during concurrent
// calls.
func (s *stream) confirmed() uint64 {
	not := s.unconfirmed.Load()
	return s.next.Load()/2 - not
}

// Sent counts a message as handed to the client library. The stream's only sender calls it, in
// order of seq from 0 without a gap (it panics otherwise: every later count would be wrong),
// preferably before the message can be confirmed or delivered, at the latest before the books are
// read. It does not block, except for a short access of Merge to the timeline, and allocates
// nothing.
func (l *Ledger) Sent(stream uint32, seq uint64, due, start int64) {
	s := &l.streams[stream]
	if seq != s.sent {
		panic("ledger: a stream's messages are not sent in order of their sequence")
	}
	s.sent++
	// Both increase with seq, by definition; if a clock or a schedule violates that, the maximum
	// keeps the timeline valid.
	s.last.due = max(s.last.due, due)
	s.last.start = max(s.last.start, start)
	s.fresh[seq%reachEach] = s.last
	if s.sent%reachEach == 0 {
		s.tell()
	}
}

// tell adds the outstanding points to the timeline. It is called by the sender, or by a reader of
// the books when the sender has stopped.
func (s *stream) tell() {
	if s.entered < s.sent {
		s.line.reach(s.sent, s.fresh[s.entered%reachEach:(s.sent-1)%reachEach+1])
		s.entered = s.sent
	}
}

// Confirmed counts a message as confirmed by the system. A fate that is already known stays. Any
// goroutine may call it; it waits only for concurrent calls for the same stream, and not in the
// common case that messages are confirmed in order. It allocates only when they are more widely out
// of order than ever before.
func (l *Ledger) Confirmed(stream uint32, seq uint64) {
	s := &l.streams[stream]
	// The common case: in order, and the lock is free. Only the head changes. Taking the lock sets
	// the frozen bit, which makes this fail; a concurrent confirmation changes the head, which
	// makes it fail too.
	if v := seq * 2; s.next.Load() == v && s.next.CompareAndSwap(v, v+2) {
		return
	}
	s.lock()
	if seq < s.closed {
		l.settleLate(stream, seq, false)
		s.unlock()
		return
	}
	before := s.settled.holes.n
	s.settle(seq)
	added := s.settled.holes.n - before
	s.unlock()
	l.spans(stream, added)
}

// Failed counts a message as failed: the system or the client library reported it, or gave up
// waiting. Otherwise as Confirmed, but always with the lock.
func (l *Ledger) Failed(stream uint32, seq uint64) {
	s := &l.streams[stream]
	s.lock()
	if seq < s.closed {
		l.settleLate(stream, seq, true)
		s.unlock()
		return
	}
	before := s.settled.holes.n + s.failed.n
	if s.settle(seq) {
		s.failed.add(seq)
		s.next.Store(s.settled.head*2 + frozen)
		s.unconfirmed.Add(1)
	}
	added := s.settled.holes.n + s.failed.n - before
	s.unlock()
	l.spans(stream, added)
}

// spans counts a change in the number of spans of the stream's fates.
func (l *Ledger) spans(stream uint32, added int) {
	if added != 0 {
		l.fates[stream%fateShards].n.Add(int64(added))
	}
}

// open returns how many spans the ledger holds. Merge's goroutine calls it.
func (l *Ledger) open() int {
	n := l.held
	for i := range l.fates {
		n += int(l.fates[i].n.Load())
	}
	return n
}
