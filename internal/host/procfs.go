package host

import (
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// This file reads Linux's /proc and /sys. The file system is a parameter and the code compiles
// everywhere, so that tests can simulate hosts.

// text reads a small file and trims white space; empty if unreadable.
func text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// pairs yields the "key number" lines of a file like /proc/vmstat, skipping others.
func pairs(file string) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for line := range strings.Lines(file) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseUint(value, 10, 64)
			if err == nil && !yield(key, n) {
				return
			}
		}
	}
}

// field returns the value of the first "key : value" line of a file like /proc/cpuinfo.
func field(file, key string) string {
	for line := range strings.Lines(file) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// linuxFacts fills in the facts from /proc, /sys and /etc.
func linuxFacts(root fs.FS, f *Facts) {
	f.Distribution = osRelease(text(root, "etc/os-release"))
	cpuinfo := text(root, "proc/cpuinfo")
	f.CPUModel = cpuModel(cpuinfo)
	if total := kilobytes(text(root, "proc/meminfo"), "MemTotal"); total != nil {
		f.MemoryBytes = *total
	}
	f.ClockSource = text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")
	f.CPUGovernor = governors(root)
	f.TransparentHugePages = chosen(text(root, "sys/kernel/mm/transparent_hugepage/enabled"))
	g := findCgroup(root)
	if cores, ok := g.cores(root); ok {
		f.CgroupCores = &cores
	}
	if limit, ok := g.memoryLimit(root); ok {
		f.CgroupMemoryBytes = &limit
	}
	f.Virtual = virtual(cpuinfo)
	f.Product = strings.TrimSpace(text(root, "sys/class/dmi/id/sys_vendor") + " " + text(root, "sys/class/dmi/id/product_name"))
	f.Container = container(root)
}

// osRelease returns PRETTY_NAME of os-release(5).
func osRelease(file string) string {
	for line := range strings.Lines(file) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// cpuModel returns the processor's name. On arm64, where the kernel reports none, it returns the
// numbers by which it can be looked up.
func cpuModel(cpuinfo string) string {
	if m := field(cpuinfo, "model name"); m != "" {
		return m
	}
	implementer, part := field(cpuinfo, "CPU implementer"), field(cpuinfo, "CPU part")
	if implementer == "" || part == "" {
		return ""
	}
	return "implementer " + implementer + " part " + part
}

// governors returns the distinct frequency governors of all cores.
func governors(root fs.FS) string {
	files, err := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	if err != nil {
		return ""
	}
	var all []string
	for _, file := range files {
		if g := text(root, file); g != "" {
			all = append(all, g)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}

// chosen returns the bracketed word of a line like "always [madvise] never".
func chosen(line string) string {
	_, rest, _ := strings.Cut(line, "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return word
}

// virtual reports whether the processor reports a hypervisor. Only x86 has the flag; nil elsewhere.
func virtual(cpuinfo string) *bool {
	flags := field(cpuinfo, "flags")
	if flags == "" {
		return nil
	}
	v := slices.Contains(strings.Fields(flags), "hypervisor")
	return &v
}

// container detects the container manager by the marker that it leaves.
func container(root fs.FS) string {
	if name := text(root, "run/systemd/container"); name != "" {
		return name
	}
	for _, mark := range []struct{ file, name string }{
		{".dockerenv", "docker"},
		{"run/.containerenv", "podman"},
		{"var/run/secrets/kubernetes.io", "kubernetes"},
	} {
		if _, err := fs.Stat(root, mark.file); err == nil {
			return mark.name
		}
	}
	return ""
}

// jiffies are the processor times of all cores since boot, in the kernel's
// ticks.
type jiffies struct {
	busy, steal, total uint64
	cores              int // 0: unknown
	ok                 bool
}

// readJiffies reads /proc/stat. Guest time is already included in user and nice.
func readJiffies(root fs.FS) jiffies {
	stat := text(root, "proc/stat")
	var h hostCounters
	if h.readStat(stat); !h.user.ok {
		return jiffies{}
	}
	busy := h.user.n + h.system.n
	return jiffies{busy: busy, steal: h.steal.n, total: busy + h.idle.n + h.iowait.n + h.steal.n, cores: processors(stat), ok: true}
}

// readWaited sums how long the threads of this process waited for a core.
func readWaited(root fs.FS) (c counter) {
	threads, err := fs.ReadDir(root, "proc/self/task")
	if err != nil {
		return counter{}
	}
	for _, t := range threads {
		waited := threadWaited(root, "self", t.Name())
		c.n, c.ok = c.n+waited.n, c.ok || waited.ok
	}
	return c
}

// threadWaited reads for how many ns a thread was ready to run and had no core: the second number of its schedstat.
func threadWaited(root fs.FS, pid, thread string) counter {
	f := strings.Fields(text(root, "proc/"+pid+"/task/"+thread+"/schedstat"))
	if len(f) != 3 {
		return counter{}
	}
	n, err := strconv.ParseUint(f[1], 10, 63)
	return counter{n, err == nil}
}

// readSwap reads how many pages the host swapped in and out since boot.
func readSwap(root fs.FS) (in, out counter) {
	for key, n := range pairs(text(root, "proc/vmstat")) {
		switch key {
		case "pswpin":
			in = counter{n, true}
		case "pswpout":
			out = counter{n, true}
		}
	}
	return in, out
}
