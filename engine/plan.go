package engine

import "github.com/weirmq/weir/schedule"

// mostWalked is how many messages of a plan are visited one by one after the run: that takes some
// 20 ms, with gamma arrival 400. The rest is counted; with random arrival, by the rate.
const mostWalked = 2_000_000

// mostGroups is how many groups dueUntil makes of what it counts.
const mostGroups = 1 << 16

// dueUntil visits the messages of a part that are due until end, in order: the first individually,
// the rest in groups of one phase, each with the latest instant that a message of the group may
// have.
func (s *shape) dueUntil(p schedule.Part, end int64, visit func(due int64, n uint64)) {
	for index, due := range s.plan.Due(p) {
		if due > end {
			return
		}
		if index >= mostWalked {
			s.groupsUntil(p, index, due, end, visit)
			return
		}
		visit(due, 1)
	}
}

// groupsUntil visits the groups from the message with that index on.
func (s *shape) groupsUntil(p schedule.Part, index uint64, due, end int64, visit func(due int64, n uint64)) {
	end = min(end, s.plan.End()-1)
	width := (end-due)/mostGroups + 1
	before := uint64(0)
	for at := due; at <= end; {
		next := min(at+width, end+1)
		if at < s.from {
			next = min(next, s.from)
		}
		if n := s.plan.Remaining(p, index, due, next); n > before {
			visit(next-1, n-before)
			before = n
		}
		at = next
	}
}
