package host

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// daemonLimit is the timeout for the time daemon.
const daemonLimit = 2 * time.Second

// A Daemon is what a host's time daemon, chrony, reports about its wall clock, and that clock's offset
// from the host's monotonic clock.
type Daemon struct {
	Source         string `json:"source,omitempty"` // what it follows; "": unknown
	Stratum        int    `json:"stratum,omitempty"`
	AtNS           int64  `json:"at_ns,omitempty"`    // reading of the host's monotonic clock
	AheadNS        int64  `json:"ahead_ns,omitempty"` // the wall clock's reading minus AtNS
	BoundNS        int64  `json:"bound_ns,omitempty"` // error of AheadNS if the wall clock's time were true time
	Unsynchronised bool   `json:"unsynchronised,omitempty"`
	Why            string `json:"why,omitempty"` // reason if nothing is known
}

// AskDaemon queries this host's time daemon, for at most two seconds. c is this host's monotonic
// clock.
func AskDaemon(ctx context.Context, c *pace.Clock) Daemon {
	ctx, cancel := context.WithTimeout(ctx, daemonLimit)
	defer cancel()
	t, err := Chrony(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return Daemon{Why: "chrony does not run here"}
	case err != nil:
		return Daemon{Unsynchronised: errors.Is(err, ErrUnsynchronised), Why: err.Error()}
	}
	d := Daemon{Source: t.Source, Stratum: t.Stratum, AtNS: c.Monotonic()}
	var read int64
	d.AheadNS, read = c.WallAhead()
	d.BoundNS = int64(t.Bound()) + read
	return d
}

// Known reports whether the daemon stated the accuracy of the wall clock.
func (d *Daemon) Known() bool {
	return d.Source != "" && d.BoundNS > 0 && d.BoundNS < longest && d.AheadNS > -longest && d.AheadNS < longest
}

// longest is the largest value accepted from a daemon, some 73 years, so that sums cannot overflow.
const longest = 1 << 61

// Apart compares the clock offset implied by the daemons of an agent's host and of this one with a
// measured offset, which is to be added to the agent's readings and is accurate to within bound. It
// returns by how much they differ beyond all bounds; 0 means that they agree. The result is unknown if
// either daemon reports nothing.
func (d *Daemon) Apart(own *Daemon, add, bound int64) (ns int64, known bool) {
	if !d.Known() || !own.Known() {
		return 0, false
	}
	off := d.AheadNS - own.AheadNS - add
	return max(0, max(off, -off)-d.BoundNS-own.BoundNS-min(bound, longest)), true
}
