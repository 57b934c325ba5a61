package host

import (
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

// number reads a file that holds one whole number; nil where it does not.
func number(root fs.FS, name string) *uint64 {
	n, err := strconv.ParseUint(text(root, name), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// kilobytes returns a line of /proc/meminfo in bytes. Its "kB" are of 1024.
func kilobytes(meminfo, key string) *uint64 {
	number, ok := strings.CutSuffix(field(meminfo, key), " kB")
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 54)
	if !ok || err != nil {
		return nil
	}
	return new(n * 1024)
}

// softLimit returns the limit in force of a line of /proc/self/limits.
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

// mostCPUs bounds what cpuList believes: Linux knows up to 8192.
const mostCPUs = 8192

// cpuList reads the kernel's lists of processors: "0-3,8". Nonsense is left out.
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
