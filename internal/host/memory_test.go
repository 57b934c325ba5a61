package host

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestMemoryStaysWithinItsControlGroup(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	const room = 1 << 30
	limit := KeepWithin(room)
	if limit < room*8/10 || limit > 2*room || debug.SetMemoryLimit(-1) != limit {
		t.Errorf("a limit of %d bytes, in force %d; want nine tenths of 1 GiB and of what the test holds", limit, debug.SetMemoryLimit(-1))
	}
	debug.SetMemoryLimit(64 << 20) // GOMEMLIMIT
	if got := KeepWithin(room); got != 64<<20 {
		t.Errorf("a limit of %d bytes; want the user's own, 64 MiB", got)
	}
	if _, ok := memoryRoomIn(files(map[string]string{
		"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n",
	})); ok {
		t.Error("a group without a limit has one")
	}
	room2, ok := memoryRoomIn(files(map[string]string{
		"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountV2,
		"sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.current": "700\n", "sys/fs/cgroup/a/memory.stat": "inactive_file 100\n",
	}))
	if !ok || room2 != 400 {
		t.Errorf("room for %d bytes, %v; want 400", room2, ok)
	}
}
