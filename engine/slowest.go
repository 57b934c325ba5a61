package engine

import (
	"cmp"
	"slices"

	"github.com/weirmq/weir/measure"
)

// A Slowest holds the slowest messages of the measured window, slowest first: by response time, in
// a closed loop by service time.
type Slowest struct {
	Send, E2E, RTT []measure.Slow `json:",omitempty"`
}

// slowest returns those of this worker.
func (r *run) slowest() Slowest {
	return Slowest{
		Send: r.recorder.Slowest(measure.SendResponse), E2E: r.recorder.Slowest(measure.E2EResponse), RTT: r.recorder.Slowest(measure.RTTResponse),
	}
}

func (s *Slowest) merge(part *Slowest) {
	for _, x := range []struct{ into, of *[]measure.Slow }{{&s.Send, &part.Send}, {&s.E2E, &part.E2E}, {&s.RTT, &part.RTT}} {
		*x.into = measure.Slowest(append(*x.into, *x.of...))
	}
}

// A Stall is a period in which a thread that only sleeps was not woken.
type Stall struct{ From, To int64 }

// mostStalls is how many are kept per host, and shortestStall their minimum duration.
const (
	mostStalls    = 100
	shortestStall = int64(1e6)
)

// stalls keeps the longest stalls of a host. Only the probe's goroutine uses it.
type stalls struct {
	all []Stall
	end int64 // of the latest
}

// wake records how late the probe woke. It is called for each instant that a stall has skipped; the
// first of them is the stall's beginning.
func (s *stalls) wake(at, overshoot int64) {
	due := at - overshoot
	if due < s.end {
		return
	}
	if s.end = at; overshoot < shortestStall {
		return
	}
	if s.all = append(s.all, Stall{due, at}); len(s.all) >= 2*mostStalls {
		s.all = longest(s.all)
	}
}

func (s *stalls) longest() []Stall { return longest(s.all) }

// longest returns the longest stalls in order of time. It sorts all.
func longest(all []Stall) []Stall {
	slices.SortFunc(all, func(a, b Stall) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
	all = all[:min(len(all), mostStalls)]
	slices.SortFunc(all, func(a, b Stall) int { return cmp.Compare(a.From, b.From) })
	return all
}
