package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/measure"
)

// shortest is the least that an interval lasts to be shown: the rates of the
// few milliseconds after the end of the drain say nothing.
const shortest = 100 * time.Millisecond

// A progress tells how a run goes, once for each interval: on a terminal in one
// line that is rewritten, else in a line of its own. Methods may be called from
// any goroutine.
type progress struct {
	mu      sync.Mutex
	w       io.Writer // nil: silent
	rewrite bool
	width   int
	shown   bool // a line that may be rewritten is on the screen

	warmUp, end int64 // of the window; end 0: not known
	closed      bool
	consuming   bool
	send, e2e   measure.Counts // so far, of the phase that runs
	phase       string
}

// note writes a line of its own.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if p.w != nil {
		_, _ = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// clear removes the line that is rewritten.
func (p *progress) clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// interval tells of iv, whose phase is given.
func (p *progress) interval(iv *measure.Interval, phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || iv.To-iv.From < int64(shortest) {
		return
	}
	if phase == "measure" && p.phase == "warmup" { // the window's figures are its own
		p.send.Reset()
		p.e2e.Reset()
	}
	p.phase = phase
	send, e2e := headline(iv, p.closed)
	p.send.Merge(send)
	p.e2e.Merge(e2e)
	line := p.line(iv)
	if !p.rewrite {
		_, _ = fmt.Fprintln(p.w, line)
		return
	}
	if p.width > 1 && utf8.RuneCountInString(line) >= p.width {
		line = string([]rune(line)[:p.width-1])
	}
	p.clear()
	_, _ = fmt.Fprint(p.w, line)
	p.shown = true
}

func (p *progress) line(iv *measure.Interval) string {
	seconds := float64(iv.To-iv.From) / 1e9
	var c measure.Counters
	for _, x := range iv.Counters {
		c.Scheduled += x.Scheduled
		c.Sent += x.Sent
		c.Confirmed += x.Confirmed
		c.Received += x.Received
	}
	rate := func(n uint64) string { return report.Rate(float64(n) / seconds) }
	parts := []string{fmt.Sprintf("%-7s", p.phase)}
	if left := time.Duration(p.end - iv.To).Round(time.Second); left > 0 && p.phase != "drain" {
		parts = append(parts, report.Span(left)+" left")
	}
	if !p.consuming {
		if p.closed {
			parts = append(parts, "sent "+rate(c.Sent))
		} else {
			parts = append(parts, "offered "+rate(c.Scheduled))
		}
		parts = append(parts, "confirmed "+rate(c.Confirmed))
	}
	parts = append(parts, "received "+rate(c.Received))
	if s := points(&p.send); s != "" {
		parts = append(parts, "send so far "+s)
	}
	if s := points(&p.e2e); s != "" {
		parts = append(parts, "e2e so far "+s)
	}
	if !p.consuming {
		parts = append(parts, "backlog "+report.Count(iv.Backlog))
	}
	return strings.Join(parts, "  ")
}

// points are the percentiles so far, for eyes only.
func points(c *measure.Counts) string {
	n := c.Total()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("p50 %s p99 %s max %s", report.Time(c.At(measure.Rank(50, n))), report.Time(c.At(measure.Rank(99, n))), report.Time(c.Max()))
}

// headline returns the distributions that an interval is shown by, over both
// phases: response, in a closed loop service.
func headline(iv *measure.Interval, closed bool) (send, e2e *measure.Counts) {
	k, l := measure.SendResponse, measure.E2EResponse
	if closed {
		k, l = measure.SendService, measure.E2EService
	}
	send, e2e = new(measure.Counts), new(measure.Counts)
	for p := range measure.NumPhases {
		send.Merge(&iv.Kinds[k][p])
		e2e.Merge(&iv.Kinds[l][p])
	}
	return send, e2e
}
