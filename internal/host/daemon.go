package host

import (
	"context"
	"errors"
	"os/exec"
	"time"

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

// AskDaemon asks the time daemon of this host, for two seconds at most. c is this host's
// monotonic clock.
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

// Known reports whether the daemon said how right the wall clock is.
func (d *Daemon) Known() bool {
	return d.Source != "" && d.BoundNS > 0 && d.BoundNS < longest && d.AheadNS > -longest && d.AheadNS < longest
}

// longest bounds what is taken of daemons, so that no sum is an overflow: some 73
// years.
const longest = 1 << 61

// Apart returns by how much what the daemons of an agent's host and of this one say differs
// from a measured offset, which is to be added to the agent's readings, to within bound: beyond
// all bounds; 0: they agree. It is not known where either daemon says nothing.
func (d *Daemon) Apart(own *Daemon, add, bound int64) (ns int64, known bool) {
	if !d.Known() || !own.Known() {
		return 0, false
	}
	off := d.AheadNS - own.AheadNS - add
	return max(0, max(off, -off)-d.BoundNS-own.BoundNS-min(bound, longest)), true
}
