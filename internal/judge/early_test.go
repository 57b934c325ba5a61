package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/measure"
)

// tenth is a tenth of a second with 25 exponential response times with a mean of ns.
func tenth(dice *rand.Rand, i int, ns float64) *measure.Interval {
	in := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
	for range 25 {
		in.Kinds[measure.SendResponse][measure.Measure].Add(int64(ns*dice.ExpFloat64()), 1)
	}
	return in
}

// decidedAfter returns after how many seconds, at most 80, an objective is
// decided; 0 for never.
func decidedAfter(t *testing.T, dice *rand.Rand, ns float64, objective string) int {
	t.Helper()
	o := must.Get(ParseObjective(objective))(t)
	kept := new(Slices)
	e := WatchFor([]Objective{o}, kept, 1)
	for i := range 80 {
		for part := range 10 {
			in := tenth(dice, 10*i+part, ns)
			kept.Add(in)
			if e.Add(in) {
				return i + 1
			}
		}
	}
	return 0
}

func TestClearObjectiveIsDecidedAtFirstLook(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	// The median of an exponential distribution with a mean of 1 ms is 0.693 ms.
	for _, o := range []string{"send.p50 <= 10ms", "send.p50 <= 10µs", "send.p99 < 1s"} {
		if n := decidedAfter(t, dice, 1e6, o); int64(n)*1e9 != firstLook {
			t.Errorf("%s: decided after %d s; want %d", o, n, int64(firstLook)/1e9)
		}
	}
}

// Looking at 10, 20, 40 and 80 s with 5 % each would decide about a seventh of the runs.
func TestObjectiveAtLimitRarelyDecided(t *testing.T) {
	needs.NoRace(t)
	dice := rand.New(rand.NewPCG(3, 4))
	decided := 0
	runs, most := 40, 7 // 5 % of 40 are 2; eight or more have a chance of 0.1 %
	if needs.Less() {
		runs, most = 10, 3 // four or more have that chance
	}
	for range runs {
		if decidedAfter(t, dice, 1e6, "send.p50 <= 693147ns") > 0 {
			decided++
		}
	}
	if decided > most {
		t.Errorf("%d of %d runs decide an objective that is the limit itself; want about one in twenty at most", decided, runs)
	}
}

func TestOnlyPercentilesEndARun(t *testing.T) {
	var os []Objective
	for _, s := range []string{"lost == 0", "send.max <= 1s", "send.mean <= 1s", "sent.rate >= 1/s"} {
		o := must.Get(ParseObjective(s))(t)
		os = append(os, o)
	}
	if WatchFor(os, nil, 1) != nil {
		t.Error("a run without an objective about a percentile is watched")
	}
	for _, s := range []string{"send.p50 <= 1s", "e2e.service.p99 <= 1s", "rtt.p99.9 <= 1s", "settle.p50 <= 1s"} {
		o := must.Get(ParseObjective(s))(t)
		if e := WatchFor([]Objective{o}, nil, 1); e == nil {
			t.Errorf("%s is not watched", s)
		}
	}
}

// 2 % of a run's messages fail, all in one second, or separately. If separately, p99 exceeds any limit, as
// a failed message does; if in one second, it is unknown.
func TestFailuresInOneEpisodeDecideNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		fails   func(tenth int) uint64
		decided bool
	}{
		"none":  {func(int) uint64 { return 0 }, true},
		"apart": {func(int) uint64 { return 50 }, true},
		"one burst": {func(i int) uint64 {
			if i/10 == 3 {
				return 500
			}
			return 0
		}, false},
	} {
		o := must.Get(ParseObjective("send.p99 <= 2s"))(t)
		kept := new(Slices)
		e := WatchFor([]Objective{o}, kept, 1)
		decided := false
		for i := range 100 {
			in := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
			n := tt.fails(i)
			in.Kinds[measure.SendResponse][measure.Measure].Add(1e6, 1000-n)
			in.Counters[measure.Measure] = measure.Counters{Scheduled: 1000, Sent: 1000, Confirmed: 1000 - n, Failed: n}
			kept.Add(in)
			decided = decided || e.Add(in)
		}
		if decided != tt.decided {
			t.Errorf("failures of %s: decided after ten seconds: %v; want %v", name, decided, tt.decided)
		}
	}
}

// A second's messages never complete, and nothing says that they failed.
func TestOpenMessagesMayBeLost(t *testing.T) {
	for name, tt := range map[string]struct {
		open    uint64
		decided bool
	}{"some in flight": {20, true}, "a second of the run": {10_000, false}} {
		o := must.Get(ParseObjective("e2e.p99 <= 2s"))(t)
		kept := new(Slices)
		e := WatchFor([]Objective{o}, kept, 2)
		decided := false
		for i := range 100 {
			in := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
			n := uint64(2000)
			if i/10 == 3 {
				n -= tt.open / 10
			}
			in.Kinds[measure.E2EResponse][measure.Measure].Add(1e6, n)
			in.Counters[measure.Measure] = measure.Counters{Scheduled: 1000, Sent: 1000, Confirmed: 1000}
			kept.Add(in)
			decided = decided || e.Add(in)
		}
		if decided != tt.decided {
			t.Errorf("%s: decided after ten seconds: %v; want %v", name, decided, tt.decided)
		}
	}
}
