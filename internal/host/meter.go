package host

import (
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// A Meter measures what the process used of the host and what the host withheld from it. It is not
// safe for concurrent use. It holds no file open.
type Meter struct {
	clock  *pace.Clock
	root   fs.FS
	group  cgroup
	cores  float64
	gc     gcReader
	pageSz uint64
}

// StartMeter returns a meter whose readings use clock c. It looks up the process's control group and
// the cores it may use once, now.
func StartMeter(c *pace.Clock) *Meter { return startMeter(c, os.DirFS("/")) }

func startMeter(c *pace.Clock, root fs.FS) *Meter {
	m := &Meter{clock: c, root: root, group: findCgroup(root), cores: float64(runtime.NumCPU()), gc: newGCReader(), pageSz: uint64(os.Getpagesize())}
	if quota, ok := m.group.cores(root); ok {
		m.cores = min(m.cores, quota)
	}
	return m
}

// A Reading holds a Meter's counters since the process or the host started. Only differences between
// two readings of one meter are meaningful: see Since.
type Reading struct {
	At int64 // ns on the meter's clock

	cores            float64
	process          process
	jiffies          jiffies
	swapIn, swapOut  counter // bytes
	throttledNS      counter
	throttledPeriods counter
	waitedNS         counter // threads were ready to run but had no core
	gc               gcTotals
}

// A counter is a monotonic number that the host may not report.
type counter struct {
	n  uint64
	ok bool
}

// process is getrusage's data for this process, all threads together.
type process struct {
	userNS, systemNS, majorFaults, voluntary, involuntary counter
}

// cpu returns user plus system time, in ns.
func (p process) cpu() counter {
	return counter{p.userNS.n + p.systemNS.n, p.userNS.ok && p.systemNS.ok}
}

// Read takes a reading: one system call and a few small files, some 50 µs to 1 ms depending on the
// number of cores. It is meant to be called once a second and disturbs nothing else.
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

// A Usage is the difference between two readings. A nil field, absent from JSON, was not reported by
// the host, or was invalid (a counter that went back).
type Usage struct {
	SpanS float64 `json:"span_s"` // between the readings
	Cores float64 `json:"cores"`  // cores available to the process: its processors, or its quota if that is less

	// For this process, without child processes.
	CPUSeconds          *float64 `json:"cpu_s,omitempty"`                // user and system
	CPUShare            *float64 `json:"cpu_share,omitempty"`            // share of all Cores: 0 to 1
	VoluntarySwitches   *uint64  `json:"voluntary_switches,omitempty"`   // threads blocked
	InvoluntarySwitches *uint64  `json:"involuntary_switches,omitempty"` // threads were preempted
	MajorFaults         *uint64  `json:"major_faults,omitempty"`         // pages read from disk

	// For the host, all cores together, 0 to 1. The kernel counts in ticks of 10 ms per core, so that over a
	// second a share is accurate to a hundredth of a core.
	HostBusyShare *float64 `json:"host_busy_share,omitempty"` // neither idle, waiting for a disk, nor stolen
	StealShare    *float64 `json:"steal_share,omitempty"`     // ready to run while the hypervisor ran others
	SwapInBytes   *uint64  `json:"swap_in_bytes,omitempty"`
	SwapOutBytes  *uint64  `json:"swap_out_bytes,omitempty"`

	// For the control groups that limit this process.
	ThrottledS       *float64 `json:"throttled_s,omitempty"`       // by quotas; cores and nested quotas add up
	ThrottledPeriods *uint64  `json:"throttled_periods,omitempty"` // periods with such a stop

	// TakenS is an upper bound on the core-seconds that other processes or the hypervisor took from this
	// process's runnable threads.
	TakenS *float64 `json:"taken_s,omitempty"`

	GC GC `json:"gc"`
}

// Since returns the difference between r and an earlier reading of the same meter.
func (r Reading) Since(earlier Reading) Usage {
	u := Usage{
		SpanS:               time.Duration(r.At - earlier.At).Seconds(),
		Cores:               r.cores,
		CPUSeconds:          scaled(r.process.cpu().since(earlier.process.cpu()), 1e9),
		VoluntarySwitches:   r.process.voluntary.since(earlier.process.voluntary),
		InvoluntarySwitches: r.process.involuntary.since(earlier.process.involuntary),
		MajorFaults:         r.process.majorFaults.since(earlier.process.majorFaults),
		SwapInBytes:         r.swapIn.since(earlier.swapIn),
		SwapOutBytes:        r.swapOut.since(earlier.swapOut),
		ThrottledS:          scaled(r.throttledNS.since(earlier.throttledNS), 1e9),
		ThrottledPeriods:    r.throttledPeriods.since(earlier.throttledPeriods),
		GC:                  r.gc.since(earlier.gc),
	}
	if u.CPUSeconds != nil && u.SpanS > 0 && u.Cores > 0 {
		share := *u.CPUSeconds / (u.SpanS * u.Cores)
		u.CPUShare = &share
	}
	span := time.Duration(r.At - earlier.At)
	u.HostBusyShare, u.StealShare = r.jiffies.since(earlier.jiffies, span)
	if waited := scaled(r.waitedNS.since(earlier.waitedNS), 1e9); waited != nil && u.CPUSeconds != nil && u.HostBusyShare != nil && u.StealShare != nil {
		all := r.jiffies.passed(earlier.jiffies, span) / ticksPerSecond
		others := (*u.HostBusyShare+*u.StealShare)*all - *u.CPUSeconds
		taken := max(0, min(*waited, others, u.Cores*u.SpanS-*u.CPUSeconds))
		u.TakenS = &taken
	}
	return u
}

// since returns the growth of a counter; nil if unknown.
func (c counter) since(earlier counter) *uint64 {
	if !c.ok || !earlier.ok || c.n < earlier.n {
		return nil
	}
	d := c.n - earlier.n
	return &d
}

// passed returns the ticks between two readings that are a span apart.
//
// Kernels without exact accounting of processor time (CONFIG_TICK_CPU_ACCOUNTING, the default of many) count
// a core as busy if a thread runs at a tick, but measure how long it idles. A thread that wakes at a timer
// and sleeps before the next tick, as load generators and servers do, is in no column: an idle host with
// 1,000 messages a second seems to be busy for 5 % of the time where 40 % are used. What is missing in the
// columns was busy.
func (j jiffies) passed(earlier jiffies, span time.Duration) float64 {
	return max(float64(j.total-earlier.total), float64(j.cores)*span.Seconds()*ticksPerSecond)
}

// since returns the shares of the ticks between two readings that are a span apart.
func (j jiffies) since(earlier jiffies, span time.Duration) (busy, steal *float64) {
	if !j.ok || !earlier.ok || j.total <= earlier.total {
		return nil, nil
	}
	total := j.passed(earlier, span)
	missing := total - float64(j.total-earlier.total)
	share := func(now, then uint64, more float64) *float64 {
		if now < then { // steal goes back on some hypervisors
			return nil
		}
		s := (float64(now-then) + more) / total
		return &s
	}
	return share(j.busy, earlier.busy, missing), share(j.steal, earlier.steal, 0)
}
