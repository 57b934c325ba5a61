package ledger

import (
	"sync"
	"sync/atomic"
)

// A stream is what is known of one stream's messages on the sending side.
type stream struct {
	// The sender's own, and everybody's when it has stopped.
	sent  uint64           // messages, which is one above the last sequence
	last  point            // the largest due and start until now
	fresh [reachEach]point // of the messages that the timeline has not heard of
	told  uint64           // up to which it has
	line  timeline
	_     [64]byte // completions are another goroutine's

	// next is twice the head of settled, plus frozen while somebody holds mu.
	// Messages confirmed in order move it without the lock; see Confirmed.
	next atomic.Uint64
	// unconfirmed is how many messages below the head of settled are not
	// confirmed: the fate of some is unknown, others failed.
	unconfirmed atomic.Uint64

	mu      sync.Mutex
	settled set         // messages with a known fate; the head holds while mu is held
	failed  spans       // those of them that failed
	closed  uint64      // everything below is in the closed books
	open    [2]uint64   // of those, by phase, the ones without a known fate
	late    [2]lateFate // and the ones that got their fate since the closed books were last told
}

// lateFate is messages that got their fate after the bound had closed them.
type lateFate struct{ confirmed, failed uint64 }

// frozen is the bit of stream.next that keeps confirmations from moving it.
const frozen = 1

// lock locks the stream: its settled.head is that of now, and stays.
func (s *stream) lock() {
	s.mu.Lock()
	s.settled.head = s.next.Or(frozen) / 2
}

// unlock ends lock, and publishes settled.head.
func (s *stream) unlock() {
	s.next.Store(s.settled.head * 2)
	s.mu.Unlock()
}

// settle notes that the fate of message seq is known, and reports whether it was
// not before. The lock is held.
func (s *stream) settle(seq uint64) bool {
	head := s.settled.head
	if !s.settled.insert(seq) {
		return false
	}
	switch {
	case seq > head:
		// Ledger.behind subtracts: what it is to subtract from must be there first.
		s.next.Store(s.settled.head*2 + frozen)
		s.unconfirmed.Add(seq - head)
	case seq < head:
		s.unconfirmed.Add(^uint64(0))
	}
	return true
}

// confirmed returns how many messages were confirmed, at most some too many
// while others are at it.
func (s *stream) confirmed() uint64 {
	not := s.unconfirmed.Load()
	return s.next.Load()/2 - not
}

// Sent counts a message as handed to the client library. The stream's one sender
// calls it, in order of seq from 0 without a gap (it panics otherwise: every
// count after it would be wrong), preferably before the message can be
// confirmed or delivered, at the latest before the books are read. It does not
// block but for a look at the timeline by Merge, and allocates nothing.
func (l *Ledger) Sent(stream uint32, seq uint64, due, start int64) {
	s := &l.streams[stream]
	if seq != s.sent {
		panic("ledger: a stream's messages are not sent in order of their sequence")
	}
	s.sent++
	// Both grow with seq, by their definition; where a clock or a schedule does
	// not keep to that, the maximum keeps what the timeline promises.
	s.last.due = max(s.last.due, due)
	s.last.start = max(s.last.start, start)
	s.fresh[seq%reachEach] = s.last
	if s.sent%reachEach == 0 {
		s.tell()
	}
}

// tell tells the timeline of what it has not heard of. The sender calls it, or
// who reads the books when the sender has stopped.
func (s *stream) tell() {
	if s.told < s.sent {
		s.line.reach(s.sent, s.fresh[s.told%reachEach:(s.sent-1)%reachEach+1])
		s.told = s.sent
	}
}

// Confirmed counts a message as confirmed by the system. What is known already
// of its fate stays. Any goroutine may call it; it waits only for others who are
// at the same stream, and not in the common case that messages are confirmed in
// order. It allocates only when they are out of order more widely than ever
// before.
func (l *Ledger) Confirmed(stream uint32, seq uint64) {
	s := &l.streams[stream]
	// In order, as nearly always, and the lock is free: of all that is kept only the head
	// changes. Whoever takes the lock sets the frozen bit, after which this fails;
	// whoever comes in between finds another head and fails too.
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

// Failed counts a message as failed: the system or the client library said so,
// or gave up waiting. Otherwise as Confirmed, but always with the lock.
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

// spans counts how the number of spans of the stream's fates changed.
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
