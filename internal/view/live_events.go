package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
)

const (
	// repeatPause is the first pause in reporting a recurring event. It doubles each time, so that a long
	// run's repetitions stay a few lines.
	repeatPause = int64(10 * time.Second)
	// mostEventKinds bounds the distinct texts; further ones are grouped by kind alone.
	mostEventKinds = 64
	// longStop is the shortest garbage collection pause of weir that gets a line. All are in events.jsonl,
	// and the verdict considers all.
	longStop = time.Millisecond
)

// eventWords are the words for the engine's and the drivers' kinds of events.
var eventWords = map[string]string{
	"failed":       "the run ends at once",
	"gone":         "the system is gone",
	"cleanup":      "not cleaned up",
	"gc":           "weir's own garbage collector",
	"backlog-full": "the generator waits",
	"precedence":   "--fifo",
	"clock":        "the clock",
	"fault":        "receiving",
	"error":        "a message failed",
	"reconnect":    "connected again",
	"reopen":       "opened a new channel",
	"hiccup":       "the host stood still",
	"drain":        "drain",
	"injected":     "fault",
	"guarantee":    "the system",
	"server":       "the system",
	"pause":        "pause",
	"churn":        "a consumer closed",
}

// EventLine says an event in words; "" if it is not worth a line.
func EventLine(kind, text string) string {
	text = cleaned(text)
	if kind == "gc" {
		stops, short := collected(text)
		if short {
			return ""
		}
		text = stops
	}
	what := eventWords[kind]
	if what == "" {
		what = strings.ReplaceAll(cleaned(kind), "-", " ")
	}
	if text == "" {
		return what
	}
	return what + ": " + text
}

// repeatedEvents groups recurring events.
type repeatedEvents struct {
	from  int64 // the end of the warm-up, since the epoch
	order []string
	of    map[string]*repeatedEvent
}

type repeatedEvent struct {
	line string // last line, without its time
	more uint64 // not reported yet
	gap  int64
	next int64 // earliest time of the next report
}

// tell returns the line for an event, "" if it is only counted.
func (r *repeatedEvents) tell(at int64, kind, text string) string {
	line := EventLine(kind, text)
	if line == "" {
		return ""
	}
	key := kind + " " + numberless(line)
	if kind == "server" { // each server is a process of its own
		key = line
	}
	e := r.of[key]
	if e == nil && len(r.of) >= mostEventKinds {
		key = kind
		e = r.of[key]
	}
	if e == nil {
		if r.of == nil {
			r.of = map[string]*repeatedEvent{}
		}
		r.of[key] = &repeatedEvent{line: line, gap: repeatPause, next: at + repeatPause}
		r.order = append(r.order, key)
		return r.when(at) + line
	}
	e.line = line
	e.more++
	if at < e.next {
		return ""
	}
	s := fmt.Sprintf("%s%s (the last of %s since such a line)", r.when(at), line, quantity.Count(e.more))
	e.more = 0
	e.gap *= 2
	e.next = at + e.gap
	return s
}

// rest returns a line for each event with unreported occurrences.
func (r *repeatedEvents) rest() []string {
	var lines []string
	for _, key := range r.order {
		if e := r.of[key]; e.more > 0 {
			which := ""
			if e.more > 1 {
				which = ", the last"
			}
			lines = append(lines, fmt.Sprintf("%s more by the end of the run%s: %s", quantity.Count(e.more), which, e.line))
			e.more = 0
		}
	}
	return lines
}

// when is the time at the start of an event's line, empty before the epoch: since the end of the warm-up,
// negative during it, as in the report.
func (r *repeatedEvents) when(at int64) string {
	if at <= 0 {
		return ""
	}
	switch d := time.Duration(at - r.from); {
	case d <= -time.Minute:
		return "at -" + quantity.Span((-d).Round(time.Second)) + ": "
	case d < time.Minute:
		return fmt.Sprintf("at %.1f s: ", d.Seconds())
	default:
		return "at " + quantity.Span(d.Round(time.Second)) + ": "
	}
}

// collected describes a garbage collection, and reports whether its longest pause is too short to mention.
func collected(text string) (says string, short bool) {
	cycles, last, ok := strings.Cut(text, " cycles, longest stop ")
	agent := cycles[:strings.LastIndexByte(cycles, ' ')+1] // with several processes, names which: "producers: "
	d, err := time.ParseDuration(last)
	n, bad := strconv.ParseUint(cycles[len(agent):], 10, 64)
	if !ok || err != nil || bad != nil {
		return text, false
	}
	return fmt.Sprintf("%sstops of up to %s (%s)", agent, quantity.Time(int64(d)), quantity.Counted(n, "cycle", "cycles")), d < longStop
}

// numberless removes digits, to group texts that differ in nothing else.
func numberless(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}
