package engine

import (
	"runtime"

	"github.com/weirmq/weir/internal/pace"
)

const (
	// readingTakes is how long before the end of a wait a lane reads its thread's
	// account. On an idle host a reading takes 1 us, and up to some 10 us after a sleep,
	// when the caches are cold: that must not be lateness.
	readingTakes = int64(20_000)
	// shortWait is up to where a wait is taken for work where the last reading is
	// recent: it is spun, or its sleep is too short to matter.
	shortWait = int64(40_000)
)

// Inside is what is known of the time in which messages waited for Publish to
// return. Of lanes it is only whether it is told: their messages have it apart. Of
// producers' goroutines some calls are looked at.
type Inside struct {
	Untold    bool  // at least one thread's kernel does not tell
	PublishNS int64 // of goroutines: inside Publish, while a message waited
	FullNS    int64 // waiting for a slot
	WokenNS   int64 // in the window, from the lane's turn to a message until its producer's goroutine woke for it: lateness
	WallNS    int64 // the calls looked at
	BusyNS    int64 // of that, the thread ran or waited for a core
}

func (i *Inside) add(o *Inside) {
	i.Untold = i.Untold || o.Untold
	i.WallNS += o.WallNS
	i.BusyNS += o.BusyNS
	i.PublishNS += o.PublishNS
	i.FullNS += o.FullNS
	i.WokenNS += o.WokenNS
}

// An account tells apart what kept a lane that publishes by itself: what its thread
// slept inside Publish, which is the client's or the system's, and what it worked
// or waited for a core, which is the generator's. The zero account is of a lane
// that nothing keeps.
type account struct {
	run    *run         // nil: of a lane that nothing keeps
	thread *pace.Thread // nil: not told; then all of a Publish counts as slept
	last   pace.ThreadTime
	owed   int64 // ns by which the lane would be further, had Publish not slept
	untold bool  // thread is nil although Publish may block
}

// open begins the account of the calling thread, where Publish may block it, and
// returns its end.
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
	a.untold = true
	a.begin(r.now())
	return func() {}
}

// read returns how the thread stands; at is a reading of the clock just before.
func (a *account) read(at int64) pace.ThreadTime {
	if a.thread == nil {
		return pace.ThreadTime{At: at}
	}
	return a.thread.Read(a.run.clock.Load())
}

// onTime says that the lane has to wait for its next message: whatever kept it is
// made up for.
func (a *account) onTime() { a.owed = 0 }

// wants reports whether the account is to begin anew at the end of a wait until t.
func (a *account) wants(t, now int64) bool {
	return a.run != nil && t-now > readingTakes && (t-now > shortWait || now-a.last.At > revisit)
}

// begin has the account begin now, after a sleep that is not Publish's.
func (a *account) begin(now int64) { a.last = a.read(now) }

// settle adds what the thread slept since the last reading to what is owed, and
// returns a reading of the clock.
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

// turned is the ready instant of a message that the lane comes to at now: that at
// which it would have come to it, had Publish not slept while the message was due
// or before. What it slept is the client's wait; all else is the lane's.
func (a *account) turned(due, now int64) int64 {
	a.owed = max(0, min(a.owed, now-due))
	return now - a.owed
}

// watchEvery is how often, at the most, a call of a producer's goroutine is looked
// at: its thread is locked, and its account opened, for that call.
const watchEvery = int64(5_000_000)

// watch reports whether the next call is to be looked at.
func (s *sender) watch() bool {
	if s.run.virtual() {
		s.inside.Untold = true
		return false
	}
	now, next := s.run.now(), s.run.watchNext.Load()
	return now >= next && s.run.watchNext.CompareAndSwap(next, now+watchEvery)
}

// handWatched is handQueued of messages that waited, and tells what its thread did
// meanwhile. It returns the instant of the hand-over.
func (s *sender) handWatched(n int, last, full int64) (start int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t, err := pace.WatchThread()
	if err != nil {
		s.inside.Untold = true
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

// waited counts the time from a hand-over at last, -1 for none, to the next, for
// which a message waited; full ns of it for a slot.
func (i *Inside) waited(last, next, full int64) {
	i.FullNS += full
	if last >= 0 {
		i.PublishNS += max(0, next-last-full)
	}
}
