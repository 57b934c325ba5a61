package host

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
)

func TestLinuxFacts(t *testing.T) {
	for _, c := range []struct {
		name string
		of   map[string]string
		want Facts
	}{
		{"a virtual machine", map[string]string{
			"etc/os-release": "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
			"proc/cpuinfo":   "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\nflags\t\t: fpu tsc hypervisor avx\n\nprocessor\t: 1\nmodel name\t: another\n",
			"proc/meminfo":   "MemTotal:       24684096 kB\nMemFree:        1 kB\n",
			"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
			"sys/kernel/mm/transparent_hugepage/enabled":                      "always [madvise] never\n",
			"sys/class/dmi/id/sys_vendor":                                     "Amazon EC2\n",
			"sys/class/dmi/id/product_name":                                   "m6i.large\n",
			"proc/self/cgroup":                                                "0::/\n",
			"proc/self/mountinfo":                                             mountV2,
			"sys/fs/cgroup/cpu.max":                                           "150000 100000\n",
			"sys/fs/cgroup/memory.max":                                        "1073741824\n",
			".dockerenv":                                                      "",
		}, Facts{
			Distribution: "Debian GNU/Linux 12 (bookworm)", CPUModel: "Intel(R) Xeon(R) Processor @ 2.50GHz", MemoryBytes: 24684096 * 1024,
			ClockSource: "tsc", TransparentHugePages: "madvise", Product: "Amazon EC2 m6i.large", Virtual: new(true), Container: "docker",
			CgroupCores: new(1.5), CgroupMemoryBytes: new(uint64(1 << 30)),
		}},
		{"a machine whose cores are governed differently", map[string]string{
			"proc/cpuinfo": "model name : X\nflags : fpu tsc\n",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":  "powersave\n",
			"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":  "performance\n",
			"sys/devices/system/cpu/cpu10/cpufreq/scaling_governor": "powersave\n",
		}, Facts{CPUModel: "X", Virtual: new(false), CPUGovernor: "performance,powersave"}},
		{"an arm64 board", map[string]string{
			"proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
		}, Facts{CPUModel: "implementer 0x41 part 0xd0c"}},
		{"a host that tells nothing", nil, Facts{}},
		{"a host that tells nonsense", map[string]string{
			"etc/os-release": "PRETTY_NAME\n", "proc/cpuinfo": "model name\nCPU part : 1\n", "proc/meminfo": "MemTotal: much kB\n",
			"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise",
		}, Facts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got Facts
			linuxFacts(files(c.of), &got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEnvironmentDescribesThisHost(t *testing.T) {
	f := Environment(t.Context())
	if f.OS != runtime.GOOS || f.Arch != runtime.GOARCH || f.GoVersion != runtime.Version() {
		t.Errorf("built for %s/%s by %s, says Environment", f.OS, f.Arch, f.GoVersion)
	}
	if f.Cores < 1 || f.GOMAXPROCS < 1 {
		t.Errorf("%d cores, GOMAXPROCS %d", f.Cores, f.GOMAXPROCS)
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	t.Logf("%s", b)
	var back Facts
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	golden.Equal(t, f, back, "does not survive JSON")
}

func TestCanceledEnvironmentOmitsSlowFacts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := Environment(ctx)
	if f.Hostname != "" || f.Kernel != "" || f.CPUModel != "" {
		t.Errorf("asked the host though the context had ended: %+v", f)
	}
	if f.OS == "" {
		t.Error("left out what costs nothing")
	}
}
