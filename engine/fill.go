package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/quantity"
)

// Mode Backlog has two halves. In the first, consumers are opened, so that their subscriptions
// exist, but do not run, while producers send the plan. In the second, consumers run and nothing
// else is sent; this is the drain of every run, and here its length is measured.

// fullLimit is how long, past the plan's end, nothing may be confirmed while messages are under way
// before the system counts as full: it then accepts no more until somebody receives.
const fullLimit = 5 * time.Second

// Drained is what consumers received, of this run or not, in a window of their own: in mode
// Backlog, in mode Consume, and in a closed loop that sends a count.
type Drained struct {
	Began           int64 // when the consumers started, ns since the epoch; 0: they never did
	From, To        int64 // of the first and the last delivery, 0 without any; in a closed loop From is the start of the measured window
	Messages, Bytes uint64
	Lay             uint64 // messages confirmed and not delivered when the consumers started, per subscription
	Full            bool   // messages still waited to be sent then: the system accepts no more until somebody receives

	// The part of Messages and Bytes that the client call of the first delivery yielded: it arrived
	// before the time from first to last began. 0 in a closed loop.
	FirstMessages, FirstBytes uint64
	Opening                   uint64 // the part of Messages that the first client call of each consumer yielded
}

// empty ends the first half of a run of mode Backlog and executes the second, as drain does. A stop
// during the first half drains the backlog so far; a stop during the second half ends it.
func (r *run) empty(ctx context.Context, stop <-chan struct{}) {
	r.fill(ctx)
	draining, cancel := context.WithCancel(ctx)
	defer cancel()
	if !latch.Closed(stop) {
		defer cancelOn(draining, stop, cancel)()
	}
	ready, over := context.WithTimeout(draining, setupLimit)
	defer over()
	agreed, err := r.peers.Meet(ready, Filled, r.hands())
	if err != nil {
		if draining.Err() == nil {
			r.lose(err)
		}
		return
	}
	r.lay, r.emptying = agreed.Lay, r.now()
	r.event("backlog", fmt.Sprintf("the system holds %s messages%s%s; the consumers start", quantity.Count(r.lay), r.each(), r.warmed()))
	r.event("phase", "drain")
	for sub := range r.receivers {
		for _, k := range r.receivers[sub] {
			r.consume(k, sub, k)
		}
	}
	if err := r.awaitReady(ready, 0, len(r.receivers)); err != nil && draining.Err() == nil {
		r.lose(err)
		return
	}
	r.drain(draining)
}

// each returns a suffix saying that a count holds for each of several subscriptions.
func (r *run) each() string {
	if n := len(r.receivers); n > 1 {
		return fmt.Sprintf(" for each of %d subscriptions", n)
	}
	return ""
}

// fill waits until everything handed over has completed, the system accepts no more, or the drain's
// limit is reached.
func (r *run) fill(ctx context.Context) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	began := r.now()
	full := stall{limit: int64(fullLimit), changed: began}
	var st Status
	for {
		r.status(&st, false)
		r.peers.Orders(&st)
		now := r.now()
		open := r.outstanding()
		switch {
		case open == 0, r.failed.Load() != nil, r.gone.Load() != nil:
			return
		case full.since(now, r.progress.Load()), now-began >= int64(r.cfg.Drain):
			r.full = true
			r.event("backlog", "the system is full: messages still wait to be sent or confirmed")
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// account describes how long the second half took and how fast it was.
func (r *run) account(d *Drained) string {
	if d.Messages == 0 {
		return "nothing was received"
	}
	text := fmt.Sprintf("%s messages received%s%s, the first %v after the consumers started, the last %v after the first",
		quantity.Count(d.Messages), r.together(), r.warmed(), round(d.From-d.Began), round(d.To-d.From))
	if d.FirstMessages > 1 {
		text += fmt.Sprintf(", %s of them with the first", quantity.Count(d.FirstMessages))
	}
	if messages, _, known := d.PerSecond(); known && messages > 0 {
		text += ": " + quantity.Count(uint64(math.Round(messages))) + "/s"
	}
	if left := r.behind(nil).Waiting(); left > 0 && r.cfg.Worker == (Worker{}) {
		text += fmt.Sprintf("; %s confirmed messages did not come%s", quantity.Count(left), r.each())
	}
	return text
}

// together returns a suffix saying that a count is a sum over several subscriptions.
func (r *run) together() string {
	if n := len(r.receivers); n > 1 {
		return fmt.Sprintf(" by %d subscriptions together", n)
	}
	return ""
}

// warmed returns a suffix saying that a count is of the whole run where the table's is not.
func (r *run) warmed() string {
	if r.cfg.WarmUp > 0 || r.cfg.Plan.WarmUp > 0 {
		return ", those of the warm-up included"
	}
	return ""
}

// round keeps about three digits.
func round(ns int64) time.Duration {
	d := time.Duration(ns)
	for unit := time.Microsecond; ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// PerSecond returns the rates of messages and bytes over the time from the first delivery to the
// last, excluding what came with the first. They are unknown if that time is zero or nothing came
// in it.
func (d *Drained) PerSecond() (messages, bytes float64, known bool) {
	if d.Messages == 0 {
		return 0, 0, true
	}
	if d.To <= d.From || d.Messages <= d.FirstMessages {
		return 0, 0, false
	}
	seconds := float64(d.To-d.From) / 1e9
	return float64(d.Messages-d.FirstMessages) / seconds, float64(d.Bytes-d.FirstBytes) / seconds, true
}

// apart reports whether consumers have a window of their own.
func (r *run) apart() bool {
	return r.cfg.Mode == Backlog || r.cfg.Mode == Consume || r.closed() && r.cfg.Messages > 0 && r.cfg.Mode != Produce
}

// drained sums up what the consumers received.
func (r *run) drained() *Drained {
	d := &Drained{Lay: r.lay, Full: r.full, Began: r.emptying}
	if first := r.firstDelivery(); first != never {
		d.From, d.To = first, r.lastDelivery()
	}
	sending := r.cfg.Mode != Backlog && r.cfg.Mode != Consume
	for _, ks := range r.receivers {
		for _, k := range ks {
			d.Messages += k.received.Load()
			d.Bytes += k.bytes.Load()
			d.Opening += k.atFirst.Load()
			if !sending && k.first.Load() == d.From && d.FirstMessages == 0 {
				d.FirstMessages, d.FirstBytes = k.atFirst.Load(), k.bytesAtFirst.Load()
			}
		}
	}
	if sending { // consumers receive while producers send: their window begins with the sender's
		d.From, d.To = r.from, max(d.To, r.from)
	}
	return d
}
