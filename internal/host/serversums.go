package host

import (
	"io/fs"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/proctree"
)

// An account tracks a total over a process tree. The kernel adds an ended child's usage to its parent,
// so that the total over living processes only grows. It dips while a process is between the two, and
// stays lower if no process inherited.
type account struct {
	base, used int64
	dips       int
	open       bool // a total has been seen
	lost       bool // the host failed to report one
}

// take adds the next total.
func (a *account) take(sum counter) {
	if !sum.ok {
		a.lost = true
		return
	}
	n := int64(min(sum.n, math.MaxInt64))
	if !a.open {
		a.open, a.base = true, n-a.used
	}
	switch {
	case n-a.base >= a.used:
		a.used, a.dips = n-a.base, 0
	case a.dips > 0:
		a.base, a.dips = n-a.used, 0
	default:
		a.dips = 1
	}
}

// now returns the usage so far.
func (a *account) now() counter {
	return counter{uint64(a.used), a.open && !a.lost}
}

// anew makes the next total count from its own start, on top of the usage so far.
func (a *account) anew() { a.open, a.base, a.dips = true, -a.used, 0 }

// The kinds of figures summed over a server's processes.
const (
	cpuUser   = iota // ticks
	cpuSystem        // ticks
	majorFaults
	diskRead    // bytes
	diskWritten // bytes
	readCalls
	writeCalls
	kinds
)

// A treeSum holds the totals over the processes of one server.
type treeSum struct {
	pids                   []int
	sums                   [kinds]uint64
	anonymous, shared      uint64 // bytes; shared is the maximum over processes
	ioUnknown, memoryKnown bool
	stopped                int // processes
}

// add adds a process that exists, or did a moment ago.
func (t *treeSum) add(root fs.FS, s proctree.Stat) {
	t.pids = append(t.pids, s.Pid)
	if s.Stopped() {
		t.stopped++
	}
	t.sums[cpuUser] += s.User
	t.sums[cpuSystem] += s.System
	t.sums[majorFaults] += s.MajorFaults
	io := processIO(root, s.Pid)
	t.ioUnknown = t.ioUnknown || !io.ok
	t.sums[diskRead] += io.read
	t.sums[diskWritten] += io.written
	t.sums[readCalls] += io.readCalls
	t.sums[writeCalls] += io.writeCalls
	if anonymous, shared, ok := processMemory(root, s.Pid); ok {
		t.memoryKnown = true
		t.anonymous += anonymous
		t.shared = max(t.shared, shared)
	}
}

// count returns the total of a kind.
func (t *treeSum) count(kind int) counter {
	return counter{t.sums[kind], kind < diskRead || !t.ioUnknown}
}

func (t *treeSum) rss() counter { return counter{t.anonymous + t.shared, t.memoryKnown} }

// named returns the pids, the server's own first.
func (t *treeSum) named(own int) []int {
	slices.SortFunc(t.pids, func(a, b int) int {
		switch {
		case a == own:
			return -1
		case b == own:
			return 1
		}
		return a - b
	})
	return t.pids[:min(len(t.pids), mostPids)]
}

// A growth tracks a counter that may restart, such as that of a recreated interface.
type growth struct {
	before, sum uint64
	open        bool
}

func (g *growth) take(c counter) {
	switch {
	case !c.ok:
		return
	case !g.open:
	case c.n >= g.before:
		g.sum += c.n - g.before
	default:
		g.sum += c.n
	}
	g.before, g.open = c.n, true
}

func (g *growth) now() counter { return counter{g.sum, g.open} }

