package host

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A cgroup locates the kernel's limits on this process, for processor and memory: the folder of its
// own group and those of all parent groups up to the mount point. All are read, because each of them
// limits. Both versions of the hierarchy are supported, also side by side. Folders are relative to the
// root of the file system.
type cgroup struct {
	cpu, memory     []string
	cpuV2, memoryV2 bool
}

// A cgroupMount is one line of /proc/self/mountinfo.
type cgroupMount struct {
	root, point string
	v2          bool
	controllers []string // for version 1
}

// findCgroup locates the groups of this process. If it cannot, the lists are empty and all figures are
// unknown.
func findCgroup(root fs.FS) cgroup {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return cgroup{}
	}
	mountinfo, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return cgroup{}
	}
	mounts := cgroupMounts(string(mountinfo))
	var g cgroup
	g.cpu, g.cpuV2 = cgroupFolders(string(own), mounts, "cpu")
	g.memory, g.memoryV2 = cgroupFolders(string(own), mounts, "memory")
	return g
}

// cgroupMounts finds the hierarchies. A line reads, after proc(5):
// 36 35 98:0 /root /point rw,noatime master:1 - cgroup cgroup rw,cpu,cpuacct
func cgroupMounts(mountinfo string) []cgroupMount {
	var mounts []cgroupMount
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		if !ok {
			continue
		}
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 5 || len(r) < 3 {
			continue
		}
		switch m := (cgroupMount{root: l[3], point: l[4]}); r[0] {
		case "cgroup":
			m.controllers = strings.Split(r[2], ",")
			mounts = append(mounts, m)
		case "cgroup2":
			m.v2 = true
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// cgroupFolders lists the folders whose limits apply to this process for a controller. own is
// /proc/self/cgroup, with lines such as 4:cpu,cpuacct:/a/b in version 1 and 0::/a/b in version 2.
// Version 2 applies only if no version 1 hierarchy has the controller.
func cgroupFolders(own string, mounts []cgroupMount, controller string) (folders []string, v2 bool) {
	for _, v2 = range []bool{false, true} {
		for line := range strings.Lines(own) {
			part := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(part) != 3 {
				continue
			}
			if v2 != (part[0] == "0" && part[1] == "") || !v2 && !slices.Contains(strings.Split(part[1], ","), controller) {
				continue
			}
			for _, m := range mounts {
				if m.v2 == v2 && (v2 || slices.Contains(m.controllers, controller)) {
					return upTo(m, part[2]), v2
				}
			}
		}
	}
	return nil, false
}

// upTo lists a group's folder within a mounted hierarchy and its parents up to the mount. For a group
// outside of the mount, as when a container sees its host's path, it returns the mount itself.
func upTo(m cgroupMount, group string) []string {
	point := strings.TrimPrefix(path.Clean(m.point), "/")
	rel := ""
	if root := strings.TrimSuffix(m.root, "/"); group == root || strings.HasPrefix(group, root+"/") {
		rel = strings.Trim(strings.TrimPrefix(group, root), "/")
	}
	if !fs.ValidPath(path.Join(point, rel)) || slices.Contains(strings.Split(rel, "/"), "..") {
		rel = ""
	}
	folders := []string{path.Join(point, rel)}
	for rel != "" {
		if rel = path.Dir(rel); rel == "." {
			rel = ""
		}
		folders = append(folders, path.Join(point, rel))
	}
	return folders
}

// cores returns the tightest processor quota of all groups, in cores; ok is false if there is none or
// it cannot be read.
func (g cgroup) cores(root fs.FS) (cores float64, ok bool) {
	for _, dir := range g.cpu {
		var quota, period float64
		var err1, err2 error
		if g.cpuV2 { // "max 100000" or "150000 100000"
			f := strings.Fields(text(root, path.Join(dir, "cpu.max")))
			if len(f) != 2 {
				continue
			}
			quota, err1 = strconv.ParseFloat(f[0], 64)
			period, err2 = strconv.ParseFloat(f[1], 64)
		} else { // -1: no quota
			quota, err1 = strconv.ParseFloat(text(root, path.Join(dir, "cpu.cfs_quota_us")), 64)
			period, err2 = strconv.ParseFloat(text(root, path.Join(dir, "cpu.cfs_period_us")), 64)
		}
		if err1 != nil || err2 != nil || !(quota > 0) || !(period > 0) {
			continue
		}
		if c := quota / period; !ok || c < cores {
			cores, ok = c, true
		}
	}
	return cores, ok
}

// unlimitedMemory is the threshold above which a version 1 limit means none: the kernel reports the
// largest number of whole pages below 2^63.
const unlimitedMemory = 1 << 62

// memoryLimit returns the tightest memory limit of all groups, in bytes; ok is false if there is none
// or it cannot be read.
func (g cgroup) memoryLimit(root fs.FS) (limit uint64, ok bool) {
	file := "memory.limit_in_bytes"
	if g.memoryV2 {
		file = "memory.max"
	}
	for _, dir := range g.memory {
		n, err := strconv.ParseUint(text(root, path.Join(dir, file)), 10, 64)
		if err != nil || n >= unlimitedMemory { // "max" in version 2
			continue
		}
		if !ok || n < limit {
			limit, ok = n, true
		}
	}
	return limit, ok
}

// memoryRoom returns how many bytes can be allocated before one of the groups reaches its limit, not
// counting reclaimable page cache as used; ok is false if there is no limit or it cannot be read.
func (g cgroup) memoryRoom(root fs.FS) (room uint64, ok bool) {
	used, cache := "memory.usage_in_bytes", "total_inactive_file"
	if g.memoryV2 {
		used, cache = "memory.current", "inactive_file"
	}
	for _, dir := range g.memory {
		one := g
		one.memory = []string{dir}
		limit, limited := one.memoryLimit(root)
		n := number(root, path.Join(dir, used))
		if !limited || n == nil {
			continue
		}
		for key, c := range pairs(text(root, path.Join(dir, "memory.stat"))) {
			if key == cache {
				*n -= min(*n, c)
			}
		}
		if r := limit - min(limit, *n); !ok || r < room {
			room, ok = r, true
		}
	}
	return room, ok
}

// throttled returns for how long, and in how many periods, quotas stopped this process. Times of
// nested groups are added, although two groups may have stopped it at once. A group without these
// counters (the root, or a version 2 group without the controller) has no quota. ok is false if no
// group can be read.
func (g cgroup) throttled(root fs.FS) (ns, periods uint64, ok bool) {
	for _, dir := range g.cpu {
		for key, n := range pairs(text(root, path.Join(dir, "cpu.stat"))) {
			ok = true
			switch key {
			case "throttled_usec": // version 2
				ns += n * 1000
			case "throttled_time": // version 1, ns
				ns += n
			case "nr_throttled":
				periods += n
			}
		}
	}
	return ns, periods, ok
}
