package host

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/quantity"
)

// A simulatedHost is a simulated host: its files, the ones that differed a second earlier, and the results
// of its system calls.
type simulatedHost struct {
	name   string
	now    map[string]string
	before map[string]string
	calls  linuxCalls
}

const cpu = "sys/devices/system/cpu/"

// server returns the files of a host without any findings.
func server() map[string]string {
	f := map[string]string{
		"proc/cpuinfo":                               "model name : X\nflags : fpu tsc\n",
		"proc/meminfo":                               "MemTotal: 131072000 kB\nMemAvailable: 120000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
		"proc/self/status":                           "CapEff:\t0000000000800000\nCpus_allowed_list:\t0-7\n",
		"proc/self/stat":                             "99 (weir) S 1 1 1 0 0 0 0 0 0 0 1000 0 0 0\n",
		"proc/99/stat":                               "99 (weir) S 1 1 1 0 0 0 0 0 0 0 1000 0 0 0\n",
		"proc/self/environ":                          "HOME=/root\x00PATH=/bin\x00",
		"proc/self/limits":                           "Limit  Soft Limit\nMax open files            1048576   1048576   files\nMax locked memory  unlimited  unlimited bytes\nMax realtime priority  0  0\n",
		"proc/self/cgroup":                           "0::/\n",
		"proc/self/mountinfo":                        mountV2,
		"proc/self/timerslack_ns":                    "50000\n",
		"proc/stat":                                  "cpu 100000 0 0 1000000 0 0 0 0 0 0\n" + cores(8),
		"proc/vmstat":                                "pswpin 0\npswpout 0\n",
		"proc/loadavg":                               "0.10 0.05 0.01 1/200 4000\n",
		"proc/net/sockstat":                          "sockets: used 300\nTCP: inuse 20 orphan 0 tw 3 alloc 30 mem 1\n",
		"proc/net/sockstat6":                         "TCP6: inuse 5\n",
		"proc/sys/net/ipv4/ip_local_port_range":      "32768\t60999\n",
		"proc/sys/net/core/somaxconn":                "4096\n",
		"proc/sys/vm/swappiness":                     "60\n",
		"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
		"sys/kernel/mm/transparent_hugepage/defrag":  "always defer defer+madvise [madvise] never\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
		"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
		"sys/devices/system/node/node0/cpulist":                             "0-7\n",
		cpu + "isolated":                                                    "\n",
		cpu + "cpu0/cpufreq/scaling_governor":                               "performance\n",
		cpu + "cpu0/cpufreq/scaling_driver":                                 "intel_pstate\n",
		cpu + "intel_pstate/no_turbo":                                       "1\n",
		cpu + "cpuidle/current_driver":                                      "intel_idle\n",
		cpu + "cpu0/cpuidle/state0/name":                                    "POLL\n",
		cpu + "cpu0/cpuidle/state0/latency":                                 "0\n",
		cpu + "cpu0/cpuidle/state1/name":                                    "C1E\n",
		cpu + "cpu0/cpuidle/state1/latency":                                 "10\n",
		cpu + "cpu0/cpuidle/state2/name":                                    "C6\n",
		cpu + "cpu0/cpuidle/state2/latency":                                 "133\n",
		cpu + "cpu0/cpuidle/state2/disable":                                 "1\n",
		cpu + "vulnerabilities/meltdown":                                    "Mitigation: PTI\n",
		cpu + "vulnerabilities/spectre_v1":                                  "Mitigation: usercopy\n",
		cpu + "vulnerabilities/tsa":                                         "Not affected\n",
		"run/chrony/chronyd.pid":                                            "1\n",
	}
	for i := range 8 {
		f[fmt.Sprintf("%scpu%d/topology/thread_siblings_list", cpu, i)] = fmt.Sprintf("%d\n", i)
	}
	return f
}

// cores returns the lines of /proc/stat for n processors.
func cores(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "cpu%d 1 0 0 1 0 0 0 0 0 0\n", i)
	}
	return b.String()
}

// with returns files with changes; an empty text removes a file.
func with(files map[string]string, changes map[string]string) map[string]string {
	f := maps.Clone(files)
	for name, s := range changes {
		if s == "" {
			delete(f, name)
			continue
		}
		f[name] = s
	}
	return f
}

func without(files map[string]string, part string) map[string]string {
	f := maps.Clone(files)
	maps.DeleteFunc(f, func(name, _ string) bool { return strings.Contains(name, part) })
	return f
}