// sample returns what happened between two readings. The lock is held.
func (m *ServerMeter) sample(a, b *serverReading) Sample {
	x := Sample{FromNS: a.at, ToNS: b.at, Host: b.host.since(&a.host), Processes: []ProcessSample{b.own.since(&a.own)}, Beyond: m.beyond}
	for i, s := range m.servers {
		u, before := &b.use[i], &a.use[i]
		if s.Name == OtherServers && u.processes+before.processes == 0 {
			continue
		}
		p := ProcessSample{Name: s.Name, Node: s.Node, Processes: u.processes, Stopped: max(u.stopped, before.stopped), Pids: u.pids, DiskBytes: u.disk}
		if u.processes > 0 {
			ticks := func(kind int) *float64 { return scaled(u.counts[kind].grown(before.counts[kind]), ticksPerSecond) }
			count := func(kind int) *uint64 { return u.counts[kind].grown(before.counts[kind]) }
			p.UserS, p.SystemS, p.MajorFaults = ticks(cpuUser), ticks(cpuSystem), count(majorFaults)
			p.ReadBytes, p.WrittenBytes, p.ReadCalls, p.WriteCalls = count(diskRead), count(diskWritten), count(readCalls), count(writeCalls)
			p.VoluntarySwitches, p.InvoluntarySwitches = u.voluntary.grown(before.voluntary), u.involuntary.grown(before.involuntary)
			p.WaitedS = scaled(u.waited.grown(before.waited), 1e9)
			p.ReceivedBytes, p.SentBytes = u.received.grown(before.received), u.sent.grown(before.sent)
			p.RSSBytes = most(u.rss, before.rss)
		}
		x.Processes = append(x.Processes, p)
	}
	x.Absent = x.absences()
	return x
}

// A figure is a named figure and whether it is absent.
type figure struct {
	name   string
	absent bool
}

// lack appends those figures that are absent.
func lack(all []Absent, of, why string, figures ...figure) []Absent {
	a := Absent{Of: of, Why: why}
	for _, f := range figures {
		if f.absent {
			a.Figures = append(a.Figures, f.name)
		}
	}
	if len(a.Figures) == 0 {
		return all
	}
	return append(all, a)
}

// absences returns the figures that the host should report but does not.
func (s *Sample) absences() []Absent {
	h := &s.Host
	all := lack(nil, "host", "/proc/stat does not tell, or went back",
		figure{"user_s", h.UserS == nil}, figure{"system_s", h.SystemS == nil}, figure{"idle_s", h.IdleS == nil},
		figure{"iowait_s", h.IOWaitS == nil}, figure{"steal_s", h.StealS == nil}, figure{"context_switches", h.ContextSwitches == nil})
	all = lack(all, "host", "/proc/diskstats shows no disk", figure{"disk_reads", h.DiskReads == nil}, figure{"disk_read_bytes", h.DiskReadBytes == nil},
		figure{"disk_writes", h.DiskWrites == nil}, figure{"disk_written_bytes", h.DiskWrittenBytes == nil}, figure{"disk_busy_s", h.DiskBusyS == nil})
	all = lack(all, "host", "/proc/diskstats does not count flushes, which Linux does from 5.5 on", figure{"disk_flushes", h.DiskFlushes == nil})
	all = lack(all, "host", "/proc/vmstat does not tell", figure{"major_faults", h.MajorFaults == nil})
	all = lack(all, "host", "/proc/meminfo does not tell", figure{"page_cache_bytes", h.PageCacheBytes == nil}, figure{"dirty_bytes", h.DirtyBytes == nil})
	all = lack(all, "host", "/proc/net/dev shows no interface", figure{"received_bytes", h.ReceivedBytes == nil}, figure{"sent_bytes", h.SentBytes == nil},
		figure{"loopback_bytes", h.LoopbackBytes == nil})
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Processes == 0 {
			continue
		}
		all = lack(all, p.Name, "the kernel shows /proc/PID/io only to the user of the process and to root", figure{"read_bytes", p.ReadBytes == nil},
			figure{"written_bytes", p.WrittenBytes == nil}, figure{"read_calls", p.ReadCalls == nil}, figure{"write_calls", p.WriteCalls == nil})
		all = lack(all, p.Name, "the servers have too many threads, or the kernel does not show them", figure{"voluntary_switches", p.VoluntarySwitches == nil},
			figure{"involuntary_switches", p.InvoluntarySwitches == nil})
		all = lack(all, p.Name, "the kernel does not show its memory", figure{"rss_bytes", p.RSSBytes == nil})
	}
	return all
}

func (a Absent) equal(b Absent) bool {
	return a.Of == b.Of && a.Why == b.Why && slices.Equal(a.Figures, b.Figures)
}
