package host

import (
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// memoryShare is the part of what a control group leaves this process that Go's
// collector keeps within. The rest is for what Go does not count: threads' stacks
// of C, the page cache that the kernel charges to the group.
const memoryShare = 0.9

// MemoryRoom returns how many bytes this process can still get before one of its
// control groups meets its limit, where the kernel ends one of the processes in it.
// ok is false where there is no limit, or it cannot be read.
func MemoryRoom() (room uint64, ok bool) { return memoryRoomIn(os.DirFS("/")) }

func memoryRoomIn(root fs.FS) (uint64, bool) { return findCgroup(root).memoryRoom(root) }

// KeepWithin has Go's collector keep this process within nine tenths of what it
// has and of room, as MemoryRoom returns it. A limit that is in force already, such
// as GOMEMLIMIT's, stays where it is lower. It returns the limit in force, in bytes.
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
