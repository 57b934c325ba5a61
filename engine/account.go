package engine

import (
	"runtime"

	"github.com/weirmq/weir/internal/pace"
)

const (
	// readingTakes is how long before the end of a wait a pacer reads its thread's account. A
	// reading takes 1 us on an idle host, and up to some 10 us after a sleep, when the caches are
	// cold. That must not become lateness.
	readingTakes = int64(20_000)
	// shortWait is the longest wait that counts as work when the last reading is recent: the pacer
	// spins through it, or its sleep is too short to matter.
	shortWait = int64(40_000)
)

// Inside is the time that messages waited for Publish to return. Pacers set only Unreported, since
// their messages record their wait themselves; for producers' goroutines it is sampled.
type Inside struct {
	Unreported bool  // at least one thread's kernel does not report thread times
	PublishNS  int64 // goroutines: inside Publish while a message waited
	FullNS     int64 // waiting for a slot
	WokenNS    int64 // in the window, from the pacer reaching a message until its producer's goroutine woke for it: lateness
	WallNS     int64 // duration of the sampled calls
	BusyNS     int64 // part of WallNS in which the thread ran or waited for a core
}

func (i *Inside) add(o *Inside) {
	i.Unreported = i.Unreported || o.Unreported
	i.WallNS += o.WallNS
	i.BusyNS += o.BusyNS
	i.PublishNS += o.PublishNS
	i.FullNS += o.FullNS
	i.WokenNS += o.WokenNS
}

// An account separates what delayed a pacer that publishes itself: time its thread slept inside
// Publish is the client's or the system's, time it ran or waited for a core is the generator's. The
// zero account is for a pacer that nothing blocks.
type account struct {
	run        *run         // nil: nothing blocks this pacer
	thread     *pace.Thread // nil: thread times are unavailable; then all of a Publish counts as slept
	last       pace.ThreadTime
	owed       int64 // ns by which the pacer would be ahead, had Publish not slept
	unreported bool  // thread is nil although Publish may block
}

// open starts the account of the calling thread if Publish may block it, and returns the function
// that ends it.
func (a *account) open(r *run) (end func()) {
	if !r.inline {
		return func() {}
	}
	a.run = r
	if !r.virtual() {
		if t, err := pace.WatchThread(); err == nil {
			a.thread = t
			a.begin(r.now())
			return t.Close
		}
	}
	a.unreported = true
	a.begin(r.now())
	return func() {}
}

// read returns the thread's times; at is a clock reading taken just before.
func (a *account) read(at int64) pace.ThreadTime {
	if a.thread == nil {
		return pace.ThreadTime{At: at}
	}
	return a.thread.Read(a.run.clock.Load())
}

// onTime records that the pacer has to wait for its next message: it has caught up.
func (a *account) onTime() { a.owed = 0 }

// wants reports whether the account should restart at the end of a wait until t.
func (a *account) wants(t, now int64) bool {
	return a.run != nil && t-now > readingTakes && (t-now > shortWait || now-a.last.At > revisit)
}

// begin restarts the account now, after a sleep outside Publish.
func (a *account) begin(now int64) { a.last = a.read(now) }

// settle adds what the thread slept since the last reading to owed, and returns a clock reading.
func (a *account) settle(now int64) int64 {
	if a.run == nil {
		return now
	}
	t := a.read(now)
	_, slept := t.Since(a.last)
	a.last = t
	a.owed += slept
	return a.run.now()
}

// turned returns the ready instant of a message that the pacer reaches at now: when it would have
// reached it, had Publish not slept while the message was due or before. What it slept is the
// client's wait; the rest is the pacer's lateness.
func (a *account) turned(due, now int64) int64 {
	a.owed = max(0, min(a.owed, now-due))
	return now - a.owed
}

// watchEvery is the minimum interval between sampled calls of producers' goroutines. For a sampled
// call the thread is locked and its account opened.
const watchEvery = int64(5_000_000)

// watch reports whether to sample the next call.
func (s *sender) watch() bool {
	if s.run.virtual() {
		s.inside.Unreported = true
		return false
	}
	now, next := s.run.now(), s.run.watchNext.Load()
	return now >= next && s.run.watchNext.CompareAndSwap(next, now+watchEvery)
}

// handWatched is handQueued for messages that waited, and records what its thread did meanwhile. It
// returns the instant of the hand-over.
func (s *sender) handWatched(n int, last, full int64) (start int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t, err := pace.WatchThread()
	if err != nil {
		s.inside.Unreported = true
		start = s.run.now()
		s.inside.waited(last, start, full)
		s.handQueued(n, -1, start)
		return start
	}
	defer t.Close()
	clock := s.run.clock.Load()
	before := t.Read(clock)
	s.inside.waited(last, before.At, full)
	s.handQueued(n, -1, before.At)
	d, slept := t.Read(clock).Since(before)
	s.inside.WallNS += d.At
	s.inside.BusyNS += d.At - slept
	return before.At
}

// waited adds the time from a hand-over at last (-1: none) to the next, while a message waited;
// full ns of it were spent waiting for a slot.
func (i *Inside) waited(last, next, full int64) {
	i.FullNS += full
	if last >= 0 {
		i.PublishNS += max(0, next-last-full)
	}
}
