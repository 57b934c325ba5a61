package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/measure"
)

func TestLongStallCountedOnce(t *testing.T) {
	const ms = int64(1e6)
	var s stalls
	s.wake(10*ms, ms/2) // too short
	for due := 20 * ms; due < 60*ms; due += ms {
		s.wake(60*ms+due/1000, 60*ms+due/1000-due)
	}
	s.wake(70*ms, 3*ms)
	if d := cmp.Diff([]Stall{{20 * ms, 60*ms + 20_000}, {67 * ms, 70 * ms}}, s.longest()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := range int64(1000) {
		s.wake(1e9+i*1e9, 2*ms+i)
	}
	all := s.longest()
	if len(all) != mostStalls || len(s.all) > 2*mostStalls || all[0].From > all[1].From {
		t.Errorf("%d are kept, %d told", len(s.all), len(all))
	}
	if least := all[2]; least.To-least.From < 2*ms+900 { // after the two before it
		t.Errorf("a stall of %d ns is kept, and longer ones are not", least.To-least.From)
	}
}

func TestSlowestMessagesAreMergedAcrossWorkers(t *testing.T) {
	part := func(from int64) (s Slowest) {
		for i := range int64(measure.MostSlow) {
			s.E2E = append(s.E2E, measure.Slow{At: from + 2*i})
		}
		return s
	}
	a, b := part(0), part(1)
	a.merge(&b)
	if len(a.E2E) != measure.MostSlow || a.E2E[0].At != 39 || a.E2E[19].At != 20 || len(a.Send) != 0 {
		t.Errorf("%+v", a)
	}
}