var goodCalls = linuxCalls{
	sync: &syncState{synchronised: true, errorUS: 412},
	work: &diskState{"/home/x", "ext4", 100 << 30, 400 << 30},
	temp: &diskState{"/tmp", "ext4", 100 << 30, 400 << 30},
}

func simulatedHosts() []simulatedHost {
	idle := map[string]string{"proc/stat": "cpu 99990 0 0 999210 0 0 0 0 0 0\n" + cores(8)}
	return []simulatedHost{
		{"a good server", server(), idle, goodCalls},
		{
			"a virtual machine with steal",
			with(without(without(server(), "cpufreq"), "cpuidle"), map[string]string{
				cpu + "intel_pstate/no_turbo":   "",
				"proc/cpuinfo":                  "model name : X\nflags : fpu tsc hypervisor\n",
				"sys/class/dmi/id/sys_vendor":   "Amazon EC2\n",
				"sys/class/dmi/id/product_name": "t3.medium\n",
				"proc/self/status":              "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-1\n",
				"proc/stat":                     "cpu 1000 0 0 8000 0 0 0 1000 0 0\n" + cores(2),
				"sys/devices/system/clocksource/clocksource0/current_clocksource":   "xen\n",
				"sys/devices/system/clocksource/clocksource0/available_clocksource": "xen tsc hpet\n",
				cpu + "cpu0/topology/thread_siblings_list":                          "0-1\n",
				cpu + "cpu1/topology/thread_siblings_list":                          "0-1\n",
				"proc/4711/stat": "4711 (a (very) odd\x1b[2J name) S 1 1 1 0 0 0 0 0 0 0 150 0 0 0\n",
				"proc/4712/stat": "4712 (a (very) odd\x1b[2J name) S 1 1 1 0 0 0 0 0 0 0 50 0 0 0\n",
				"proc/12/stat":   "12 (quiet) S 1 1 1 0 0 0 0 0 0 0 5 0 0 0\n",
			}),
			map[string]string{
				"proc/stat": "cpu 920 0 0 7890 0 0 0 990 0 0\n" + cores(2), "proc/4711/stat": "4711 (odd) S 1 1 1 0 0 0 0 0 0 0 90 0 0 0\n",
				"proc/4712/stat": "4712 (odd) S 1 1 1 0 0 0 0 0 0 0 30 0 0 0\n",
				"proc/99/stat":   "99 (weir) S 1 1 1 0 0 0 0 0 0 0 990 0 0 0\n",
				"proc/12/stat":   "12 (quiet) S 1 1 1 0 0 0 0 0 0 0 5 0 0 0\n",
			},
			goodCalls,
		},
		{
			"a container with a quota of version 2",
			with(server(), map[string]string{
				".dockerenv":                   "x",
				"proc/self/environ":            "KUBERNETES_SERVICE_HOST=10.0.0.1\x00POD_REQUESTS_CPU=500\x00POD_LIMITS_CPU=1500\x00POD_NODE_IP=10.0.0.5\x00POD_SYSTEM=10.0.0.5:9092\x00",
				"sys/fs/cgroup/cpu.max":        "150000 100000\n",
				"sys/fs/cgroup/cpu.stat":       "usage_usec 5\nnr_throttled 12\nthrottled_usec 340\n",
				"sys/fs/cgroup/memory.max":     "2147483648\n",
				"sys/fs/cgroup/memory.current": "2000000000\n",
				"sys/fs/cgroup/memory.stat":    "anon 1\ninactive_file 300000000\n",
				"run/chrony/chronyd.pid":       "",
			}),
			idle,
			linuxCalls{work: goodCalls.work, temp: &diskState{"/tmp", "tmpfs", 8 << 30, 8 << 30}},
		},
		{
			"a server that was busy a moment ago",
			with(server(), map[string]string{"proc/loadavg": "9.10 9.05 8.01 1/200 4000\n"}),
			idle, goodCalls,
		},
		{
			"a container with limits of version 1, and nothing throttled",
			with(server(), map[string]string{
				"run/.containerenv":                          "x",
				"proc/self/cgroup":                           "4:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n",
				"proc/self/mountinfo":                        mountRoot,
				"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "600000\n",
				"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
				"sys/fs/cgroup/cpu/cpu.stat":                 "nr_periods 9\nnr_throttled 0\nthrottled_time 0\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "8589934592\n",
				"sys/fs/cgroup/memory/memory.usage_in_bytes": "1073741824\n",
				"sys/fs/cgroup/memory/memory.stat":           "total_inactive_file 73741824\n",
			}),
			idle, goodCalls,
		},
		{
			"a neglected host",
			with(server(), map[string]string{
				"proc/self/status":            "CapEff:\t0\nCpus_allowed_list:\t2-3\n",
				"proc/self/limits":            "Max open files  256  4096  files\nMax locked memory  65536  65536 bytes\nMax realtime priority  0 0\n",
				"proc/meminfo":                "MemTotal: 4096000 kB\nMemAvailable: 300000 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n",
				"proc/vmstat":                 "pswpin 500\npswpout 900\n",
				"proc/stat":                   "cpu 100000 0 0 1000000 0 0 0 0 0 0\n" + cores(8),
				"proc/loadavg":                "9.10 9.05 8.01 12/200 4000\n",
				"proc/net/sockstat":           "TCP: inuse 100 orphan 0 tw 27000 alloc 30 mem 1\n",
				"proc/sys/net/core/somaxconn": "128\n",
				"sys/kernel/mm/transparent_hugepage/enabled":                        "[always] madvise never\n",
				"sys/kernel/mm/transparent_hugepage/defrag":                         "[always] defer madvise never\n",
				"sys/devices/system/clocksource/clocksource0/current_clocksource":   "hpet\n",
				"sys/devices/system/clocksource/clocksource0/available_clocksource": "hpet acpi_pm\n",
				"sys/devices/system/node/node1/cpulist":                             "4-7\n",
				cpu + "isolated":                                                    "3-5\n",
				cpu + "cpu0/cpufreq/scaling_governor":                               "powersave\n",
				cpu + "cpu0/cpufreq/scaling_driver":                                 "acpi-cpufreq\n",
				cpu + "intel_pstate/no_turbo":                                       "",
				cpu + "cpufreq/boost":                                               "1\n",
				cpu + "cpu0/cpuidle/state2/disable":                                 "0\n",
				cpu + "vulnerabilities/tsa":                                         "Vulnerable\n",
				"run/chrony/chronyd.pid":                                            "",
				cpu + "cpu0/topology/thread_siblings_list":                          "0,4\n", cpu + "cpu4/topology/thread_siblings_list": "0,4\n",
			}),
			map[string]string{"proc/stat": "cpu 99600 0 0 999600 0 0 0 0 0 0\n" + cores(8), "proc/vmstat": "pswpin 400\npswpout 900\n"},
			linuxCalls{
				sync: &syncState{errorUS: 16_000_000},
				work: &diskState{"/home/x", "nfs", 200 << 20, 400 << 30},
				temp: &diskState{"/tmp", "ext4", 3 << 30, 400 << 30},
			},
		},
		{
			"a host with small faults",
			with(server(), map[string]string{
				"proc/meminfo":                          "MemTotal: 131072000 kB\nMemAvailable: 120000000 kB\nSwapTotal: 1024 kB\nSwapFree: 1024 kB\n",
				"proc/sys/net/ipv4/ip_local_port_range": "60000 60999\n",
				cpu + "cpu0/cpufreq/scaling_governor":   "powersave\n",
				cpu + "isolated":                        "8-9\n",
				"proc/net/sockstat":                     "TCP: inuse 600 orphan 0 tw 0 alloc 30 mem 1\n",
				cpu + "intel_pstate/no_turbo":           "0\n",
				"proc/stat":                             "cpu 100000 0 0 1000000 0 0 0 30000 0 0\n" + cores(8),
			}),
			map[string]string{"proc/stat": "cpu 99900 0 0 999300 0 0 0 30000 0 0\n" + cores(8)},
			linuxCalls{sync: &syncState{synchronised: true, leap: true}, work: goodCalls.work, temp: goodCalls.temp},
		},
		{"a host that tells nothing", nil, nil, linuxCalls{}},
		{
			"a host that tells nonsense",
			map[string]string{
				"proc/self/status": "CapEff:\tzz\nCpus_allowed_list:\t9-,x,-3,5-4,99999999\n", "proc/self/limits": "Max open files\nMax locked memory much\n",
				"proc/meminfo": "MemAvailable: -1 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n", "proc/stat": "cpu 1 2\ncpu\n", "proc/loadavg": "high\n",
				"proc/sys/net/ipv4/ip_local_port_range": "70000 3\n", "proc/net/sockstat": "TCP:\n", "proc/self/stat": "", "proc/7/stat": "7 )x( S",
				"sys/devices/system/clocksource/clocksource0/current_clocksource": "sundial\n",
				cpu + "cpu0/cpuidle/state0/latency":                               "long\n",
				cpu + "intel_pstate/no_turbo":                                     "maybe\n",
			},
			nil,
			linuxCalls{},
		},
	}
}

