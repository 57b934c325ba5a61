package wire

import (
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Config says what to record. Instants are since the run's epoch.
type Config struct {
	Run           uint32       // in the headers of messages
	EpochNS       int64        // of the run, on CLOCK_MONOTONIC
	Now           func() int64 // reads the clock
	From, To      int64        // the measured window
	Share         float64      // of this process's processor time that recording may take; 0: Share
	Subscriptions int          // that each message reaches in this process; 0: deliveries are not sampled
	Hidden        bool         // messages are encrypted, and the client sends them by TCP
	Sized         bool         // no message takes fewer bytes than its payload has
	Answered      bool         // a confirmation is an answer of the system; otherwise hidden messages are not split up until then
	Log           *slog.Logger
}

// What a window of sampling is like.
const (
	ringBytes    = 16 << 20
	firstWindow  = 2 * time.Millisecond
	shortest     = time.Millisecond
	longest      = 500 * time.Millisecond
	aim          = 1000            // segments in the time in which messages are sampled
	aimRoom      = ringBytes / 4   // bytes of the ring buffer in that time
	mostMessages = 1 << 13         // sampled in a window; each is kept twice at most
	slowest      = 5 * time.Second // how long recording waits for messages
	mostWakes    = 1 << 13         // of the thread that only sleeps: it is due every millisecond
	mostWindows  = 64              // of which it is known that messages of them were sampled
)

// Estimates of what recording costs, measured with BenchmarkSegment on a host with two cores. Reading
// and matching are measured as they happen.
const (
	costSegment = 500 // ns, in the kernel
	costKiB     = 80  // ns, copied there
	costMessage = 150 // ns, where messages are handed over, confirmed and delivered
)

// headSize is the size of a record without payload.
const headSize = 32

// classes are how many payload bytes a record has room for. Room in the ring buffer is a constant
// for each reserve call, so a program has one call for each class. The last class holds the largest
// segment that was seen over loopback, which Linux 6 makes longer than 64 KiB.
var classes = [...]int{256 - headSize, 2048 - headSize, 16<<10 - headSize, 66<<10 - headSize, 132<<10 - headSize}

// roomFor returns the room of the class for a payload.
func roomFor(payload int) int {
	for _, c := range classes {
		if payload <= c {
			return c
		}
	}
	return classes[len(classes)-1]
}

// A Recorder samples messages in windows. Its methods may be called from any goroutine, and
// allocate nothing.
type Recorder struct {
	cfg     Config
	tap     *tap
	started bool
	data    []byte // of the latest window, to be used again; owned by loop
	stop    chan struct{}
	done    chan struct{}

	windows atomic.Pointer[[]span] // of sampling, in order of time; the last may be open
	opened  atomic.Int64           // messages of the latest window, handed over
	closed  atomic.Int64           // of them, confirmed or failed
	arrived atomic.Int64           // deliveries of them

	mu     sync.Mutex
	over   bool  // the report was returned
	from   int64 // of the window whose messages are collected; never: none is
	sent   []Message
	got    []Message
	woke   [mostWakes]delayed // a ring
	wakes  int
	report Report
}

// A span is a time in which messages that are handed over are sampled.
type span struct{ from, to int64 }

// Open attaches the programs. Nothing is recorded before Start, and Stop must follow. It takes some
// milliseconds. It returns ErrMissing if this host does not allow it.
// The sockets before are not the client's.
func Open(before Sockets) (*Recorder, error) {
	t, err := openTap()
	if err != nil {
		return nil, err
	}
	t.ignore(before)
	r := &Recorder{
		tap: t, stop: make(chan struct{}), done: make(chan struct{}), from: never,
		sent: make([]Message, 0, mostMessages), got: make([]Message, 0, mostMessages),
	}
	r.windows.Store(&[]span{{-1, -1}})
	return r, nil
}

// Start records from now on.
func (r *Recorder) Start(cfg Config) {
	r.cfg, r.started = cfg, true
	r.report.Hidden = cfg.Hidden
	if cfg.Share == 0 {
		r.cfg.Share = Share
	}
	go r.loop()
}

// Handed reports whether the message handed over at start is sampled. Then exactly one of Confirmed
// and Failed must follow, unless it never completes.
func (r *Recorder) Handed(start int64) bool {
	all := *r.windows.Load()
	if last := &all[len(all)-1]; start < last.from || start >= last.to {
		return false
	}
	return r.opened.Add(1) <= mostMessages
}

// Woke records by how much a thread that only sleeps woke too late.
func (r *Recorder) Woke(at, delay int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.woke[r.wakes%mostWakes] = delayed{at, delay}
	r.wakes++
}

// Failed says that a sampled message was not confirmed.
func (r *Recorder) Failed() { r.closed.Add(1) }

// Confirmed records when a sampled message was confirmed.
func (r *Recorder) Confirmed(m *Message) {
	r.closed.Add(1)
	r.keep(m, &r.sent, &r.report.Send)
}

// Delivered records the first delivery of a message to a subscription, if it is sampled.
func (r *Recorder) Delivered(m *Message) {
	all := *r.windows.Load()
	i := len(all) - 1
	if m.Start >= all[i].to {
		return
	}
	for ; m.Start < all[i].from; i-- {
		if i == 0 || m.Start >= all[i-1].to {
			return
		}
	}
	r.arrived.Add(1)
	r.keep(m, &r.got, &r.report.E2E)
}

// keep adds a message to those of the window, or counts it as late.
func (r *Recorder) keep(m *Message, all *[]Message, p *Parts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over, m.Due < r.cfg.From || m.Due >= r.cfg.To:
	case m.Start < r.from:
		p.leave(m, &p.Late)
	case len(*all) < cap(*all):
		*all = append(*all, *m)
	}
}

