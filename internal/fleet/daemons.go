package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/host"
)

// A Checked compares an agent's measured clock offset with what the time daemons of both hosts report, at
// the start and the end of the run.
type Checked struct {
	By      string // name of the daemons
	Agrees  bool
	BoundNS int64 // the daemons' error bound, the worse of the two
	ApartNS int64 // largest disagreement beyond all bounds; 0: they agree
}

// daemonsAsked is how often a run queries daemons: at its start and its end.
const daemonsAsked = 2

// checked compares an agent's measured clock with the daemons; nil if a daemon reports nothing, or nothing
// was measured.
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
			c = &Checked{By: theirs[i].Name, Agrees: true}
		}
		c.BoundNS = max(c.BoundNS, theirs[i].BoundNS+own[i].BoundNS)
		c.ApartNS = max(c.ApartNS, apart)
		c.Agrees = c.ApartNS == 0
	}
	return c
}

// daemon queries this host's time daemon, unless it did not answer before.
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

// check compares an agent's clock with the time daemons. The lock must be held.
func (d *drive) check(i int, w *Watch, theirs []host.Daemon) {
	w.Daemon = w.checked(theirs, d.own)
	if w.Daemon == nil || w.Daemon.Agrees {
		return
	}
	d.c.Tell(engine.Event{At: d.c.Now(), Kind: "clock", Text: fmt.Sprintf(
		"%s: its measured offset differs from %s's view of both wall clocks, by %v more than both bounds allow", d.abouts[i].Name, w.Daemon.By, time.Duration(w.Daemon.ApartNS))})
}
