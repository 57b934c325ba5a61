package fleet

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/protocol"
)

// watchEvery is how often the agent with the system is asked about it.
const watchEvery = time.Second

// A starter is the agent with the system on its host, as the coordinator tracks it.
type starter struct {
	Starter
	heard  time.Time
	seen   int   // number of events seen
	until  int64 // samples received up to here, by the agent's time
	shift  int64 // agent's instants to the run's
	shifts bool  // shift is known
	end    int64 // of the latest sample, in the run; math.MinInt64 before the first
	silent bool
	gone   bool // it reported that the system is gone
}

func newStarter(a protocol.About, places map[string]int) *starter {
	_, part := places[a.Name]
	return &starter{Starter: Starter{About: a, Part: part}, heard: time.Now(), end: math.MinInt64}
}

// watch monitors the agent with the system until ctx ends, and reports its servers' events to the run.
func (d *drive) watch(ctx context.Context) {
	if d.starter == nil {
		return
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		d.glance(ctx)
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		if !d.starter.silent {
			d.glance(context.WithoutCancel(ctx)) // events since the last glance
		}
		return
	}
}

// glance asks the agent once.
func (d *drive) glance(ctx context.Context) {
	x := d.starter
	w := protocol.Wish{Run: d.run.Config.RunID, Seen: x.seen, Sampled: x.until}
	if !x.Part {
		w.KeepNS = int64(d.longest())
	}
	h, err := d.f.wish(ctx, x.Name, w)
	if err != nil {
		if ctx.Err() == nil && !x.Part && !x.silent && time.Since(x.heard) > coordinator.SilentLimit { // the silence of an agent with a part is detected elsewhere
			x.silent = true
			x.Absences = append(x.Absences, coordinator.Absence{From: d.c.Now() - int64(time.Since(x.heard))})
			d.tellOf(x.Name, "agent-silent", fmt.Sprintf("silent for %v, and the system is there", coordinator.SilentLimit), 0)
		}
		return
	}
	if x.heard = time.Now(); x.silent {
		x.silent = false
		away := &x.Absences[len(x.Absences)-1]
		away.To = d.c.Now()
		d.tellOf(x.Name, "agent-back", fmt.Sprintf("answers again after %v of silence", time.Duration(away.To-away.From).Round(100*time.Millisecond)), 0)
	}
	if h.Host != nil {
		x.Facts = *h.Host
	}
	for _, e := range h.Since {
		x.seen++
		d.tellOf(x.Name, "server", e.Text, time.Duration(e.AgoNS))
	}
	d.sampled(x, h)
	if h.Error != "" && !x.gone {
		x.gone = true
		d.tellOf(x.Name, "server", protocol.Shown(h.Error), 0)
	}
}

// sampled forwards samples of the agent's host. Answers take time, so the fastest one gives the best
// estimate of the shift between the agent's instants and the run's.
func (d *drive) sampled(x *starter, h *protocol.Hosted) {
	if n := len(h.Samples); n > 0 {
		x.until = h.Samples[n-1].ToNS
	}
	if d.run.OnSample == nil || !d.c.Begun() {
		return
	}
	if shift := d.c.Now() - h.NowNS; h.NowNS != 0 && (!x.shifts || shift < x.shift) {
		x.shift, x.shifts = shift, true
	}
	for _, s := range h.Samples {
		s = s.Shift(x.shift)
		if s.FromNS = max(s.FromNS, x.end); s.ToNS > s.FromNS {
			x.end = s.ToNS
			d.run.OnSample(s)
		}
	}
}

// longest is how long the run may continue without this coordinator.
func (d *drive) longest() time.Duration {
	if !d.c.Begun() {
		return 0
	}
	length := d.run.Length
	if length == 0 {
		length = protocol.BringLimit
	}
	return max(0, length-time.Duration(d.c.Now())) + d.run.Config.Drain + protocol.LostLimit
}

// tellOf reports an event of an agent, or on its host, that happened ago.
func (d *drive) tellOf(agent, kind, text string, ago time.Duration) {
	d.c.Tell(engine.Event{At: max(0, d.c.Now()-int64(ago)), Kind: kind, Text: agent + ": " + text})
}
