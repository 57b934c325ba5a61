// Package cgroup finds the version 2 control group of this process.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// Path returns the path of the control group of this process, or with a name that of a group with
// that name below it, which need not exist.
func Path(name string) (string, error) {
	groups, err1 := os.ReadFile("/proc/self/cgroup")
	mounts, err2 := os.ReadFile("/proc/self/mountinfo")
	if err := errors.Join(err1, err2); err != nil {
		return "", fmt.Errorf("looking for control groups: %w", err)
	}
	return below(name, string(groups), string(mounts))
}

// below returns the path of a control group with that name below that of a process. groups and mounts
// are the contents of the process's cgroup and mountinfo files.
func below(name, groups, mounts string) (string, error) {
	own := ""
	for line := range strings.Lines(groups) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = rest
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) == 0 || kind[0] != "cgroup2" {
			continue
		}
		root, at := fields[3], fields[4]
		if rest, ok := strings.CutPrefix(own, strings.TrimSuffix(root, "/")); ok && own != "" && !strings.Contains(own, "/..") {
			return path.Join(at, rest, name), nil
		}
	}
	if own == "" {
		return "", errors.New("the kernel has no control groups of version 2 (mount -t cgroup2 none /sys/fs/cgroup)")
	}
	return "", fmt.Errorf("the control group %s of this process is not mounted here (mount -t cgroup2 none /sys/fs/cgroup)", own)
}
