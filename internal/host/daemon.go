package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// daemonLimit is the timeout for the time daemons.
const daemonLimit = 2 * time.Second

// The names of time daemons.
const (
	nameChrony = "chrony"
	namePTP    = "ptp4l"
)

// A Daemon is what a time daemon reports about the host's wall clock, and that clock's offset from the host's
// monotonic clock.
type Daemon struct {
	Name           string `json:"name,omitempty"`      // chrony or ptp4l; "": none runs
	Source         string `json:"source,omitempty"`    // the clock that it follows; "": unknown
	Steers         bool   `json:"steers,omitempty"`    // it corrects the wall clock; false: it measures it
	Master         bool   `json:"master,omitempty"`    // the wall clock is the source that others follow
	OffsetNS       int64  `json:"offset_ns,omitempty"` // by how much the wall clock is ahead of its source
	AtNS           int64  `json:"at_ns,omitempty"`     // reading of the host's monotonic clock
	AheadNS        int64  `json:"ahead_ns,omitempty"`  // the wall clock's reading minus AtNS
	BoundNS        int64  `json:"bound_ns,omitempty"`  // error of AheadNS if the wall clock's time were the source's
	Unsynchronised bool   `json:"unsynchronised,omitempty"`
	Why            string `json:"why,omitempty"` // reason if nothing is known
}

// AskDaemon queries this host's time daemons, for at most two seconds, and returns the one that speaks for the
// wall clock. c is this host's monotonic clock.
func AskDaemon(ctx context.Context, c *pace.Clock) Daemon { return AskDaemons(ctx, c)[0] }

// AskDaemons is AskDaemon for all daemons that run here, the one that speaks for the wall clock first. That is
// chrony where it is synchronised, and ptp4l otherwise: beside chrony, ptp4l only measures, unless both set the
// clock, which is an error.
func AskDaemons(ctx context.Context, c *pace.Clock) []Daemon {
	ctx, cancel := context.WithTimeout(ctx, daemonLimit)
	defer cancel()
	var all [2]Daemon
	var asking sync.WaitGroup
	asking.Go(func() {
		t, err := Chrony(ctx)
		all[0] = daemon(nameChrony, c, err, t.Source, true, -t.Offset, t.Bound())
	})
	asking.Go(func() {
		s, err := PTP(ctx)
		all[1] = daemon(namePTP, c, err, s.Parent, s.Steers, s.Offset, s.Bound())
		all[1].Master = s.Master
	})
	asking.Wait()
	there := slices.DeleteFunc(all[:], func(d Daemon) bool { return d.Name == "" })
	slices.SortStableFunc(there, func(a, b Daemon) int {
		switch {
		case a.Known() == b.Known():
			return 0
		case a.Known():
			return -1
		}
		return 1
	})
	if len(there) == 0 {
		return []Daemon{{Why: "neither chrony nor ptp4l runs here"}}
	}
	return there
}

// daemon is what a daemon said, unless err says why it said nothing.
func daemon(name string, c *pace.Clock, err error, source string, steers bool, ahead, bound time.Duration) Daemon {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, ErrSilent):
		return Daemon{}
	case err != nil:
		return Daemon{Name: name, Unsynchronised: errors.Is(err, ErrUnsynchronised), Why: err.Error()}
	}
	d := Daemon{Name: name, Source: source, Steers: steers, OffsetNS: int64(ahead), AtNS: c.Monotonic()}
	var read int64
	d.AheadNS, read = c.WallAhead()
	d.BoundNS = int64(bound) + read
	return d
}

// Known reports whether the daemon stated the accuracy of the wall clock.
func (d *Daemon) Known() bool {
	return d.Source != "" && d.BoundNS > 0 && d.BoundNS < longest && d.AheadNS > -longest && d.AheadNS < longest
}

// String describes the daemon's view for people, such as "chrony sets it by 10.0.0.1, ± 1.2ms".
func (d Daemon) String() string {
	switch {
	case !d.Known() && d.Name == "":
		return d.Why
	case !d.Known():
		return d.Name + ": " + d.Why
	}
	does := "measures it against"
	switch {
	case d.Steers:
		does = "sets it by"
	case d.Master:
		does = "takes it as the master's,"
	}
	return fmt.Sprintf("%s %s %s, ± %v", d.Name, does, d.Source, time.Duration(d.BoundNS).Round(100*time.Nanosecond))
}

// DaemonCommands are those that show what a daemon follows.
func DaemonCommands(name string) []string {
	if name == namePTP {
		return []string{"sudo pmc -u -b 0 'GET CURRENT_DATA_SET' 'GET PARENT_DATA_SET'"}
	}
	return []string{"chronyc tracking", "chronyc sources"}
}

// longest is the largest value accepted from a daemon, some 73 years, so that sums cannot overflow.
const longest = 1 << 61

// Apart compares the clock offset implied by the daemons of an agent's host and of this one with a
// measured offset, which is to be added to the agent's readings and is accurate to within bound. It
// returns by how much they differ beyond all bounds; 0 means that they agree. The result is unknown if
// either daemon reports nothing, or if they do not follow the same time: chrony's is true time, that of
// ptp4l its master's.
func (d *Daemon) Apart(own *Daemon, add, bound int64) (ns int64, known bool) {
	if !d.Known() || !own.Known() || d.Name != own.Name || d.Name == namePTP && d.Source != own.Source {
		return 0, false
	}
	off := d.AheadNS - own.AheadNS - add
	return max(0, max(off, -off)-d.BoundNS-own.BoundNS-min(bound, longest)), true
}

// daemonSays runs a program that asks a daemon, and returns its output. The error has the output, if any.
func daemonSays(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second // for children that inherited its output
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if said := strings.Join(strings.Fields(out.String()), " "); said != "" {
		err = fmt.Errorf("%w: %.200s", err, said)
	}
	return "", err
}
