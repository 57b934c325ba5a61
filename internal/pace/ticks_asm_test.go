//go:build linux && (amd64 || arm64)

package pace

import (
	"strings"
	"testing"
)

func TestCounterReadWhereKernelDoes(t *testing.T) {
	const cpu = "processor\t: 0\nflags\t\t: fpu tsc rdtscp constant_tsc nonstop_tsc\nbugs\t:\n\nprocessor\t: 1\nflags\t\t: fpu\n"
	for _, c := range []struct{ name, arch, source, cpu, want string }{
		{"a TSC", "amd64", "tsc\n", cpu, "tsc"},
		{"a virtual machine's own clock", "amd64", "kvm-clock\n", cpu, ""},
		{"a TSC that the kernel gave up", "amd64", "hpet\n", cpu, ""},
		{"one that stops when the core sleeps", "amd64", "tsc\n", strings.ReplaceAll(cpu, "nonstop_tsc", ""), ""},
		{"one that follows the frequency", "amd64", "tsc\n", strings.ReplaceAll(cpu, " constant_tsc", ""), ""},
		{"no RDTSCP", "amd64", "tsc\n", strings.ReplaceAll(cpu, "rdtscp", ""), ""},
		{"nothing known of the processor", "amd64", "tsc\n", "", ""},
		{"arm64", "arm64", "arch_sys_counter\n", "", "cntvct"},
		{"arm64 with another source", "arm64", "timer\n", "", ""},
		{"neither", "riscv64", "tsc\n", cpu, ""},
	} {
		if got := counterOf(c.arch, c.source, c.cpu); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
