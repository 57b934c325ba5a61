package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/measure"
)

// shortestInterval is the shortest interval that is shown: rates of the few milliseconds after the drain
// mean nothing.
const shortestInterval = 100 * time.Millisecond

// A Terminal is where a Live is shown.
type Terminal struct {
	Out     io.Writer                // nil: nothing is shown
	Rewrite bool                     // supports control sequences; else a line every few seconds
	Colour  bool                     // of the block
	Size    func() (cols, lines int) // called at each refresh; 0: unknown; nil: never known
}

// A LivePlan is what is known of a run in advance. Times count from the run's epoch.
type LivePlan struct {
	Which    string        // position in a series, "run 2 of 6, NAME"; "" for a single run
	System   string        // the driver
	WarmUp   time.Duration // end of the warm-up
	End      time.Duration // end of the measured window; 0: unknown
	Drain    time.Duration // the longest drain
	Messages uint64        // number to measure, if End is unknown; 0: unknown too
	Closed   bool          // closed loop: no offered rate
	Sends    bool          // there are producers
	Receives bool          // there are consumers
	Backlog  bool          // consumers begin when everything has been sent
}

// A Live shows the progress of one run. Its methods may be called from any goroutine. It ignores write
// errors, since a run must not depend on its viewer.
type Live struct {
	mu   sync.Mutex
	to   rewriter
	plan LivePlan

	doing   string        // activity before the first message or after the last; "" during a phase
	since   time.Time     // start of doing
	quiet   chan struct{} // closed to stop showing the elapsed time; nil: not shown
	phase   string        // "warmup", "measure", "drain"
	drained int64         // when the drain began
	faults  []string      // the last two things that weir did to servers: a fault and its end
	lined   liveLine      // the last line written in place of the block
	ended   bool
	seen    *liveFigures // nil: nothing to show yet
	said    repeatedEvents
	part    []byte // incomplete line given to Write
}

// A liveLine is what decides whether another line is written in place of the block.
type liveLine struct {
	at      int64  // ns
	phase   string // "": none was written yet
	backlog uint64
	stale   bool // a fault came since
}

// liveFigures are the figures of the block.
type liveFigures struct {
	at             int64            // time of the reading, ns
	seconds        float64          // length of the last interval
	last, all      measure.Counters // of the last interval, and since the start
	backlog        uint64
	done           uint64 // messages of the window that completed
	send, e2e, rtt [measure.NumPhases]measure.Counts
	late           [measure.NumPhases]measure.Counts
	missed         uint64  // known to be lost so far
	p99            []int64 // of the last intervals, at most mostBars; 0: none
}

// mostBars limits the chart of p99.
const mostBars = 240

// NewLive returns a view of a run that has not begun.
func NewLive(t Terminal, p LivePlan) *Live {
	return &Live{to: rewriter{out: t.Out, rewrite: t.Rewrite, colour: t.Colour, size: t.Size}, plan: p, said: repeatedEvents{from: int64(p.WarmUp)}}
}

func (v *Live) silent() bool { return v.to.out == nil }

// How often a view updates the elapsed time, in the block and as a line, and writes a line of figures.
const (
	liveTick   = time.Second
	ticksALine = 10 // in ticks
	plainPause = 5 * time.Second
)

// Doing shows what weir is doing before the first message or after the last, such as "starting jetstream".
// The block shows it with the elapsed time until something replaces it. Without a block, a line is written
// every 10 s.
func (v *Live) Doing(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doing, v.since = what, time.Now()
	if v.to.rewrite {
		v.draw()
	}
	if v.quiet == nil && !v.silent() && !v.ended {
		v.quiet = make(chan struct{})
		go v.count(v.quiet)
	}
}

// count shows the elapsed time until quiet is closed.
func (v *Live) count(quiet <-chan struct{}) {
	t := time.NewTicker(liveTick)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-quiet:
			return
		case <-t.C:
		}
		v.mu.Lock()
		switch {
		case v.doing == "" || v.ended:
		case v.to.rewrite:
			v.draw()
		case n%ticksALine == 0:
			v.to.lines(v.head())
		}
		v.mu.Unlock()
	}
}

// did ends the activity that Doing set.
func (v *Live) did() {
	v.doing = ""
	if v.quiet != nil {
		close(v.quiet)
		v.quiet = nil
	}
}

// Note writes a permanent line.
func (v *Live) Note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw(cleaned(fmt.Sprintf(format, args...)))
}

// Write writes lines of others, such as a log's, above the block.
func (v *Live) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.part = append(v.part, b...)
	var lines []string
	for {
		i := bytes.IndexByte(v.part, '\n')
		if i < 0 {
			break
		}
		lines = append(lines, cleaned(string(v.part[:i])))
		v.part = v.part[i+1:]
	}
	if len(lines) > 0 {
		v.draw(lines...)
	}
	return len(b), nil
}

