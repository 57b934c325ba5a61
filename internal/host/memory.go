package host

import (
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// memoryShare is the share of a control group's remaining memory that Go's collector may use. The rest
// is for what Go does not count: stacks of C threads and page cache charged to the group.
const memoryShare = 0.9

// MemoryRoom returns how many bytes this process can still allocate before one of its control groups
// reaches its limit, at which point the kernel kills a process in it. ok is false if there is no limit
// or it cannot be read.
func MemoryRoom() (room uint64, ok bool) { return memoryRoomIn(os.DirFS("/")) }

func memoryRoomIn(root fs.FS) (uint64, bool) { return findCgroup(root).memoryRoom(root) }

// KeepWithin sets Go's memory limit to nine tenths of what this process has plus room, as returned by
// MemoryRoom. A lower limit already in force, such as GOMEMLIMIT's, stays. It returns the limit in
// force, in bytes.
func KeepWithin(room uint64) int64 {
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(held)
	has := held[0].Value.Uint64() - held[1].Value.Uint64()
	limit := int64(min(memoryShare*float64(has+room), math.MaxInt64/2))
	if now := debug.SetMemoryLimit(-1); now <= limit {
		return now
	}
	debug.SetMemoryLimit(limit)
	return limit
}
