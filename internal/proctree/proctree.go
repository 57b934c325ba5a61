// Package proctree reads the process tree from Linux's /proc. It takes the file system as a parameter and
// compiles everywhere: without /proc it finds nothing.
package proctree

import (
	"bytes"
	"io/fs"
	"os"
	"slices"
	"strconv"
)

// A Stat describes one process.
type Stat struct {
	Pid    int
	Parent int
	State  byte   // as in ps(1): R, S, Z, ...
	Start  uint64 // start in ticks since boot: unique together with Pid

	// Its own, and those of ended children that it has waited for.
	User, System uint64 // ticks of processor time
	MajorFaults  uint64 // page faults that needed the disk
}

// Dead reports whether the process is a zombie.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' }

// Stopped reports whether a signal has stopped the process.
func (s Stat) Stopped() bool { return s.State == 'T' }

// Host is the file system of this host.
func Host() fs.FS { return os.DirFS("/") }

// One reads one process; false if it does not exist.
func One(root fs.FS, pid int) (Stat, bool) {
	b, err := fs.ReadFile(root, "proc/"+strconv.Itoa(pid)+"/stat")
	if err != nil {
		return Stat{}, false // it ended meanwhile
	}
	return parse(pid, b)
}

// parse parses "pid (name) state ppid ..."; proc(5) numbers the fields from 1. The name may contain
// anything, so it skips to the last parenthesis.
func parse(pid int, b []byte) (Stat, bool) {
	const state, parent, faults, user, system, ofChildren, start = 3, 4, 12, 14, 15, 2, 22
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) <= parent-state || len(f[0]) != 1 {
		return Stat{}, false
	}
	s := Stat{Pid: pid, State: f[0][0]}
	var err error
	if s.Parent, err = strconv.Atoi(string(f[parent-state])); err != nil {
		return Stat{}, false
	}
	number := func(n int) uint64 {
		if n-state >= len(f) {
			return 0
		}
		v, _ := strconv.ParseUint(string(f[n-state]), 10, 64) // some sandboxes show -1
		return v
	}
	s.MajorFaults = number(faults) + number(faults+1)
	s.User = number(user) + number(user+ofChildren)
	s.System = number(system) + number(system+ofChildren)
	s.Start = number(start)
	return s, true
}

// All reads every process, at about 20 µs each.
func All(root fs.FS) map[int]Stat {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil
	}
	all := make(map[int]Stat, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, ok := One(root, pid); ok {
			all[pid] = s
		}
	}
	return all
}

// Below returns the living descendants of a process, parents before their children, and siblings in order.
// The process itself is not included.
func Below(all map[int]Stat, pid int) []int {
	children := map[int][]int{}
	for p, s := range all {
		children[s.Parent] = append(children[s.Parent], p)
	}
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		slices.Sort(children[found[i]])
		found = append(found, children[found[i]]...)
		delete(children, found[i]) // visit once: the kernel has no cycles, but a torn read may
	}
	return found[1:]
}
