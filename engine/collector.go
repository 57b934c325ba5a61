package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/measure"
)

// A collector reads the recorder once in every Config.Every.
type collector struct {
	run    *run
	at     int64  // of the last reading
	done   uint64 // messages completed until then
	iv     measure.Interval
	gc     *host.GCEvents
	second int64 // of the last GC check
}

func (c *collector) loop(ctx context.Context) {
	every := int64(c.run.cfg.Every)
	if every <= 0 {
		every = int64(time.Second)
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	due := every
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if now := c.run.now(); now >= due {
			c.read(now)
			due = now - now%every + every
		}
	}
}

// read emits what happened since the last reading.
func (c *collector) read(now int64) {
	r := c.run
	r.recorder.Next(now, &c.iv)
	for p := range c.iv.Counters {
		c.done += c.iv.Counters[p].Confirmed + c.iv.Counters[p].Failed
	}
	r.progress.Store(c.done)
	c.iv.Backlog = r.behind(c.iv.Backlog)
	if r.cfg.OnInterval != nil {
		r.cfg.OnInterval(&c.iv)
	}
	c.at = now
	second := now / int64(time.Second)
	if second == c.second {
		return
	}
	c.second = second
	c.collected(c.gc.Next())
}

// mostCollections is how many garbage collections per second are reported individually.
const mostCollections = 10

// collected reports the garbage collections since the last call: each cycle at its end, or a sum if
// there were many.
func (c *collector) collected(gc host.GC) {
	r := c.run
	if gc.Cycles == 0 {
		return
	}
	if gc.Cycles <= mostCollections && r.cfg.OnEvent != nil && !r.virtual() {
		if cycles := c.gc.Cycles(gc.Cycles); cycles != nil {
			now := r.now()
			for _, x := range cycles {
				r.cfg.OnEvent(Event{At: max(0, now-int64(x.Ago)), Kind: "gc", Text: fmt.Sprintf("1 cycles, longest stop %v", min(x.Stopped, time.Duration(gc.LongestNS)))})
			}
			return
		}
	}
	r.event("gc", fmt.Sprintf("%d cycles, longest stop %v", gc.Cycles, time.Duration(gc.LongestNS)))
}

// last emits the rest, after everything has stopped.
func (c *collector) last(now int64) {
	c.second = -1
	c.read(max(now, c.at+1))
}
