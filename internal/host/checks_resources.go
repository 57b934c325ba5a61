package host

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
)

// Limits for the resource checks.
const (
	memoryBad, memoryWarn = 512 << 20, 2 << 30 // bytes; weir's own limit is 1 GiB
	diskBad, diskWarn     = 1 << 30, 5 << 30   // bytes
	swappinessMost        = 10                 // of 200, with swap
	filesBad, filesWarn   = 1024, 65536        // 1024 is the default of many systems
	memlockWarn           = 8 << 20            // bytes; the kernel's default since 5.16
	portsFew              = 10_000
	portsWarn, portsBad   = 0.5, 0.9 // of the port range
	backlogFew            = 1024     // the kernel's default: 128 before 5.4, 4096 since
)

// notShown is the usual reason why a property is unknown.
const notShown = "the host does not show it"

func checkMemory(o *observed) Finding {
	if o.available == nil {
		return unknown(notShown)
	}
	room, found := *o.available, bytesText(*o.available)+" available"
	if o.facts.MemoryBytes > 0 {
		found += " of " + bytesText(o.facts.MemoryBytes)
	}
	if o.facts.CgroupMemoryBytes != nil {
		found += ", limit of the control group " + bytesText(*o.facts.CgroupMemoryBytes)
		if o.groupRoom != nil {
			found += ", " + bytesText(*o.groupRoom) + " available"
			room = min(room, *o.groupRoom)
		}
	}
	const do = "Free memory, or lower limits.memory of the scenario."
	switch {
	case room < memoryBad:
		return bad(found, do)
	case room < memoryWarn:
		return warn(found, do)
	}
	return healthy(found)
}

func checkSwap(o *observed) Finding {
	switch {
	case o.swapTotal == nil:
		return unknown(notShown)
	case *o.swapTotal == 0:
		return healthy("none")
	}
	found := bytesText(*o.swapUsed) + " of " + bytesText(*o.swapTotal) + " in use"
	if o.swappiness != nil {
		found += fmt.Sprintf(", swappiness %d", *o.swappiness)
	}
	const do = "Turn it off while measuring; sudo swapon -a brings it back."
	const off = "sudo swapoff -a"
	switch {
	case o.swapMoved != nil && *o.swapMoved > 0:
		return bad(found+", and pages are moving now", "Free memory first, then turn swap off while measuring.", off)
	case *o.swapUsed > 0:
		return warn(found, do, off)
	case o.swappiness != nil && *o.swappiness > swappinessMost:
		return warn(found, "Turn it off while measuring, or have the kernel use it last.", off, "sudo sysctl vm.swappiness=1")
	}
	return healthy(found)
}

func checkHugePages(o *observed) Finding {
	enabled := o.facts.TransparentHugePages
	if enabled == "" {
		return unknown(notShown)
	}
	found := enabled
	if o.defrag != "" {
		found += ", defrag " + o.defrag
	}
	if enabled != "always" {
		return healthy(found)
	}
	return warn(found, "Leave them to programs that ask for them; a restart undoes it.",
		"echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled")
}

func checkFiles(o *observed) Finding {
	if o.facts.OpenFiles == nil {
		return unknown(notShown)
	}
	n := *o.facts.OpenFiles
	found := limitText(n, quantity.Count(n))
	const do = "Raise the limit in the shell that starts weir (for good: nofile in /etc/security/limits.conf, LimitNOFILE in a systemd unit)."
	const command = "sudo prlimit --pid $$ --nofile=1048576:1048576"
	switch {
	case n < filesBad:
		return bad(found, do, command)
	case n < filesWarn:
		return warn(found, do, command)
	}
	return healthy(found)
}

func checkMemlock(o *observed) Finding {
	if o.memlock == nil {
		return unknown(notShown)
	}
	found := limitText(*o.memlock, bytesText(*o.memlock))
	if *o.memlock < memlockWarn {
		return warn(found, "Raise the limit in the shell that starts weir where a system under test locks memory.", "sudo prlimit --pid $$ --memlock=unlimited")
	}
	return healthy(found)
}

