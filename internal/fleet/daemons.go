package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/host"
)

// A Checked is an agent's measured offset held against what the time daemons of
// its host and of the coordinator's say of their wall clocks, at the beginning of
// the run and at its end.
type Checked struct {
	Agrees  bool
	BoundNS int64 // of what the daemons say, the worse
	ApartNS int64 // by how much more than all bounds together the two differ, at most; 0: they agree
}

// daemonsAsked is how often daemons are asked in a run: when it begins, and when it
// has ended.
const daemonsAsked = 2

// checked holds what was measured of an agent's clock against the daemons; nil where
// one of them says nothing, or there is nothing to measure.
func (x *Watch) checked(theirs, own []host.Daemon) *Checked {
	if x.Same || len(x.Course.Lines) == 0 {
		return nil
	}
	var c *Checked
	for i := range min(len(theirs), len(own), daemonsAsked) {
		add, bound := x.Course.At(theirs[i].AtNS)
		apart, known := theirs[i].Apart(&own[i], add, bound)
		if !known {
			continue
		}
		if c == nil {
			c = &Checked{Agrees: true}
		}
		c.BoundNS = max(c.BoundNS, theirs[i].BoundNS+own[i].BoundNS)
		c.ApartNS = max(c.ApartNS, apart)
		c.Agrees = c.ApartNS == 0
	}
	return c
}

// daemon asks this host's time daemon, unless it said nothing before.
func (d *drive) daemon(ctx context.Context) {
	d.mu.Lock()
	ask := len(d.own) == 0 || d.own[len(d.own)-1].Known()
	d.mu.Unlock()
	if !ask {
		return
	}
	own := host.AskDaemon(ctx, d.f.clock)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own = append(d.own, own)
}

// check holds an agent's clock against the time daemons. The lock is held.
func (d *drive) check(i int, w *Watch, theirs []host.Daemon) {
	w.Chrony = w.checked(theirs, d.own)
	if w.Chrony == nil || w.Chrony.Agrees {
		return
	}
	d.c.Event(i, engine.Event{At: d.c.Now(), Kind: "clock", Text: fmt.Sprintf(
		"its measured offset differs from chrony's view of both wall clocks, by %v more than both bounds allow", time.Duration(w.Chrony.ApartNS))})
}