// Event reports an event of the run at an instant; kinds are the engine's. Of a recurring event it shows
// the first, then counts at growing intervals.
func (v *Live) Event(at int64, kind, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kind == "phase" {
		v.did()
		v.phase = text
		if text == "drain" {
			v.drained = at
		}
		if v.to.rewrite {
			v.draw()
		}
		return
	}
	if kind == "injected" {
		v.lined.stale = true
		v.faults = append(v.faults[max(0, len(v.faults)-1):], fmt.Sprintf("%s at %.1f s", cleaned(text), float64(at-int64(v.plan.WarmUp))/1e9))
	}
	if line := v.said.tell(at, kind, text); line != "" {
		v.draw(line)
	}
}

// Interval shows what happened in the last interval.
func (v *Live) Interval(iv *measure.Interval) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.silent() {
		return
	}
	if v.seen == nil {
		v.seen = &liveFigures{}
	}
	v.seen.add(iv, v.plan.Closed)
	if v.ended || iv.To-iv.From < int64(shortestInterval) {
		return
	}
	v.did()
	switch {
	case v.to.rewrite:
		v.draw()
	case v.due():
		v.to.lines(v.plain())
		v.lined = liveLine{at: v.seen.at, phase: v.phase, backlog: v.seen.backlog}
	}
}

// due reports whether a line is due: the first of a stage, the first after a fault, or after a pause.
// Readings come a second apart, more or less. Those of the plan's end and of a drain that waits for nothing are
// left out, since the screen follows.
func (v *Live) due() bool {
	at := time.Duration(v.seen.at)
	if v.phase == "measure" && v.plan.End > 0 && at >= v.plan.End || v.counts() && v.seen.underWay() == 0 {
		return false
	}
	return v.lined.stale || v.lined.phase != v.phase || at-time.Duration(v.lined.at) >= plainPause-liveTick/2
}

// Done removes the block, after a last line for each recurring event with unreported occurrences. Lines
// written later are not rewritten.
func (v *Live) Done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return
	}
	v.ended = true
	v.did()
	lines := v.said.rest()
	if len(v.part) > 0 {
		lines = append(lines, cleaned(string(v.part)))
		v.part = nil
	}
	v.draw(lines...)
}

// draw writes permanent lines and, on a terminal, redraws the block.
func (v *Live) draw(lines ...string) {
	switch {
	case v.silent():
	case !v.to.rewrite:
		v.to.lines(lines...)
	case v.ended:
		v.to.block(lines, nil)
	default:
		cols, rows := v.to.measured()
		v.to.block(lines, v.frame(cols, rows))
	}
}

// add counts an interval. A closed loop has no response, so it shows service times.
func (f *liveFigures) add(iv *measure.Interval, closed bool) {
	send, e2e, rtt := measure.SendResponse, measure.E2EResponse, measure.RTTResponse
	if closed {
		send, e2e, rtt = measure.SendService, measure.E2EService, measure.RTTService
	}
	f.at, f.backlog = iv.To, iv.Backlog.Waiting()
	f.seconds = float64(iv.To-iv.From) / 1e9
	f.last, f.missed = measure.Counters{}, 0
	for _, b := range iv.Backlog {
		f.missed += b.Passed
	}
	f.p99 = append(f.p99, worst(iv, e2e, rtt, send))
	f.p99 = f.p99[max(0, len(f.p99)-mostBars):]
	for p := range measure.NumPhases {
		c := &iv.Counters[p]
		addCounters(&f.last, c)
		addCounters(&f.all, c)
		f.send[p].Merge(&iv.Kinds[send][p])
		f.e2e[p].Merge(&iv.Kinds[e2e][p])
		f.rtt[p].Merge(&iv.Kinds[rtt][p])
		f.late[p].Merge(&iv.Kinds[measure.SendLateness][p])
	}
	f.done += iv.Counters[measure.Measure].Confirmed + iv.Counters[measure.Measure].Failed
}

// worst is p99 of the first of these kinds that has samples; 0 if none has.
func worst(iv *measure.Interval, kinds ...measure.Kind) int64 {
	for _, k := range kinds {
		var c measure.Counts
		for p := range measure.NumPhases {
			c.Merge(&iv.Kinds[k][p])
		}
		if c.Total() > 0 {
			return c.Percentile(99)
		}
	}
	return 0
}

func addCounters(into, c *measure.Counters) {
	into.Scheduled += c.Scheduled
	into.Sent += c.Sent
	into.Dropped += c.Dropped
	into.Confirmed += c.Confirmed
	into.Failed += c.Failed
	into.Received += c.Received
}

// underWay is the number of messages that have not completed, as far as a reading shows.
func (f *liveFigures) underWay() uint64 {
	return f.waiting() + f.unconfirmed() + f.backlog
}

// waiting is the number of messages that are due but not sent.
func (f *liveFigures) waiting() uint64 { return excess(f.all.Scheduled, f.all.Sent+f.all.Dropped) }

// unconfirmed is the number of messages sent, but neither confirmed nor failed.
func (f *liveFigures) unconfirmed() uint64 { return excess(f.all.Sent, f.all.Confirmed+f.all.Failed) }

// excess is a - b, at least 0, since the counters of a reading are not read at one instant.
func excess(a, b uint64) uint64 { return a - min(a, b) }

// cleaned makes foreign text safe to show in one line. It drops unprintable characters.
func cleaned(s string) string {
	return strings.ReplaceAll(layout.Printable(strings.TrimRight(s, "\r\n")), string(unicode.ReplacementChar), "")
}
