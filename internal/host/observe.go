package host

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// observed is what a host reports to the doctor. A nil pointer, or an empty text or list, was not
// reported.
type observed struct {
	facts Facts
	pod   *pod // nil: not known

	// The processor.
	physical    *int  // physical cores, if several logical ones share one
	grouped     bool  // the process's control group for the processor is known
	throttled   *bool // the quota has stopped the process's group since the group started
	scaling     string
	turbo       *bool
	turboSwitch string // command that turns turbo off
	idle        []idleState
	idleBy      string   // cpuidle's driver
	clocks      []string // available clock sources
	slackNS     *uint64  // initial timer slack of this thread
	realtime    *bool    // SCHED_FIFO is permitted
	isolated    *string  // the kernel's list: "2-3"; empty: none
	onIsolated  bool     // the process may run on an isolated processor
	elsewhere   []int    // allowed processors that are not isolated
	nodes       *int

	// The processor's use.
	stealBoot, stealNow *float64 // share of all time since boot, and in the sample
	othersBusy          *float64 // share of all cores in the sample, this process not counted
	busiest             []busyProgram
	load                *float64 // one-minute average

	// Memory.
	available  *uint64 // bytes available without swapping
	groupRoom  *uint64 // bytes available before a control group reaches its limit
	swapTotal  *uint64
	swapUsed   *uint64
	swapMoved  *uint64 // pages in the sample
	swappiness *uint64
	defrag     string // of transparent huge pages

	// Limits and the network.
	memlock           *uint64
	portLow, portHigh *uint64
	sockets           *uint64 // TCP sockets in use, without TIME_WAIT
	timeWait          *uint64
	somaxconn         *uint64

	sync       *syncState
	syncDaemon string
	daemons    []Daemon // that answer; the first speaks for the wall clock
	work, temp *diskState

	mitigated, vulnerable int
	mitigations           bool // whether the two above are known
}

// An idleState is a state that an idle core may enter.
type idleState struct {
	name      string
	latencyUS uint64 // exit latency
}

// A busyProgram is a program with processes that used the processor during the sample.
type busyProgram struct {
	name      string  // without arguments
	processes int     // processes that used at least leastBusy each
	cores     float64 // average use of all of them together
}

// A syncState is the kernel's view of its clock.
type syncState struct {
	synchronised bool
	leap         bool  // a leap second is due
	errorUS      int64 // maximum error
}

// A diskState describes the file system of a folder.
type diskState struct {
	folder      string
	kind        string // file system type: "ext4"; empty if unknown
	free, total uint64 // bytes
}

// A linuxCalls holds the results of system calls.
type linuxCalls struct {
	sync       *syncState
	work, temp *diskState
}

// observeLinux reads /proc and /sys; before was read one sample earlier.
func observeLinux(before use, now fs.FS, calls linuxCalls) observed {
	o := observed{sync: calls.sync, work: calls.work, temp: calls.temp}
	linuxFacts(now, &o.facts)
	status := text(now, "proc/self/status")
	allowed := cpuList(field(status, "Cpus_allowed_list"))
	o.facts.OS, o.facts.Cores = "linux", len(allowed)
	o.pod = readPod(now, allowed)
	o.observeCPU(now, status, allowed)
	after := readUse(now)
	o.observeUse(before, after, now)
	o.observeMemory(now)
	if in, out := after.swapIn.since(before.swapIn), after.swapOut.since(before.swapOut); in != nil && out != nil {
		o.swapMoved = new(*in + *out)
	}
	limits := text(now, "proc/self/limits")
	o.memlock = softLimit(limits, "Max locked memory")
	o.facts.OpenFiles = softLimit(limits, "Max open files")
	o.observeNetwork(now)
	for _, d := range []struct{ mark, name string }{
		{"run/chrony/chronyd.pid", "chronyd"},
		{"run/chronyd.pid", "chronyd"},
		{"run/systemd/timesync/synchronized", "systemd-timesyncd"},
		{"run/ntpd.pid", "ntpd"},
		{"run/ntpsec/ntpd.pid", "ntpd"},
	} {
		if _, err := fs.Stat(now, d.mark); err == nil {
			o.syncDaemon = d.name
			break
		}
	}
	return o
}

const cpuFolder = "sys/devices/system/cpu"