func checkPorts(o *observed) Finding {
	if o.portLow == nil {
		return unknown(notShown)
	}
	size := *o.portHigh - *o.portLow + 1
	found := fmt.Sprintf("%d to %d", *o.portLow, *o.portHigh)
	share := 0.0
	if o.sockets != nil {
		found += fmt.Sprintf(", %s in use, %s in TIME_WAIT", quantity.Count(*o.sockets), quantity.Count(*o.timeWait))
		share = float64(*o.sockets+*o.timeWait) / float64(size)
	}
	const wait = "Wait a minute for the old connections to go, or close what holds them; more ports help too."
	const command = `sudo sysctl net.ipv4.ip_local_port_range="10240 65535"`
	switch {
	case share >= portsBad:
		return bad(found, wait, command)
	case share >= portsWarn:
		return warn(found, wait, command)
	case size < portsFew:
		return warn(found, "Widen the range where thousands of connections go to one address.", command)
	}
	return healthy(found)
}

func checkBacklog(o *observed) Finding {
	if o.somaxconn == nil {
		return unknown(notShown)
	}
	found := "somaxconn " + quantity.Count(*o.somaxconn)
	if *o.somaxconn < backlogFew {
		return warn(found, "Let more connections wait to be accepted; servers started afterwards take it.", "sudo sysctl net.core.somaxconn=4096")
	}
	return healthy(found)
}

func checkTime(o *observed) Finding {
	f := checkKernelTime(o)
	sets := 0
	for _, d := range o.daemons {
		if d.Name != "" {
			f.Found += "; " + d.String()
		}
		if d.Steers {
			sets++
		}
	}
	if sets > 1 {
		return warn(f.Found, "Let one of them set the clock: stop the other, or have chrony follow PTP (timemaster of linuxptp).")
	}
	return f
}

func checkKernelTime(o *observed) Finding {
	by := ""
	if o.syncDaemon != "" {
		by = " by " + o.syncDaemon
	}
	switch {
	case o.sync == nil && by != "":
		return unknown(strings.TrimSpace(by) + " runs, or did; the kernel does not show more")
	case o.sync == nil:
		return unknown(notShown)
	case !o.sync.synchronised:
		return warn("the kernel's clock is not synchronised", "Where several hosts measure together, run a time daemon on each.",
			"sudo apt-get install -y chrony || sudo dnf install -y chrony", "chronyc waitsync 30 0.001")
	case o.sync.leap:
		return warn("synchronised"+by+", and a leap second is due today", "Measure tomorrow.")
	}
	return healthy(fmt.Sprintf("synchronised%s, off by at most %s", by, microseconds(o.sync.errorUS)))
}

func checkWork(o *observed) Finding { return checkDisk(o.work) }

func checkTemp(o *observed) Finding {
	if o.temp == nil || o.temp.kind != "tmpfs" && o.temp.kind != "ramfs" {
		return checkDisk(o.temp)
	}
	return warn(diskText(o.temp)+": memory, no disk", "Let the systems that weir starts write to a disk: in memory a synced write costs nothing.",
		"mkdir -p /var/tmp/weir && export TMPDIR=/var/tmp/weir")
}

func checkDisk(d *diskState) Finding {
	if d == nil {
		return unknown(notShown)
	}
	found := diskText(d)
	do := "Free some, or write elsewhere (--out for results, TMPDIR for the systems that weir starts)."
	switch {
	case d.free < diskBad:
		return bad(found, do)
	case d.free < diskWarn:
		return warn(found, do)
	}
	return healthy(found)
}

func diskText(d *diskState) string {
	s := fmt.Sprintf("%s: %s free of %s", d.folder, bytesText(d.free), bytesText(d.total))
	if d.kind != "" {
		s += " (" + d.kind + ")"
	}
	return s
}

// bytesText formats bytes in units of 1024, to three digits.
func bytesText(n uint64) string {
	if n < 1<<10 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v /= 1 << 10; v < 999.5 {
			break
		}
	}
	digits := max(0, 2-int(math.Log10(max(v, 1))))
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
}

// limitText returns s, the text for a limit n, or says that there is none.
func limitText(n uint64, s string) string {
	if n >= math.MaxInt64 { // macOS's RLIM_INFINITY; Linux's is larger
		return "unlimited"
	}
	return s
}

// percent formats a share to one decimal.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" }

// microseconds formats a duration in µs or ms.
func microseconds(us int64) string {
	if us >= 10_000 {
		return quantity.Count(uint64(us/1000)) + " ms"
	}
	return quantity.Count(uint64(max(us, 0))) + " µs"
}
