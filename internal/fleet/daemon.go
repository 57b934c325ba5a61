package fleet

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
)

// daemonLimit is how long the time daemon is waited for.
const daemonLimit = 2 * time.Second

// A Daemon is what a host's time daemon, chrony, says of its wall clock, and where
// that stood against the host's monotonic clock.
type Daemon struct {
	Source         string `json:"source,omitempty"` // what it follows; "": nothing is known
	Stratum        int    `json:"stratum,omitempty"`
	AtNS           int64  `json:"at_ns,omitempty"`    // of the host's monotonic clock
	AheadNS        int64  `json:"ahead_ns,omitempty"` // the wall clock's reading less that
	BoundNS        int64  `json:"bound_ns,omitempty"` // of AheadNS, were the wall clock's time true
	Unsynchronised bool   `json:"unsynchronised,omitempty"`
	Why            string `json:"why,omitempty"` // nothing is known because
}

// AskDaemon asks the time daemon of this host, for two seconds at most, whose
// monotonic clock c is.
func AskDaemon(ctx context.Context, c *pace.Clock) Daemon {
	ctx, cancel := context.WithTimeout(ctx, daemonLimit)
	defer cancel()
	t, err := host.Chrony(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return Daemon{Why: "chrony does not run here"}
	case err != nil:
		return Daemon{Unsynchronised: errors.Is(err, offset.ErrUnsynchronised), Why: plain(err.Error())}
	}
	d := Daemon{Source: plain(t.Source), Stratum: t.Stratum, AtNS: reading(c)}
	var read int64
	d.AheadNS, read = ahead(c)
	d.BoundNS = int64(t.Bound()) + read
	return d
}

// Known reports whether the daemon said how right the wall clock is.
func (d *Daemon) Known() bool {
	return d.Source != "" && d.BoundNS > 0 && d.BoundNS < longest && d.AheadNS > -longest && d.AheadNS < longest
}

// longest bounds what is taken of daemons, so that no sum is an overflow: some 73
// years.
const longest = 1 << 61

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
func (x *Watch) checked(theirs, own []Daemon) *Checked {
	if x.Same || len(x.Course.Lines) == 0 {
		return nil
	}
	var c *Checked
	for i := range min(len(theirs), len(own), daemonsAsked) {
		add, bound := x.Course.At(theirs[i].AtNS)
		agrees, known := theirs[i].Agrees(&own[i], add, bound)
		if !known {
			continue
		}
		if c == nil {
			c = &Checked{Agrees: true}
		}
		both := theirs[i].BoundNS + own[i].BoundNS
		c.BoundNS = max(c.BoundNS, both)
		if !agrees {
			c.Agrees = false
			off := theirs[i].AheadNS - own[i].AheadNS - add
			c.ApartNS = max(c.ApartNS, max(off, -off)-both-bound)
		}
	}
	return c
}

// Agrees reports whether what the daemons of an agent's host and of this one say
// can be true together with a measured offset, which is to be added to the agent's
// readings, to within bound. It says nothing where either daemon does not.
func (d *Daemon) Agrees(own *Daemon, add, bound int64) (agrees, known bool) {
	if !d.Known() || !own.Known() {
		return false, false
	}
	expected := offset.Expected(offset.Wall{Ahead: d.AheadNS, Bound: d.BoundNS}, offset.Wall{Ahead: own.AheadNS, Bound: own.BoundNS})
	return offset.Overlaps(expected, offset.Around(add, bound)), true
}

// plain is a text that may be shown on a terminal, shortened.
func plain(s string) string {
	s = shown(s)
	if r := []rune(s); len(r) > wordSize/4 {
		s = string(r[:wordSize/4-1]) + "…"
	}
	return s
}

// shown is a text that may be shown on a terminal.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// daemon asks this host's time daemon, unless it said nothing before.
func (d *drive) daemon(ctx context.Context) {
	d.mu.Lock()
	ask := len(d.own) == 0 || d.own[len(d.own)-1].Known()
	d.mu.Unlock()
	if !ask {
		return
	}
	own := AskDaemon(ctx, d.f.clock)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own = append(d.own, own)
}

// check holds an agent's clock against the time daemons. The lock is held.
func (d *drive) check(i int, w *Watch, theirs []Daemon) {
	w.Chrony = w.checked(theirs, d.own)
	if w.Chrony == nil || w.Chrony.Agrees {
		return
	}
	d.c.Event(i, engine.Event{At: d.c.Now(), Kind: "clock", Text: fmt.Sprintf(
		"its measured offset differs from chrony's view of both wall clocks, by %v more than both bounds allow", time.Duration(w.Chrony.ApartNS))})
}