func (p simulatedHost) examine() []Finding {
	before := readUse(files(with(p.now, p.before)))
	o := observeLinux(before, files(p.now), p.calls)
	o.pod.resolve(context.Background()) // of addresses alone
	return examine(&o)
}

func TestDoctorFindsMeasurementProblems(t *testing.T) {
	for _, p := range simulatedHosts() {
		t.Run(p.name, func(t *testing.T) {
			var b strings.Builder
			for _, f := range p.examine() {
				fmt.Fprintf(&b, "%-9s %s: %s\n", f.Health, f.Name, f.Found)
				if f.Do != "" {
					fmt.Fprintf(&b, "          %s\n", f.Do)
				}
				for _, c := range f.Commands {
					fmt.Fprintf(&b, "          $ %s\n", c)
				}
			}
			file := filepath.Join("testdata", "doctor", strings.ReplaceAll(strings.ReplaceAll(p.name, ",", ""), " ", "-")+".txt")
			golden.File(t, file, b.String())
		})
	}
}

// TestDoctorsFindingsAreComplete checks every finding of every host for the fields that its reader
// needs.
func TestDoctorsFindingsAreComplete(t *testing.T) {
	healths := map[string][]Health{}
	for _, p := range simulatedHosts() {
		for _, f := range p.examine() {
			healths[f.Name] = append(healths[f.Name], f.Health)
			if f.Found == "" || f.Why == "" {
				t.Errorf("%s: %s: found %q, why %q", p.name, f.Name, f.Found, f.Why)
			}
			if wrong := f.Health == Warn || f.Health == Bad; wrong != (f.Do != "") || len(f.Commands) > 0 && f.Do == "" {
				t.Errorf("%s: %s is %s, to do: %q %q", p.name, f.Name, f.Health, f.Do, f.Commands)
			}
			if f.Do != "" && !strings.HasSuffix(f.Do, ".") {
				t.Errorf("%s: %s: %q is not a sentence", p.name, f.Name, f.Do)
			}
		}
	}
	if len(healths) != len(checks) {
		t.Errorf("%d names for %d checks", len(healths), len(checks))
	}
	for name, hs := range healths {
		if !slices.Contains(hs, Healthy) || !slices.Contains(hs, Unknown) {
			t.Errorf("%s was never ok, or never not known: %v", name, hs)
		}
		if always := []string{"timers", "mitigations"}; !slices.Contains(always, name) && !slices.Contains(hs, Warn) && !slices.Contains(hs, Bad) {
			t.Errorf("%s never found anything: %v", name, hs)
		}
	}
}

