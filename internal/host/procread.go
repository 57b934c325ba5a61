package host

import (
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

// number reads a file with one whole number; nil if it has none.
func number(root fs.FS, name string) *uint64 {
	n, err := strconv.ParseUint(text(root, name), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// kilobytes returns a value of /proc/meminfo in bytes. Its "kB" means 1024.
func kilobytes(meminfo, key string) *uint64 {
	number, ok := strings.CutSuffix(field(meminfo, key), " kB")
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 54)
	if !ok || err != nil {
		return nil
	}
	return new(n * 1024)
}

// softLimit returns the soft limit of a line of /proc/self/limits.
func softLimit(limits, name string) *uint64 {
	for line := range strings.Lines(limits) {
		rest, ok := strings.CutPrefix(line, name)
		f := strings.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		if f[0] == "unlimited" {
			return new(uint64(math.MaxUint64))
		}
		if n, err := strconv.ParseUint(f[0], 10, 64); err == nil {
			return &n
		}
	}
	return nil
}

// mostCPUs limits what cpuList accepts: Linux supports up to 8192.
const mostCPUs = 8192

// cpuList parses the kernel's processor lists: "0-3,8". It skips invalid entries.
func cpuList(list string) []int {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a < 0 || b >= mostCPUs {
			continue
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}
