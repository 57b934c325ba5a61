package broker

import (
	"slices"

	"github.com/weirmq/weir/internal/proctree"
)

// descendants returns a process and all that stem from it, as long as their
// parents live.
func descendants(pid int) []int {
	below := proctree.Below(proctree.All(proctree.Host()), pid)
	slices.Sort(below)
	return append([]int{pid}, below...)
}
