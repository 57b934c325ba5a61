package host

import (
	"io/fs"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/proctree"
)

// An account follows a sum over a tree. The kernel adds what an ended child had used to
// its parent, so that the sum over the living grows only. It dips while a process is
// between the two, and stays down where no process inherited.
type account struct {
	base, used int64
	dips       int
	open       bool // a sum has been seen
	lost       bool // one that the host did not tell
}

// take takes the next sum.
func (a *account) take(sum counter) {
	if !sum.ok {
		a.lost = true
		return
	}
	n := int64(min(sum.n, math.MaxInt64))
	if !a.open {
		a.open, a.base = true, n-a.used
	}
	switch {
	case n-a.base >= a.used:
		a.used, a.dips = n-a.base, 0
	case a.dips > 0:
		a.base, a.dips = n-a.used, 0
	default:
		a.dips = 1
	}
}

// now is what was used.
func (a *account) now() counter {
	return counter{uint64(a.used), a.open && !a.lost}
}

// anew has what comes next counted from its own beginning, after what was.
func (a *account) anew() { a.open, a.base, a.dips = true, -a.used, 0 }

// A treeSum sums up the processes of one server.
type treeSum struct {
	pids                    []int
	ticks                   uint64
	readBytes, writtenBytes uint64
	anonymous, shared       uint64 // bytes; shared is the most of one process
	ioUntold, memoryTold    bool
}

// add adds a process that is there, or was a moment ago.
func (t *treeSum) add(root fs.FS, s proctree.Stat) {
	t.pids = append(t.pids, s.Pid)
	t.ticks += s.Ticks
	read, written, ok := processIO(root, s.Pid)
	t.ioUntold = t.ioUntold || !ok
	t.readBytes += read
	t.writtenBytes += written
	if anonymous, shared, ok := processMemory(root, s.Pid); ok {
		t.memoryTold = true
		t.anonymous += anonymous
		t.shared = max(t.shared, shared)
	}
}

func (t *treeSum) read() counter    { return counter{t.readBytes, !t.ioUntold} }
func (t *treeSum) written() counter { return counter{t.writtenBytes, !t.ioUntold} }
func (t *treeSum) rss() counter     { return counter{t.anonymous + t.shared, t.memoryTold} }

// named returns the processes, the server's own first.
func (t *treeSum) named(own int) []int {
	slices.SortFunc(t.pids, func(a, b int) int {
		switch {
		case a == own:
			return -1
		case b == own:
			return 1
		}
		return a - b
	})
	return t.pids[:min(len(t.pids), mostPids)]
}