// Stop ends recording, removes the programs, and returns what was recorded.
func (r *Recorder) Stop() *Report {
	close(r.stop)
	if r.started {
		<-r.done
	} else {
		_ = r.tap.close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return &r.report
}

// loop records windows until Stop.
func (r *Recorder) loop() {
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	defer close(r.done)
	defer func() { _ = r.tap.close() }()
	b := newBudget(r.cfg.Share)
	began, used := r.cfg.Now(), processorTime()
	busy := func() int64 { return processorTime() - used }
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.CostNS, r.report.UsedNS = b.cost, busy()
	}()
	least := time.Duration(0)
	for {
		pause := max(least, b.pause(time.Duration(r.cfg.Now()-began), busy()))
		if !r.sleep(time.Duration(float64(pause) * (1 + rand.Float64()))) {
			return
		}
		if b.lacks(busy()) > 0 {
			continue
		}
		w, cost, err := r.window(b.length, func() int64 { return b.left(busy()) })
		if err != nil {
			r.cfg.Log.Warn("kernel instants are no longer recorded", "why", err)
			<-r.stop
			return
		}
		if b.spend(w, cost); w.number == 0 {
			least = longest
		} else {
			least = 0
		}
	}
}

// sleep returns false if the recorder is stopped before the time is over.
func (r *Recorder) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stop:
		return false
	}
}

// A load is what passed while messages were sampled.
type load struct{ number, room int }

// window samples the messages of a time, and records until they are complete, or cost what is left. It
// returns an estimate of the cost in processor time, ns.
func (r *Recorder) window(length time.Duration, left func() int64) (in load, cost int64, err error) {
	w := newWindow(r.cfg.Run, r.cfg.EpochNS)
	w.data = r.data[:0]
	defer func() { r.data = w.data }()
	w.hidden, w.sized, w.answered = r.cfg.Hidden, r.cfg.Sized, r.cfg.Answered
	before := threadTime()
	conns, lost := 0, r.tap.lost()
	if conns = r.tap.scan(); conns == 0 {
		return in, threadTime() - before, nil
	}
	r.opened.Store(0)
	r.closed.Store(0)
	r.arrived.Store(0)
	if err := r.tap.enable(true); err != nil {
		return in, 0, err
	}
	defer func() { _ = r.tap.enable(false) }()
	s := span{r.cfg.Now(), never}
	w.from = s.from
	r.mu.Lock()
	r.from = s.from
	r.mu.Unlock()
	old := *r.windows.Load()
	all := append(append([]span{}, old[max(0, len(old)-mostWindows+1):]...), s)
	r.windows.Store(&all)
	stopped := !r.sleep(length)
	ended := slices.Clone(all) // others read what all points to
	ended[len(ended)-1].to = r.cfg.Now()
	r.windows.Store(&ended)
	read := func() { err = r.tap.read(w.add) }
	read()
	in = load{w.number, w.room}
	spent := func() int64 { return threadTime() - before + int64(w.number)*costSegment + int64(w.room>>10)*costKiB }
	fills := time.Duration(float64(length) * aimRoom / float64(max(w.room, 1))) // a quarter of the ring buffer
	full := func() bool { return r.tap.lost() > lost }
	for wait := time.Millisecond; err == nil && !stopped && !full() && !r.complete() && spent() < left() && r.cfg.Now() < s.from+int64(length+slowest); wait = min(2*wait, 50*time.Millisecond) {
		stopped = !r.sleep(min(wait, fills))
		read()
	}
	if e := r.tap.enable(false); err == nil {
		err = e
	}
	w.until = r.cfg.Now()
	read()
	w.unwatched = w.hidden && r.tap.scan() > conns
	if full() {
		w.until = w.latest
		in.number *= 4
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from = never
	r.report.Conns, r.report.Beside = max(r.report.Conns, conns), max(r.report.Beside, r.tap.beside)
	r.report.Windows++
	r.report.Segments += uint64(w.number)
	r.report.Lost += r.tap.lost() - lost
	w.order()
	w.delays = newDelays(w.from, w.until)
	for _, d := range r.woke[:min(r.wakes, mostWakes)] {
		w.delays.add(d)
	}
	for _, all := range [][]Message{r.sent, r.got} {
		for i := range all {
			w.delays.add(delayed{all[i].Start, all[i].Late})
		}
	}
	for i := range r.sent {
		w.confirmed(&r.sent[i], &r.report.Send)
	}
	for i := range r.got {
		w.delivered(&r.got[i], &r.report.E2E)
	}
	messages := len(r.sent) + len(r.got)
	r.sent, r.got = r.sent[:0], r.got[:0]
	return in, spent() + int64(messages)*costMessage, err
}

// complete reports whether all messages of the latest window are confirmed or failed, and delivered.
func (r *Recorder) complete() bool {
	n := min(r.opened.Load(), mostMessages)
	return r.closed.Load() >= n && r.arrived.Load() >= n*int64(r.cfg.Subscriptions)
}
