package host

import (
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// A Meter reads what the process used of the host and what the host withheld
// from it. One goroutine at a time may use it. It holds no file open.
type Meter struct {
	clock  *pace.Clock
	root   fs.FS
	group  cgroup
	cores  float64
	gc     gcReader
	pageSz uint64
}

// StartMeter returns a meter with readings stamped by c. The control group of the process
// and the cores it may use are looked up now.
func StartMeter(c *pace.Clock) *Meter { return startMeter(c, os.DirFS("/")) }

func startMeter(c *pace.Clock, root fs.FS) *Meter {
	m := &Meter{clock: c, root: root, group: findCgroup(root), cores: float64(runtime.NumCPU()), gc: newGCReader(), pageSz: uint64(os.Getpagesize())}
	if quota, ok := m.group.cores(root); ok {
		m.cores = min(m.cores, quota)
	}
	return m
}

// A Reading is all that a Meter counts, since the process or the host began.
// Only differences of two readings of one meter mean something: Since.
type Reading struct {
	At int64 // ns on the meter's clock

	cores            float64
	process          process
	jiffies          jiffies
	swapIn, swapOut  counter // bytes
	throttledNS      counter
	throttledPeriods counter
	waitedNS         counter // its threads were ready to run and had no core
	gc               gcTotals
}

// A counter is a number that only grows, where the host tells it.
type counter struct {
	n  uint64
	ok bool
}

// process is what getrusage tells of this process, all its threads together.
type process struct {
	userNS, systemNS, majorFaults, voluntary, involuntary counter
}

// cpu is user and system time together, in ns.
func (p process) cpu() counter {
	return counter{p.userNS.n + p.systemNS.n, p.userNS.ok && p.systemNS.ok}
}

// Read takes a reading: a system call and a few small files, some 50 us to
// 1 ms, the more cores the host has. It is meant for once a second and
// disturbs nothing else.
func (m *Meter) Read() Reading {
	r := Reading{cores: m.cores, process: readProcess(), jiffies: readJiffies(m.root), gc: m.gc.read()}
	r.swapIn, r.swapOut = readSwap(m.root)
	r.swapIn.n *= m.pageSz
	r.swapOut.n *= m.pageSz
	if ns, periods, ok := m.group.throttled(m.root); ok {
		r.throttledNS, r.throttledPeriods = counter{ns, true}, counter{periods, true}
	}
	r.waitedNS = readWaited(m.root)
	r.At = m.clock.Now()
	return r
}

// A Usage is what happened between two readings. A nil field, absent from
// JSON, is one that the host did not tell, or told nonsense about (a counter
// that went back).
type Usage struct {
	SpanS float64 `json:"span_s"` // between the readings
	Cores float64 `json:"cores"`  // that the process may use: its processors, or the quota where that is less

	// Of this process, child processes not included.
	CPUSeconds          *float64 `json:"cpu_s,omitempty"`                // user and system
	CPUShare            *float64 `json:"cpu_share,omitempty"`            // of all Cores: 0 to 1
	VoluntarySwitches   *uint64  `json:"voluntary_switches,omitempty"`   // its threads waited
	InvoluntarySwitches *uint64  `json:"involuntary_switches,omitempty"` // its threads were pushed off a core
	MajorFaults         *uint64  `json:"major_faults,omitempty"`         // pages that had to come from a disk

	// Of the host, all cores together, 0 to 1. The kernel counts in ticks of
	// mostly 10 ms a core, so that over a second a share is good to a hundredth
	// of a core.
	HostBusyShare *float64 `json:"host_busy_share,omitempty"` // neither idle, nor waiting for a disk, nor stolen
	StealShare    *float64 `json:"steal_share,omitempty"`     // ready to run while the hypervisor ran others
	SwapInBytes   *uint64  `json:"swap_in_bytes,omitempty"`
	SwapOutBytes  *uint64  `json:"swap_out_bytes,omitempty"`

	// Of the control groups that limit this process.
	ThrottledS       *float64 `json:"throttled_s,omitempty"`       // stopped by a quota; cores and nested quotas add up
	ThrottledPeriods *uint64  `json:"throttled_periods,omitempty"` // in which that was so

	// Core-seconds that its threads were ready for, while other processes or the hypervisor
	// had as many: what they took, at most.
	TakenS *float64 `json:"taken_s,omitempty"`

	GC GC `json:"gc"`
}

// Since returns what happened from an earlier reading of the same meter to r.
func (r Reading) Since(earlier Reading) Usage {
	u := Usage{
		SpanS:               time.Duration(r.At - earlier.At).Seconds(),
		Cores:               r.cores,
		CPUSeconds:          seconds(r.process.cpu().since(earlier.process.cpu())),
		VoluntarySwitches:   r.process.voluntary.since(earlier.process.voluntary),
		InvoluntarySwitches: r.process.involuntary.since(earlier.process.involuntary),
		MajorFaults:         r.process.majorFaults.since(earlier.process.majorFaults),
		SwapInBytes:         r.swapIn.since(earlier.swapIn),
		SwapOutBytes:        r.swapOut.since(earlier.swapOut),
		ThrottledS:          seconds(r.throttledNS.since(earlier.throttledNS)),
		ThrottledPeriods:    r.throttledPeriods.since(earlier.throttledPeriods),
		GC:                  r.gc.since(earlier.gc),
	}
	if u.CPUSeconds != nil && u.SpanS > 0 && u.Cores > 0 {
		share := *u.CPUSeconds / (u.SpanS * u.Cores)
		u.CPUShare = &share
	}
	u.HostBusyShare, u.StealShare = r.jiffies.since(earlier.jiffies)
	if waited := seconds(r.waitedNS.since(earlier.waitedNS)); waited != nil && u.CPUSeconds != nil && u.HostBusyShare != nil && u.StealShare != nil {
		all := float64(r.jiffies.total-earlier.jiffies.total) / ticks
		others := (*u.HostBusyShare+*u.StealShare)*all - *u.CPUSeconds
		taken := max(0, min(*waited, others, u.Cores*u.SpanS-*u.CPUSeconds))
		u.TakenS = &taken
	}
	return u
}

// ticks is how many of a core's jiffies there are in a second, as Linux shows them.
const ticks = 100

// since is the growth of a counter; nil where it is not known.
func (c counter) since(earlier counter) *uint64 {
	if !c.ok || !earlier.ok || c.n < earlier.n {
		return nil
	}
	d := c.n - earlier.n
	return &d
}

// since returns the shares of the ticks between two readings.
func (j jiffies) since(earlier jiffies) (busy, steal *float64) {
	if !j.ok || !earlier.ok || j.total <= earlier.total {
		return nil, nil
	}
	total := float64(j.total - earlier.total)
	share := func(now, then uint64) *float64 {
		if now < then { // steal is known to go back on some hypervisors
			return nil
		}
		s := float64(now-then) / total
		return &s
	}
	return share(j.busy, earlier.busy), share(j.steal, earlier.steal)
}

// seconds converts ns, where known.
func seconds(ns *uint64) *float64 {
	if ns == nil {
		return nil
	}
	s := float64(*ns) / 1e9
	return &s
}
