package coordinator

import (
	"slices"

	"github.com/weirmq/weir/measure"
)

// seconds sums what several agents did in the same second, or fraction of one, and emits each sum
// when all agents have reported it or a later one, or after graceLimit; late reports are emitted
// separately. Nothing is lost or counted twice: only the line of a file in which it appears depends
// on when it arrived. It holds at most as many seconds as an agent is late.
type seconds struct {
	emit    func(*measure.Interval)
	every   int64         // ns, the length of a "second" here; 0: a second
	workers int           // number of workers that report each second
	latest  map[int]int64 // the last second reported by each agent
	open    []*second
	spare   []*second
	largest measure.Backlog // room for add
	done    int64           // seconds up to here were emitted
}

// A second is the sum of the reports of one second.
type second struct {
	index int64
	began int64            // when the first of it came
	sum   measure.Interval // Backlog is the largest reported
}

// add adds an agent's interval at the instant now.
func (s *seconds) add(agent int, iv *measure.Interval, now int64) {
	if s.emit == nil {
		return
	}
	if s.workers <= 1 && len(s.open) == 0 {
		s.emit(iv)
		return
	}
	every := s.every
	if every <= 0 {
		every = 1e9
	}
	index := iv.To / every
	if s.latest == nil {
		s.latest = map[int]int64{}
	}
	s.latest[agent] = max(s.latest[agent], index)
	i, found := slices.BinarySearchFunc(s.open, index, func(x *second, index int64) int { return int(x.index - index) })
	switch {
	case index < s.done && !found:
		s.emit(iv) // too late for its second
		return
	case !found:
		x := s.fresh()
		x.index, x.began = index, now
		x.sum.Assign(iv)
		s.open = slices.Insert(s.open, i, x)
	default:
		x := s.open[i]
		s.largest = append(s.largest[:0], x.sum.Backlog...)
		if iv.Backlog.Waiting() > x.sum.Backlog.Waiting() {
			s.largest = append(s.largest[:0], iv.Backlog...)
		}
		x.sum.Merge(iv)
		x.sum.Backlog = append(x.sum.Backlog[:0], s.largest...)
	}
	s.late(now)
}

func (s *seconds) fresh() *second {
	if n := len(s.spare); n > 0 {
		x := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return x
	}
	return &second{}
}

// late emits what is complete or has waited long enough, oldest first.
func (s *seconds) late(now int64) {
	for len(s.open) > 0 {
		x := s.open[0]
		if s.reports(x.index) < s.workers && now-x.began < int64(graceLimit) {
			return
		}
		s.give()
	}
}

// reports returns how many agents have reported a second or a later one: a delayed agent reports
// several at once.
func (s *seconds) reports(index int64) (n int) {
	for _, latest := range s.latest {
		if latest >= index {
			n++
		}
	}
	return n
}

// give emits the oldest second.
func (s *seconds) give() {
	x := s.open[0]
	s.open = slices.Delete(s.open, 0, 1)
	s.done = max(s.done, x.index+1)
	s.emit(&x.sum)
	s.spare = append(s.spare, x)
}

// flush emits everything.
func (s *seconds) flush() {
	for len(s.open) > 0 {
		s.give()
	}
}
