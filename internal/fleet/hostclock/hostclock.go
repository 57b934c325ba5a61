// Package hostclock reads the clocks of this host as its processes tell them to processes
// of other hosts: the monotonic clock, the wall clock, and what the time daemon says.
package hostclock

import (
	"os"

	"github.com/weirmq/weir/internal/pace"
)

// ID names the monotonic clock of this process: two that have the same read
// the same one. "" where the host does not tell.
func ID() string {
	boot := pace.BootID()
	if boot == "" {
		return ""
	}
	namespace, _ := os.Readlink("/proc/self/ns/time") // "" before Linux 5.6: there is but one
	return boot + namespace
}

// Ahead is the wall clock's reading, ns since 1970, less that of the host's
// monotonic clock, to within bound.
func Ahead(c *pace.Clock) (ns, bound int64) {
	before := Reading(c)
	wall := c.Wall().UnixNano()
	after := Reading(c)
	half := (after - before) / 2
	return wall - before - half, half + 1
}

// Reading is now on the host's monotonic clock.
func Reading(c *pace.Clock) int64 { return c.Epoch().MonotonicNS + c.Now() }
