package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/engine"
)

// watchEvery is how often the agent on whose host the system is is asked about it.
const watchEvery = time.Second

// A starter is the agent on whose host the system is, as its coordinator watches it.
type starter struct {
	Starter
	heard  time.Time
	seen   int // happenings
	silent bool
	gone   bool // it said that there is no system any more
}

func newStarter(a About, places map[string]int) *starter {
	_, part := places[a.Name]
	return &starter{Starter: Starter{About: a, Part: part}, heard: time.Now()}
}

// watch asks the agent on whose host the system is how that is, until ctx ends, and
// tells the run of what became of its servers.
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
			d.glance(context.WithoutCancel(ctx)) // what happened since
		}
		return
	}
}

// glance asks once.
func (d *drive) glance(ctx context.Context) {
	x := d.starter
	w := wish{Run: d.run.Config.RunID, Seen: x.seen}
	if !x.Part {
		w.KeepNS = int64(d.longest())
	}
	h, err := d.f.wish(ctx, x.Name, w)
	if err != nil {
		if ctx.Err() == nil && !x.Part && !x.silent && time.Since(x.heard) > silentLimit { // that one which does a part is silent is seen there
			x.silent = true
			x.Absences = append(x.Absences, Absence{From: d.c.now() - int64(time.Since(x.heard))})
			d.c.tellOf(x.Name, "agent-silent", fmt.Sprintf("not heard of for %v, and the system is there", silentLimit), 0)
		}
		return
	}
	if x.heard = time.Now(); x.silent {
		x.silent = false
		away := &x.Absences[len(x.Absences)-1]
		away.To = d.c.now()
		d.c.tellOf(x.Name, "agent-back", fmt.Sprintf("heard again after %v", time.Duration(away.To-away.From).Round(100*time.Millisecond)), 0)
	}
	if h.Host != nil {
		x.Facts = *h.Host
	}
	for _, e := range h.Since {
		x.seen++
		d.c.tellOf(x.Name, "server", e.Text, time.Duration(e.AgoNS))
	}
	if h.Error != "" && !x.gone {
		x.gone = true
		d.c.tellOf(x.Name, "server", shown(h.Error), 0)
	}
}

// longest is for how long from now on the run may go on without this coordinator.
func (d *drive) longest() time.Duration {
	if !d.c.begun() {
		return 0
	}
	length := d.run.Length
	if length == 0 {
		length = bringLimit
	}
	return max(0, length-time.Duration(d.c.now())) + d.run.Config.Drain + lostLimit
}

// tellOf tells of something that happened to an agent, or on its host, so long ago.
func (c *coordinator) tellOf(agent, kind, text string, ago time.Duration) {
	c.tell(engine.Event{At: max(0, c.now()-int64(ago)), Kind: kind, Text: agent + ": " + text})
}

// tell tells of something that happened to no member.
func (c *coordinator) tell(ev engine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.OnEvent != nil {
		c.cfg.OnEvent(ev)
	}
}
