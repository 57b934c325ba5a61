package host

import (
	"testing"
	"testing/fstest"
)

// files returns a file system with the given names and contents.
func files(of map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range of {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

const (
	mountV2   = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsV1  = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	mountRoot = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
)

func TestCgroupLimits(t *testing.T) {
	type limits struct {
		cores     float64
		hasCores  bool
		memory    uint64
		hasMemory bool
		ns        uint64
		periods   uint64
		throttles bool
	}
	for _, c := range []struct {
		name string
		of   map[string]string
		want limits
	}{
		{"version 2, a service in a slice, the slice is tighter", map[string]string{
			"proc/self/cgroup":                           "0::/a.slice/b.service\n",
			"proc/self/mountinfo":                        mountV2,
			"sys/fs/cgroup/cpu.stat":                     "usage_usec 77\nuser_usec 70\n",
			"sys/fs/cgroup/a.slice/cpu.max":              "150000 100000\n",
			"sys/fs/cgroup/a.slice/cpu.stat":             "usage_usec 9\nnr_periods 10\nnr_throttled 3\nthrottled_usec 500\n",
			"sys/fs/cgroup/a.slice/memory.max":           "max\n",
			"sys/fs/cgroup/a.slice/b.service/cpu.max":    "400000 100000\n",
			"sys/fs/cgroup/a.slice/b.service/cpu.stat":   "nr_periods 10\nnr_throttled 1\nthrottled_usec 20\n",
			"sys/fs/cgroup/a.slice/b.service/memory.max": "1073741824\n",
		}, limits{1.5, true, 1 << 30, true, 520_000, 4, true}},
		{"version 2, in a container's own namespace", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"proc/self/mountinfo":      mountV2,
			"sys/fs/cgroup/cpu.max":    "max 100000\n",
			"sys/fs/cgroup/memory.max": "max\n",
			"sys/fs/cgroup/cpu.stat":   "nr_throttled 0\nthrottled_usec 0\n",
		}, limits{throttles: true}},
		{"version 2, a group outside of the namespace", map[string]string{
			"proc/self/cgroup":      "0::/../other\n",
			"proc/self/mountinfo":   mountV2,
			"sys/fs/cgroup/cpu.max": "50000 100000\n",
		}, limits{cores: 0.5, hasCores: true}},
		{"version 2, a session without the controller", map[string]string{
			"proc/self/cgroup":                          "0::/user.slice/1.scope\n",
			"proc/self/mountinfo":                       mountV2,
			"sys/fs/cgroup/cpu.stat":                    "usage_usec 77\nuser_usec 70\n",
			"sys/fs/cgroup/user.slice/cpu.stat":         "usage_usec 7\n",
			"sys/fs/cgroup/user.slice/1.scope/cpu.stat": "usage_usec 7\n",
		}, limits{throttles: true}},
		{"version 1, on the host", map[string]string{
			"proc/self/cgroup":                                  "8:memory:/m\n4:cpu,cpuacct:/c\n0::/\n",
			"proc/self/mountinfo":                               mountsV1 + mountV2,
			"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us":      "200000\n",
			"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us":     "100000\n",
			"sys/fs/cgroup/cpu,cpuacct/c/cpu.stat":              "nr_periods 5\nnr_throttled 2\nthrottled_time 12345\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":        "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":       "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":        "9223372036854771712\n",
			"sys/fs/cgroup/memory/m/memory.limit_in_bytes":      "536870912\n",
			"sys/fs/cgroup/memory/m/memory.soft_limit_in_bytes": "1\n",
		}, limits{2, true, 512 << 20, true, 12345, 2, true}},
		{"version 1, in a container that sees its host's names", map[string]string{
			"proc/self/cgroup":                           "8:memory:/docker/abc\n4:cpu:/docker/abc\n",
			"proc/self/mountinfo":                        mountRoot,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, limits{cores: 1, hasCores: true}},
		{"no control groups", map[string]string{}, limits{}},
		{"groups but no mount", map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": "\n"}, limits{}},
		{"nonsense", map[string]string{
			"proc/self/cgroup":         "::\nx\n0::/a\n",
			"proc/self/mountinfo":      "a b c - d\n - cgroup2\n" + mountV2,
			"sys/fs/cgroup/cpu.max":    "0 0\n",
			"sys/fs/cgroup/a/cpu.max":  "lots\n",
			"sys/fs/cgroup/memory.max": "-3\n",
			"sys/fs/cgroup/cpu.stat":   "throttled_usec many\n",
		}, limits{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := files(c.of)
			g := findCgroup(root)
			var got limits
			got.cores, got.hasCores = g.cores(root)
			got.memory, got.hasMemory = g.memoryLimit(root)
			got.ns, got.periods, got.throttles = g.throttled(root)
			if got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}
