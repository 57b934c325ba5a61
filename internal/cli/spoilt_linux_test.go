package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// The kernel itself causes what the checks for throttling and swapping detect. This needs private control
// groups and swap space, which root has on its own machine but mostly not in a container. If the kernel
// refuses, its error is the reason to skip; the same checks on figures are tested in internal/judge.
func TestThrottledOrSwappingRunIsNotValid(t *testing.T) {
	needs.Time(t)
	// The quota is a fifth of a core. A group that is in another shares that one's.
	for name, quota := range map[string]struct{ outer, inner bool }{
		"by the quota of its control group":      {inner: true},
		"by the quota of a group around its own": {outer: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := hierarchyOf(t, "cpu")
			outer := h.group(t, h.dir)
			inner := h.group(t, outer)
			for dir, has := range map[string]bool{outer: quota.outer, inner: quota.inner} {
				if has {
					h.set(t, dir, "cpu.max", "20000 100000", "cpu.cfs_period_us", "100000", "cpu.cfs_quota_us", "20000")
				}
			}
			f := &flight{
				groups: []string{inner},
				args:   []string{"run", "--driver", "chan", "--rate", "20000/s", "--warmup", "200ms", "--measure", "3s", "--out", "r"},
			}
			f.fly(t)
			v, r := verdictOf(t, f.dir)
			c := inDoubt(t, v, judge.CheckThrottling)
			if !regexp.MustCompile(`^stopped for [0-9.]+ m?s over all cores, in [0-9]+ periods$`).MatchString(c.Value) || c.Limit != "never" || !strings.Contains(c.Why, "quota") {
				t.Errorf("throttling: %+v", c)
			}
			if u := r.Host.Usage; u.Cores != 0.2 {
				t.Errorf("it had %v cores; want the quota, 0.2", u.Cores)
			}
			t.Logf("%s: %s", v.Status, c.Value)
		})
	}
	t.Run("by swapping", func(t *testing.T) {
		h := hierarchyOf(t, "memory")
		swapOn(t, 256<<20)
		dir := h.group(t, h.dir)
		// Of some 90 MiB for messages alone.
		h.set(t, dir, "memory.max", "48M", "memory.limit_in_bytes", "48M")
		f := &flight{
			groups: []string{dir},
			args: []string{
				"run", "--driver", "chan", "--option", "capacity=4096", "--rate", "3000/s", "--size", "32KiB", "--in-flight", "3000", "--warmup", "200ms", "--measure", "3s", "--out", "r",
			},
		}
		f.fly(t)
		if !strings.Contains(f.stderr.String(), "and messages in flight may take 93 MiB: the kernel may kill it") {
			t.Errorf("it was not warned:\n%s", &f.stderr)
		}
		v, _ := verdictOf(t, f.dir)
		c := inDoubt(t, v, judge.CheckSwap)
		if !regexp.MustCompile(`^[0-9,]+ bytes in, [0-9,]+ bytes out$`).MatchString(c.Value) || c.Limit != "nothing" || !strings.Contains(c.Why, "swap") {
			t.Errorf("swap: %+v", c)
		}
		t.Logf("%s: %s", v.Status, c.Value)
	})
}

// inDoubt returns a check that must be suspect, or invalid, and the run with it.
func inDoubt(t *testing.T, v result.Verdict, name string) result.Check {
	t.Helper()
	doubted(t, v, name)
	i := slices.IndexFunc(v.Checks, func(c result.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %s: %+v", name, v.Checks)
	}
	return v.Checks[i]
}

// A hierarchy is where groups of one controller are made, in the kernel's first
// version of them or its second.
type hierarchy struct {
	dir        string
	controller string
	v2         bool
}

// hierarchyOf finds the one of a controller, and skips the test where there is
// none.
func hierarchyOf(t *testing.T, controller string) hierarchy {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		needs.Host(t, "cgroups", err)
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 4:
		case f[2] == "cgroup" && slices.Contains(strings.Split(f[3], ","), controller):
			return hierarchy{f[1], controller, false}
		case f[2] == "cgroup2":
			has, _ := os.ReadFile(filepath.Join(f[1], "cgroup.controllers")) // unread it has none
			if slices.Contains(strings.Fields(string(has)), controller) {
				return hierarchy{f[1], controller, true}
			}
		}
	}
	needs.Host(t, "cgroups", "no hierarchy with the controller "+controller)
	return hierarchy{}
}

// group makes a group in another that is removed when the test ends, and skips
// the test where the kernel makes none.
func (h hierarchy) group(t *testing.T, parent string) string {
	t.Helper()
	if h.v2 {
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+h.controller), 0); err != nil {
			needs.Host(t, "cgroups", err)
		}
	}
	dir := filepath.Join(parent, fmt.Sprintf("weir-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		needs.Host(t, "cgroups", err)
	}
	t.Cleanup(func() {
		// What ran there may take a moment to be gone.
		must.Until(t, "the end of the control group", func() bool {
			err := os.Remove(dir)
			return err == nil || errors.Is(err, os.ErrNotExist)
		})
	})
	return dir
}

// set writes a setting of a group: in version 2 the first name and value, in
// version 1 all the others in turn.
func (h hierarchy) set(t *testing.T, dir, v2, value string, v1 ...string) {
	t.Helper()
	settings := v1
	if h.v2 {
		settings = []string{v2, value}
	}
	for s := range slices.Chunk(settings, 2) {
		if err := os.WriteFile(filepath.Join(dir, s[0]), []byte(s[1]), 0); err != nil {
			needs.Host(t, "cgroups", err)
		}
	}
}

// swapOn adds a file to the host's swap space until the test ends, and skips the
// test where it cannot.
func swapOn(t *testing.T, size int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "swap")
	f := must.Get(os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600))(t)
	// Written, since a file with holes is refused.
	zeros := make([]byte, 1<<20)
	for range size / int64(len(zeros)) {
		if _, err := f.Write(zeros); err != nil {
			needs.Host(t, "swap", err)
		}
	}
	must.Do(t, errors.Join(f.Sync(), f.Close()))
	for _, command := range [][]string{{"mkswap", path}, {"swapon", path}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1]).CombinedOutput(); err != nil {
			needs.Host(t, "swap", fmt.Sprintf("%s: %v: %s", command[0], err, bytes.TrimSpace(out)))
		}
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "swapoff", path).CombinedOutput(); err != nil {
			t.Errorf("the swap space is left: %v: %s", err, bytes.TrimSpace(out))
		}
	})
}