func TestWellTunedServerPassesDoctor(t *testing.T) {
	for _, f := range simulatedHosts()[0].examine() {
		if f.Health != Healthy {
			t.Errorf("%s is %s: %s", f.Name, f.Health, f.Found)
		}
	}
}

func TestExamineLooksAtThisHost(t *testing.T) {
	start := time.Now()
	findings := Examine(t.Context(), CheckTarget{Work: t.TempDir(), Temp: "/nowhere", Sample: time.Millisecond})
	if len(findings) != len(checks) {
		t.Errorf("%d findings of %d checks", len(findings), len(checks))
	}
	for _, f := range findings {
		t.Logf("%-9s %s: %s", f.Health, f.Name, f.Found)
		if f.Name == "cores" && f.Health == Unknown || f.Name == "temporary folder" && f.Health != Unknown {
			t.Errorf("%s: %s: %s", f.Name, f.Health, f.Found)
		}
	}
	t.Logf("took %v", time.Since(start))
}

func TestSizesAndCountsAreWrittenShort(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 10 << 20: "10.0 MiB", 999 << 20: "999 MiB", 1023 << 20: "1.00 GiB", 5 << 50: "5120 TiB",
	} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q; want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := quantity.Count(n); got != want {
			t.Errorf("quantity.Count(%d) = %q; want %q", n, got, want)
		}
	}
}
