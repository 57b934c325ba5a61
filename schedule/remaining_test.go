package schedule

import (
	"math"
	"math/bits"
	"testing"
	"time"
)

// checkRemaining compares Remaining with a walk over the first messages of a part whose arrival is
// not random: from several messages on, to before, at and after each instant.
func checkRemaining(t *testing.T, s *Schedule, p Part, limit int) {
	t.Helper()
	walked := take(s.Due(p), limit+1)
	if len(walked) > limit { // of the last instant there may be more
		last := walked[limit].Due
		for len(walked) > 0 && walked[len(walked)-1].Due == last {
			walked = walked[:len(walked)-1]
		}
	}
	for from := 0; from < len(walked); from = 2*from + 1 {
		first, index := walked[from], walked[from].Index
		if from == 0 {
			first, index = message{}, 0
		}
		n := from
		for k := from; k < len(walked); k++ {
			for ; walked[n].Due < walked[k].Due; n++ {
			}
			after := k + 1
			for after < len(walked) && walked[after].Due == walked[k].Due {
				after++
			}
			for at, want := range map[int64]int{walked[k].Due: n, walked[k].Due + 1: after} {
				if got := s.Remaining(p, index, first.Due, at); got != uint64(want-from) {
					t.Fatalf("part %v: from message %v on, %d are due before %d; a walk finds %d", p, first, got, at, want-from)
				}
			}
		}
	}
	if n := len(walked); n > 0 {
		if got := s.Remaining(p, walked[n-1].Index+1, walked[n-1].Due, 0); got != 0 {
			t.Fatalf("part %v: %d messages are due before the run's start", p, got)
		}
	}
}

func TestMessageCountsMatchIteration(t *testing.T) {
	t.Parallel()
	for _, producers := range []int{1, 7, 1000} {
		for _, count := range []int{1, 2, 3, 16, 1001} {
			spec := profile(Arrival{}, producers)
			trace := plain(Arrival{Kind: Trace, Trace: []int64{0, 0, 5, 5, 5, 6, 1000, 1000, 1_000_000}})
			trace.Producers = producers
			counted := plain(Arrival{}, step(PerSecond(333), 0))
			counted.Messages, counted.WarmUp, counted.Producers = 1000, 7*time.Millisecond, producers
			for what, spec := range map[string]Spec{"profile": spec, "trace": trace, "counted": counted} {
				s := mustNew(t, spec)
				for k := range min(count, 20) {
					p := Part{k, count}
					checkRemaining(t, s, p, 3000)
					if what == "profile" {
						continue // which has a billion
					}
					if got, want := s.Remaining(p, 0, 0, math.MaxInt64), len(take(s.Due(p), 10_000)); got != uint64(want) {
						t.Errorf("%s, part %v: %d messages in all; a walk finds %d", what, p, got, want)
					}
				}
			}
		}
	}
}

// Two days at a billion messages a second are counted as fast as ten messages; the 1.7e14 are
// spread exactly over the producers.
func TestLargestMessageCountIsExact(t *testing.T) {
	t.Parallel()
	spec := plain(Arrival{}, step(MaxRate, 48*time.Hour))
	spec.Producers = 7
	s := mustNew(t, spec)
	var sum uint64
	for k := range 7 {
		sum += s.Remaining(Part{k, 7}, 0, 0, s.End())
	}
	if want := uint64(s.End()); sum != want || s.Remaining(Part{0, 1}, 0, 0, s.End()) != want {
		t.Errorf("seven parts have %d messages; want %d", sum, want)
	}
	if got := s.Remaining(Part{0, 1}, 1e14, 1e14, s.End()); got != uint64(s.End())-1e14 {
		t.Errorf("%d messages follow message 10^14; want %d", got, s.End()-1e14)
	}
}

// With random arrival the count is computed from the rate. The number of a Poisson process varies
// by its root, that of a gamma process by cv times as much; five of those are exceeded once in two
// million.
func TestRandomArrivalIsCountedByItsRate(t *testing.T) {
	t.Parallel()
	for _, a := range []Arrival{{Kind: Poisson}, {Kind: Gamma, CV: 0.5}, {Kind: Gamma, CV: 3}} {
		spec := plain(a, step(PerSecond(100_000), time.Second), Phase{Burst: 500, Every: 100 * time.Millisecond, For: time.Second},
			Phase{From: PerSecond(1000), To: PerSecond(100_000), For: time.Second})
		spec.Producers = 10
		s := mustNew(t, spec)
		for _, p := range []Part{{0, 1}, {1, 3}} {
			const from = int64(time.Second) / 3
			walked, index := 0, uint64(0)
			for i, due := range s.Due(p) {
				if due < from {
					index = i + 1
				} else if due < s.End() {
					walked++
				}
			}
			got := float64(s.Remaining(p, index, from, s.End()))
			if off := math.Abs(got - float64(walked)); off > 5*max(1, a.CV)*math.Sqrt(got) {
				t.Errorf("%v, part %v: %.0f messages remain by the rate, a walk finds %d", a, p, got, walked)
			}
		}
		counted := plain(a, step(PerSecond(1000), 0))
		counted.Messages = 5000
		c := mustNew(t, counted)
		if got := c.Remaining(Part{0, 1}, 1200, 1_200_000_000, c.End()); got != 3800 {
			t.Errorf("%v: %d of 5000 messages remain after 1200", a, got)
		}
	}
}

func TestQuotientsAreRoundedUp(t *testing.T) {
	t.Parallel()
	r := stream(11)
	for n := range uint64(1000) {
		d := r.at(3*n)>>(n%60) | 1
		q := u128{r.at(3*n+1) >> (n % 64), r.at(3*n + 2)}
		if got := q.times(d).overUp(d); got != q {
			t.Fatalf("%v times %d, divided by it, is %v", q, d, got)
		}
		if d == 1 {
			continue
		}
		whole := q.times(d)
		lo, carry := bits.Add64(whole.lo, 1, 0)
		mid, carry := bits.Add64(whole.mid, 0, carry)
		if got := (u192{whole.hi + carry, mid, lo}).overUp(d); got != q.plus(u128{0, 1}) {
			t.Fatalf("%v times %d and 1, divided by it, is %v rounded up", q, d, got)
		}
	}
}
