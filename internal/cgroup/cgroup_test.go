package cgroup

import (
	"strings"
	"testing"
)

func TestGroupIsBelowProcessCgroup(t *testing.T) {
	const (
		v2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		bound  = "30 23 0:26 /docker/abc /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n"
	)
	for _, x := range []struct{ groups, mounts, want string }{
		{"0::/\n", v2, "/sys/fs/cgroup/weir-1"},
		{"0::/user.slice/session-1.scope\n", v2, "/sys/fs/cgroup/user.slice/session-1.scope/weir-1"},
		{"5:devices:/x\n1:cpu:/\n0::/\n", hybrid, "/sys/fs/cgroup/unified/weir-1"},
		{"0::/docker/abc/in\n", bound, "/sys/fs/cgroup/in/weir-1"},
		{"0::/docker/abc\n", bound, "/sys/fs/cgroup/weir-1"},
		{"0::/elsewhere\n", bound, "is not mounted here"},
		{"0::/../outside\n", v2, "is not mounted here"},
		{"0::/\n", "", "is not mounted here"},
		{"5:devices:/x\n", hybrid, "no control groups of version 2"},
	} {
		got, err := below("weir-1", x.groups, x.mounts)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, x.want) || err == nil && got != x.want {
			t.Errorf("%q in %q: %s; want %s", x.groups, x.mounts, got, x.want)
		}
	}
}