func (o *observed) observeCPU(root fs.FS, status string, allowed []int) {
	o.physical = physicalCores(root)
	group := findCgroup(root)
	o.grouped = len(group.cpu) > 0
	if _, periods, ok := group.throttled(root); ok {
		o.throttled = new(periods > 0)
	}
	o.scaling = text(root, cpuFolder+"/cpu0/cpufreq/scaling_driver")
	for _, s := range []struct {
		file, on string
		off      string
	}{
		{cpuFolder + "/intel_pstate/no_turbo", "0", "1"},
		{cpuFolder + "/cpufreq/boost", "1", "0"},
	} {
		if v := text(root, s.file); v == "0" || v == "1" {
			o.turbo = new(v == s.on)
			o.turboSwitch = "echo " + s.off + " | sudo tee /" + s.file
			break
		}
	}
	o.idleBy = text(root, cpuFolder+"/cpuidle/current_driver")
	states, _ := fs.Glob(root, cpuFolder+"/cpu0/cpuidle/state[0-9]*")
	for _, s := range states {
		latency, err := strconv.ParseUint(text(root, s+"/latency"), 10, 64)
		if err == nil && text(root, s+"/disable") != "1" {
			o.idle = append(o.idle, idleState{text(root, s+"/name"), latency})
		}
	}
	o.clocks = strings.Fields(text(root, "sys/devices/system/clocksource/clocksource0/available_clocksource"))
	o.slackNS = number(root, "proc/self/timerslack_ns")
	o.realtime = realtime(status, text(root, "proc/self/limits"))
	if _, err := fs.Stat(root, cpuFolder+"/isolated"); err == nil {
		o.isolated = new(text(root, cpuFolder+"/isolated"))
		isolated := cpuList(*o.isolated)
		o.elsewhere = slices.DeleteFunc(slices.Clone(allowed), func(c int) bool { return slices.Contains(isolated, c) })
		o.onIsolated = len(o.elsewhere) < len(allowed)
	}
	if nodes, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*"); len(nodes) > 0 {
		o.nodes = new(len(nodes))
	}
	faults, err := fs.ReadDir(root, cpuFolder+"/vulnerabilities")
	o.mitigations = err == nil
	for _, f := range faults {
		switch s := text(root, path.Join(cpuFolder, "vulnerabilities", f.Name())); {
		case strings.HasPrefix(s, "Mitigation"):
			o.mitigated++
		case strings.HasPrefix(s, "Vulnerable"):
			o.vulnerable++
		}
	}
}

// physicalCores counts the cores of all processors: one for each distinct list of siblings.
func physicalCores(root fs.FS) *int {
	files, _ := fs.Glob(root, cpuFolder+"/cpu[0-9]*/topology/thread_siblings_list")
	if len(files) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, f := range files {
		seen[text(root, f)] = true
	}
	return new(len(seen))
}

// realtimePriority is the priority of a pacer with precedence (package pace).
const realtimePriority = 10

// capSysNice is the capability bit (capability.h) that permits real-time policies.
const capSysNice = 23

// realtime reports whether the process may use SCHED_FIFO, as pacers do: by its capability or its
// limit.
func realtime(status, limits string) *bool {
	caps, err := strconv.ParseUint(field(status, "CapEff"), 16, 64)
	limit := softLimit(limits, "Max realtime priority")
	if err != nil && limit == nil {
		return nil
	}
	return new(err == nil && caps>>capSysNice&1 == 1 || limit != nil && *limit >= realtimePriority)
}

func (o *observed) observeMemory(now fs.FS) {
	meminfo := text(now, "proc/meminfo")
	o.available = kilobytes(meminfo, "MemAvailable")
	total, free := kilobytes(meminfo, "SwapTotal"), kilobytes(meminfo, "SwapFree")
	if total != nil && free != nil && *free <= *total {
		o.swapTotal, o.swapUsed = total, new(*total-*free)
	}
	o.swappiness = number(now, "proc/sys/vm/swappiness")
	o.defrag = chosen(text(now, "sys/kernel/mm/transparent_hugepage/defrag"))
	if room, ok := findCgroup(now).memoryRoom(now); ok {
		o.groupRoom = &room
	}
}

func (o *observed) observeNetwork(root fs.FS) {
	if f := strings.Fields(text(root, "proc/sys/net/ipv4/ip_local_port_range")); len(f) == 2 {
		low, err1 := strconv.ParseUint(f[0], 10, 16)
		high, err2 := strconv.ParseUint(f[1], 10, 16)
		if err1 == nil && err2 == nil && low <= high {
			o.portLow, o.portHigh = &low, &high
		}
	}
	o.somaxconn = number(root, "proc/sys/net/core/somaxconn")
	four := tcpSockets(text(root, "proc/net/sockstat"), "TCP:")
	six := tcpSockets(text(root, "proc/net/sockstat6"), "TCP6:")
	if four != nil {
		o.sockets, o.timeWait = new(four["inuse"]+six["inuse"]), new(four["tw"])
	}
}

// tcpSockets parses a line like "TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1". The IPv6 line has only the
// first number; TIME_WAIT of both is counted in the IPv4 line.
func tcpSockets(sockstat, line string) map[string]uint64 {
	for l := range strings.Lines(sockstat) {
		f := strings.Fields(l)
		if len(f) == 0 || f[0] != line {
			continue
		}
		counts := map[string]uint64{}
		for i := 1; i+1 < len(f); i += 2 {
			if n, err := strconv.ParseUint(f[i+1], 10, 64); err == nil {
				counts[f[i]] = n
			}
		}
		return counts
	}
	return nil
}
