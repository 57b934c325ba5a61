package host

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// This file reads a Sample's figures for the whole host.

// sectorBytes is the unit of /proc/diskstats, independent of a disk's own sector size.
const sectorBytes = 512

// hostCounters are a host's counters since boot and its current values.
type hostCounters struct {
	user, system, idle, iowait, steal counter // ticks
	switches, majorFaults             counter
	disks                             diskCounters
	received, sent, loopback          counter // bytes
	cached, dirty                     *uint64 // bytes
}

// diskCounters are the totals of all disks.
type diskCounters struct {
	reads, sectorsRead, writes, sectorsWritten, busyMS, flushes counter
}

func readHost(root fs.FS) hostCounters {
	var h hostCounters
	h.readStat(text(root, "proc/stat"))
	for key, n := range pairs(text(root, "proc/vmstat")) {
		if key == "pgmajfault" {
			h.majorFaults = counter{n, true}
		}
	}
	h.disks = readDisks(text(root, "proc/diskstats"), func(name string) bool { return wholeDisk(root, name) })
	h.received, h.sent, h.loopback = readNetwork(text(root, "proc/net/dev"))
	meminfo := text(root, "proc/meminfo")
	h.cached, h.dirty = kilobytes(meminfo, "Cached"), kilobytes(meminfo, "Dirty")
	return h
}

// readStat reads the first line of /proc/stat, and the number of context switches.
func (h *hostCounters) readStat(stat string) {
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "ctxt":
			if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				h.switches = counter{n, true}
			}
		case len(f) > 8 && f[0] == "cpu":
			var n [8]uint64 // user nice system idle iowait irq softirq steal
			sum := uint64(0)
			for i := range n {
				v, err := strconv.ParseUint(f[i+1], 10, 62)
				if err != nil {
					return
				}
				n[i] = v
				sum += v
			}
			if sum > 0 { // some sandboxes show zeros
				h.user, h.system, h.idle = counter{n[0] + n[1], true}, counter{n[2] + n[5] + n[6], true}, counter{n[3], true}
				h.iowait, h.steal = counter{n[4], true}, counter{n[7], true}
			}
		}
	}
}

// wholeDisk reports whether a block device is a disk, rather than a partition or a device on top of
// others, which would count the same bytes twice.
func wholeDisk(root fs.FS, name string) bool {
	for _, over := range []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd"} {
		if strings.HasPrefix(name, over) {
			return false
		}
	}
	_, err := fs.Stat(root, "sys/block/"+strings.ReplaceAll(name, "/", "!"))
	return err == nil
}

// readDisks sums the disks of /proc/diskstats: major minor name, then reads merged sectors ms, writes
// merged sectors ms, under way, busy ms, weighted ms; since Linux 4.18 also four fields of discards,
// since 5.5 flushes and their ms.
func readDisks(diskstats string, whole func(name string) bool) diskCounters {
	const name, first, flushes, fields = 2, 3, 15, 11
	var d diskCounters
	for line := range strings.Lines(diskstats) {
		f := strings.Fields(line)
		if len(f) < first+fields || !whole(f[name]) {
			continue
		}
		for _, x := range []struct {
			sum *counter
			at  int
		}{{&d.reads, 0}, {&d.sectorsRead, 2}, {&d.writes, 4}, {&d.sectorsWritten, 6}, {&d.busyMS, 9}, {&d.flushes, flushes}} {
			if first+x.at >= len(f) {
				continue
			}
			if n, err := strconv.ParseUint(f[first+x.at], 10, 54); err == nil {
				*x.sum = counter{x.sum.n + n, true}
			}
		}
	}
	return d
}

// Received returns how many bytes this host has received since boot on all interfaces but loopback;
// false if /proc does not report it.
func Received() (bytes uint64, ok bool) {
	in, _, _ := readNetwork(text(os.DirFS("/"), "proc/net/dev"))
	return in.n, in.ok
}

// readNetwork sums the interfaces of a /proc/net/dev: "name: bytes packets errs drop fifo frame
// compressed multicast", followed by the same for sent data.
func readNetwork(dev string) (received, sent, loopback counter) {
	const toSent, fields = 8, 16
	for line := range strings.Lines(dev) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || len(f) < fields {
			continue
		}
		in, err1 := strconv.ParseUint(f[0], 10, 62)
		out, err2 := strconv.ParseUint(f[toSent], 10, 62)
		switch {
		case err1 != nil || err2 != nil:
		case strings.TrimSpace(name) == "lo":
			loopback = counter{out, true}
			received.ok, sent.ok = true, true // no other interface: no other traffic
		default:
			received, sent = counter{received.n + in, true}, counter{sent.n + out, true}
		}
	}
	return received, sent, loopback
}

