//go:build linux && (amd64 || arm64)

package pace

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// ticksOrdered reads the processor's counter once all instructions before it have completed.
func ticksOrdered() uint64

// ticksUnordered reads it without that wait: at most earlier.
func ticksUnordered() uint64

// counterName returns the counter that programs may read here as the kernel itself does, or "".
func counterName() string {
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return ""
	}
	var cpu []byte
	if runtime.GOARCH == "amd64" {
		if cpu, err = os.ReadFile("/proc/cpuinfo"); err != nil {
			return ""
		}
	}
	return counterOf(runtime.GOARCH, string(source), string(cpu))
}

// counterOf is counterName for the texts of these two files.
//
// That the kernel uses the TSC says that it found the counters of all cores in step. The flags say
// that its rate follows neither the frequency nor the sleep of a core. Its frequency need not be
// known: a [Follower] measures it.
func counterOf(arch, source, cpu string) string {
	switch source = strings.TrimSpace(source); {
	case arch == "arm64" && source == "arch_sys_counter":
		return "cntvct"
	case arch == "amd64" && source == "tsc" && hasFlags(cpu, "rdtscp", "constant_tsc", "nonstop_tsc"):
		return "tsc"
	}
	return ""
}

// hasFlags reports whether the first processor of a /proc/cpuinfo has all these flags.
func hasFlags(cpu string, flags ...string) bool {
	_, rest, _ := strings.Cut(cpu, "\nflags")
	line, _, _ := strings.Cut(rest, "\n")
	have := strings.Fields(line)
	for _, f := range flags {
		if !slices.Contains(have, f) {
			return false
		}
	}
	return true
}
