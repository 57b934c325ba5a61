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

// shortestInterval is the least that an interval lasts to be shown: the rates of the
// few milliseconds after the end of the drain say nothing.
const shortestInterval = 100 * time.Millisecond

// A Terminal is where a Live is shown.
type Terminal struct {
	Out     io.Writer                // nil: nothing is shown
	Rewrite bool                     // it takes control sequences; else a line of its own for each second
	Colour  bool                     // of the block
	Size    func() (cols, lines int) // asked at each refresh; 0 where it is not known; nil: never known
}

// A LivePlan is what is known of a run beforehand. Times count from the run's epoch.
type LivePlan struct {
	Which    string        // which run of how many, "run 2 of 6, NAME"; "" for a single one
	WarmUp   time.Duration // end of the warm-up
	End      time.Duration // end of the measured window; 0: not known
	Drain    time.Duration // the longest drain
	Messages uint64        // to measure, where End is not known; 0: not known either
	Closed   bool          // closed loop: nothing is offered
	Sends    bool          // there are producers
	Receives bool          // there are consumers
	Backlog  bool          // consumers begin when all has been sent
}

// A Live shows one run. Its methods may be called from any goroutine. Errors in
// writing are ignored: a run goes on without a viewer.
type Live struct {
	mu   sync.Mutex
	to   rewriter
	plan LivePlan

	doing   string        // in words, before the first message and after the last; "" while the phase says it
	since   time.Time     // of doing
	quiet   chan struct{} // ends what shows how long; nil: nothing does
	phase   string        // "warmup", "measure", "drain"
	drained int64         // when the drain began
	ended   bool
	seen    *liveFigures // nil: nothing to show yet
	said    repeatedEvents
	part    []byte // of a line that Write was given the beginning of
}

// liveFigures are what the block shows.
type liveFigures struct {
	at             int64            // the instant of the reading, ns
	seconds        float64          // length of the last interval
	last, all      measure.Counters // of the last interval, and since the beginning
	backlog        uint64
	done           uint64 // messages of the window that came to an end
	send, e2e, rtt [measure.NumPhases]measure.Counts
	late           [measure.NumPhases]measure.Counts
}

// NewLive returns a view of a run that has not begun.
func NewLive(t Terminal, p LivePlan) *Live {
	return &Live{to: rewriter{out: t.Out, rewrite: t.Rewrite, colour: t.Colour, size: t.Size}, plan: p, said: repeatedEvents{from: int64(p.WarmUp)}}
}

func (v *Live) silent() bool { return v.to.out == nil }

// How often a view shows anew how long something takes: in the block, and as a line.
const (
	liveTick   = time.Second
	ticksALine = 10 // ticks
)

// Doing says what weir is about before the first message, or after the last, "starting
// jetstream". It stands in the block, with how long it takes, until something else does.
// Where there are lines instead, one is written every 10 s.
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

// count shows how long something takes, until quiet is closed.
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

// did ends what Doing said.
func (v *Live) did() {
	v.doing = ""
	if v.quiet != nil {
		close(v.quiet)
		v.quiet = nil
	}
}

// Note says a line that stays.
func (v *Live) Note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw(cleaned(fmt.Sprintf(format, args...)))
}

// Write takes lines from elsewhere, such as a log's, which stay above the block.
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

// Event tells of something that happened at an instant of the run; the kinds are
// the engine's. Of what happens again and again the first is told, and then
// less and less often how many there were.
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
	if line := v.said.tell(at, kind, text); line != "" {
		v.draw(line)
	}
}

// Interval shows what happened since the last one.
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
	if v.to.rewrite {
		v.draw()
	} else {
		v.to.lines(v.plain())
	}
}

// Done takes the block away, after a last line for each thing that happened more
// often than was told. What is written later stays where it is written.
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

// draw writes lines that stay and, on a terminal, the block anew.
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

// add counts an interval. A closed loop has no response, so its service times
// are shown.
func (f *liveFigures) add(iv *measure.Interval, closed bool) {
	send, e2e, rtt := measure.SendResponse, measure.E2EResponse, measure.RTTResponse
	if closed {
		send, e2e, rtt = measure.SendService, measure.E2EService, measure.RTTService
	}
	f.at, f.backlog = iv.To, iv.Backlog.Waiting()
	f.seconds = float64(iv.To-iv.From) / 1e9
	f.last = measure.Counters{}
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

func addCounters(into, c *measure.Counters) {
	into.Scheduled += c.Scheduled
	into.Sent += c.Sent
	into.Dropped += c.Dropped
	into.Confirmed += c.Confirmed
	into.Failed += c.Failed
	into.Received += c.Received
}

// underWay is how many messages have not come to their end, as far as a reading
// can tell.
func (f *liveFigures) underWay() uint64 {
	return f.waiting() + f.unconfirmed() + f.backlog
}

// waiting is how many messages are due and not sent.
func (f *liveFigures) waiting() uint64 { return excess(f.all.Scheduled, f.all.Sent+f.all.Dropped) }

// unconfirmed is how many are sent and neither confirmed nor failed.
func (f *liveFigures) unconfirmed() uint64 { return excess(f.all.Sent, f.all.Confirmed+f.all.Failed) }

// excess is by how much a exceeds b; the counters of a reading are not all of one
// instant.
func excess(a, b uint64) uint64 { return a - min(a, b) }

// cleaned makes a text of others safe to show, in one line. What cannot be shown is left out.
func cleaned(s string) string {
	return strings.ReplaceAll(layout.Printable(strings.TrimRight(s, "\r\n")), string(unicode.ReplacementChar), "")
}