// since returns the difference between an earlier reading and h.
func (h *hostCounters) since(earlier *hostCounters) HostSample {
	ticks := func(now, then counter) *float64 { return scaled(now.since(then), ticksPerSecond) }
	d, e := &h.disks, &earlier.disks
	s := HostSample{
		UserS: ticks(h.user, earlier.user), SystemS: ticks(h.system, earlier.system), IdleS: ticks(h.idle, earlier.idle),
		IOWaitS: ticks(h.iowait, earlier.iowait), StealS: ticks(h.steal, earlier.steal),
		ContextSwitches: h.switches.since(earlier.switches), MajorFaults: h.majorFaults.since(earlier.majorFaults),
		DiskReads: d.reads.since(e.reads), DiskWrites: d.writes.since(e.writes), DiskFlushes: d.flushes.since(e.flushes),
		DiskBusyS:     scaled(d.busyMS.since(e.busyMS), 1e3),
		ReceivedBytes: h.received.since(earlier.received), SentBytes: h.sent.since(earlier.sent), LoopbackBytes: h.loopback.since(earlier.loopback),
		PageCacheBytes: h.cached, DirtyBytes: h.dirty,
	}
	if n := d.sectorsRead.since(e.sectorsRead); n != nil {
		s.DiskReadBytes = new(*n * sectorBytes)
	}
	if n := d.sectorsWritten.since(e.sectorsWritten); n != nil {
		s.DiskWrittenBytes = new(*n * sectorBytes)
	}
	return s
}

// scaled converts a count to seconds, given its rate per second.
func scaled(n *uint64, perSecond float64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n) / perSecond)
}

// networkOf reads the network namespace of a process; false if it is weir's own or not readable.
func networkOf(root fs.FS, pid int) (received, sent counter, own bool) {
	at := "proc/" + strconv.Itoa(pid)
	theirs, err1 := fs.ReadLink(root, at+"/ns/net")
	ours, err2 := fs.ReadLink(root, "proc/self/ns/net")
	if err1 != nil || err2 != nil || theirs == ours {
		return counter{}, counter{}, false
	}
	received, sent, _ = readNetwork(text(root, at+"/net/dev"))
	return received, sent, true
}

// threadSwitches reads how often a thread blocked and was preempted.
func threadSwitches(root fs.FS, pid int, thread string) (x switches, ok bool) {
	for line := range strings.Lines(text(root, "proc/"+strconv.Itoa(pid)+"/task/"+thread+"/status")) {
		key, value, _ := strings.Cut(line, ":")
		if key != "voluntary_ctxt_switches" && key != "nonvoluntary_ctxt_switches" {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 62)
		if err != nil {
			return switches{}, false
		}
		if key[0] == 'v' {
			x.voluntary, ok = n, true
		} else {
			x.involuntary = n
		}
	}
	return x, ok
}

// ownCounters are the counters of the reading process itself.
type ownCounters struct {
	process
	io  ioCounters
	rss counter
}

func readOwn(root fs.FS) ownCounters {
	own := ownCounters{process: readProcess(), io: processIO(root, os.Getpid())}
	if anonymous, shared, ok := processMemory(root, os.Getpid()); ok {
		own.rss = counter{anonymous + shared, true}
	}
	return own
}

// since returns its usage since an earlier reading.
func (o *ownCounters) since(earlier *ownCounters) ProcessSample {
	p := ProcessSample{
		Name: ProcessWeir, Processes: 1,
		UserS: scaled(o.userNS.since(earlier.userNS), 1e9), SystemS: scaled(o.systemNS.since(earlier.systemNS), 1e9),
		VoluntarySwitches: o.voluntary.since(earlier.voluntary), InvoluntarySwitches: o.involuntary.since(earlier.involuntary),
		MajorFaults: o.majorFaults.since(earlier.majorFaults),
	}
	if o.io.ok && earlier.io.ok {
		at := func(n, then uint64) *uint64 { return counter{n, true}.since(counter{then, true}) }
		p.ReadBytes, p.WrittenBytes = at(o.io.read, earlier.io.read), at(o.io.written, earlier.io.written)
		p.ReadCalls, p.WriteCalls = at(o.io.readCalls, earlier.io.readCalls), at(o.io.writeCalls, earlier.io.writeCalls)
	}
	p.RSSBytes = most(o.rss, earlier.rss)
	return p
}

// most returns the greater of two values, either of which may be unknown.
func most(a, b counter) *uint64 {
	switch {
	case a.ok && b.ok:
		return new(max(a.n, b.n))
	case a.ok:
		return new(a.n)
	case b.ok:
		return new(b.n)
	}
	return nil
}
