package broker

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// descendants returns a process and all that stem from it, as long as their
// parents live.
func descendants(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{pid}
	}
	children := map[int][]int{}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // gone meanwhile
		}
		// "pid (name) state ppid ...": the name may hold anything, so from its end.
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(f) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(f[1])); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	slices.Sort(found[1:])
	return found
}
