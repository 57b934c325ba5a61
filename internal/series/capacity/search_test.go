package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirmq/weir/internal/golden"
)

// searched runs a search against a system that is a function of the rate.
func searched(t *testing.T, p Plan, system func(rate float64) Judgement) *Search {
	t.Helper()
	s := New(p)
	for {
		rate, why, more := s.Next()
		if !more {
			return s
		}
		if len(s.Probes()) > p.Probes {
			t.Fatalf("more than %d probes", p.Probes)
		}
		s.Add(Probe{rate, why, system(rate)})
	}
}

// upTo meets the objectives up to a rate.
func upTo(ceiling float64) func(float64) Judgement {
	return func(rate float64) Judgement {
		if rate <= ceiling {
			return Passed
		}
		return Failed
	}
}

func TestASearchEndsWithAnInterval(t *testing.T) {
	plan := Plan{From: 1000, Precision: 0.1, Retests: 1, Probes: 40}
	for name, tt := range map[string]struct {
		plan   func(*Plan)
		system func(float64) Judgement
		want   func(Answer) bool
	}{
		"around the ceiling": {nil, upTo(7300), func(a Answer) bool {
			return a.Pass <= 7300 && a.Fail.Rate > 7300 && a.Fail.Rate <= 1.1*a.Pass && a.Stop == Found
		}},
		"below the first rate":              {nil, upTo(37), func(a Answer) bool { return a.Pass <= 37 && a.Fail.Rate > 37 && a.Stop == Found }},
		"open, where the most passes":       {func(p *Plan) { p.Most = 5000 }, upTo(1e9), func(a Answer) bool { return a == Answer{Pass: 5000, Stop: AtMost} }},
		"with no rate, where none passes":   {nil, upTo(0), func(a Answer) bool { return a.Pass == 0 && a.Fail.Rate > 0 && a.Stop == NonePassed }},
		"unfinished, where probes run out":  {func(p *Plan) { p.Probes = 3 }, upTo(1e9), func(a Answer) bool { return a == Answer{Pass: 4000, Stop: OutOfTries} }},
		"at once, where the first is above": {func(p *Plan) { p.From, p.Most = 9000, 5000 }, upTo(1e9), func(a Answer) bool { return a == Answer{Pass: 5000, Stop: AtMost} }},
		"at the generator's limit, not the system's": {nil, func(rate float64) Judgement {
			if rate > 6000 {
				return Limited
			}
			return Passed
		}, func(a Answer) bool {
			return a.Pass <= 6000 && a.Fail.Rate > 6000 && a.Fail.By == Limited && a.Fail.System() == 0 && a.Stop == Generator
		}},
		"at no rate, where the generator offers none": {nil, func(float64) Judgement { return Limited }, func(a Answer) bool { return a.Pass == 0 && a.Stop == Generator }},
		"soon, where each probe is too short":         {nil, func(float64) Judgement { return Undecided }, func(a Answer) bool { return a == Answer{Fail: End{125, Undecided}, Stop: TooShort} }},
		"at the generator, where it spoils most probes and the last is too short": {nil, func(rate float64) Judgement {
			if rate > 125 {
				return Limited
			}
			return Undecided
		}, func(a Answer) bool { return a.Pass == 0 && a.Stop == Generator }},
		"around the rates that no probe decides": {nil, func(rate float64) Judgement {
			switch {
			case rate <= 6000:
				return Passed
			case rate <= 9000:
				return Undecided
			}
			return Failed
		}, func(a Answer) bool {
			return a.Stop == Between && a.Pass <= 6000 && a.Undecided > 6000 && a.Undecided <= 1.1*a.Pass && a.Fail.Rate > 9000 && a.Fail.Rate <= 1.1*9000
		}},
		"below the first rate, where that is not decided": {nil, func(rate float64) Judgement {
			switch {
			case rate <= 800:
				return Passed
			case rate < 1100:
				return Undecided
			}
			return Failed
		}, func(a Answer) bool { return a.Stop == Between && a.Pass <= 800 && a.Fail.Rate >= 1100 }},
		"below a rate that needs longer probes": {nil, func(rate float64) Judgement {
			if rate > 6000 {
				return Undecided
			}
			return Passed
		}, func(a Answer) bool { return a.Pass <= 6000 && a.Fail.Rate > 6000 && a.Stop == TooShort }},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan
			if tt.plan != nil {
				tt.plan(&p)
			}
			s := searched(t, p, tt.system)
			if a := s.Answer(); !tt.want(a) {
				t.Errorf("%+v after %v", a, s.Probes())
			}
		})
	}
}

// A search is over only when the last probe of the lower end passed.
func TestAFailedConfirmationConfirmsNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		confirms func(n int) Judgement // of the n-th confirmation
		want     func(Answer) bool
	}{
		"always failed":  {func(int) Judgement { return Failed }, func(a Answer) bool { return a.Stop != Found && a.Stop != Between }},
		"failed once":    {func(n int) Judgement { return map[bool]Judgement{true: Failed, false: Passed}[n == 1] }, func(a Answer) bool { return a.Stop == Found && a.Pass == 1410 }},
		"always limited": {func(int) Judgement { return Limited }, func(a Answer) bool { return a.Stop == Doubtful && a.Pass == 1410 }},
		"never decided":  {func(int) Judgement { return Undecided }, func(a Answer) bool { return a.Stop != Found }},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Plan{From: 1000, Precision: 0.1, Retests: 2, Probes: 200})
			n, last := 0, Probe{}
			for {
				rate, why, more := s.Next()
				if !more {
					break
				}
				j := upTo(1430)(rate)
				if why == Confirming {
					n++
					j = tt.confirms(n)
				}
				last = Probe{rate, why, j}
				s.Add(last)
			}
			a := s.Answer()
			if !tt.want(a) || a.Stop == Found && (last.Judgement != Passed || last.Rate != a.Pass) {
				t.Errorf("%+v; the last probe is %v", a, last)
			}
		})
	}
}

func TestSearchDoublesBisectsRetestsAndConfirms(t *testing.T) {
	s := searched(t, Plan{From: 1000, Precision: 0.3, Retests: 1, Probes: 40, Seed: 3}, upTo(2500))
	var got []Purpose
	for _, p := range s.Probes() {
		got = append(got, p.Purpose)
	}
	want := []Purpose{Doubling, Doubling, Doubling, Bisection, Bisection, Retest, Retest, Confirming}
	golden.Equal(t, want, got, "purposes")
}

// A rate that failed once by bad luck is probed again, and the majority counts.
func TestUnluckyFailureIsRetested(t *testing.T) {
	unlucky := true
	s := searched(t, Plan{From: 1000, Precision: 0.1, Retests: 2, Probes: 60}, func(rate float64) Judgement {
		if rate == 4000 && unlucky {
			unlucky = false
			return Failed
		}
		return upTo(7300)(rate)
	})
	if a := s.Answer(); a.Stop != Found || a.Pass > 7300 || a.Fail.Rate <= 7300 {
		t.Errorf("%+v after %v", a, s.Probes())
	}
}

// A probe spoilt by the generator does not count once another probe of that rate was not spoilt.
func TestProbeOnBusyHostIsRepeated(t *testing.T) {
	busy := 3
	s := searched(t, Plan{From: 1000, Precision: 0.1, Retests: 1, Probes: 60}, func(rate float64) Judgement {
		if busy--; busy%2 == 0 && busy > -6 {
			return Limited
		}
		return upTo(7300)(rate)
	})
	if a := s.Answer(); a.Stop != Found || a.Pass > 7300 || a.Fail.Rate <= 7300 {
		t.Errorf("%+v after %v", a, s.Probes())
	}
}

// A short probe of a rate is inconclusive, but if a higher rate meets the same objectives, it does too.
func TestPassingHigherRateDecidesLowerRate(t *testing.T) {
	for _, at := range []float64{1000, 2000, 4000} {
		unlucky := 2
		s := searched(t, Plan{From: 1000, Precision: 0.1, Retests: 1, Probes: 60}, func(rate float64) Judgement {
			if rate == at && unlucky > 0 {
				unlucky--
				return Undecided
			}
			return upTo(7300)(rate)
		})
		if a := s.Answer(); a.Stop != Found || a.Pass > 7300 || a.Fail.Rate <= 7300 {
			t.Errorf("%v was not decided: %+v after %v", at, a, s.Probes())
		}
	}
}

// Near the ceiling probes pass by luck, with even odds at the ceiling itself. An interval widened by a
// tenth at each end contains the truth in 19 of 20 searches.
func TestTheIntervalContainsTheTruth(t *testing.T) {
	const searches = 400
	held := 0
	for seed := range uint64(searches) {
		random := rand.New(rand.NewPCG(seed, 2))
		ceiling := 1000 * math.Pow(50, random.Float64())
		s := searched(t, Plan{From: 1000, Precision: 0.1, Retests: 2, Probes: 80, Seed: seed}, func(rate float64) Judgement {
			odds := 1 / (1 + math.Exp((rate/ceiling-1)/0.02))
			if random.Float64() < odds {
				return Passed
			}
			return Failed
		})
		if a := s.Answer(); a.Stop == Found && a.Pass <= ceiling*1.1 && a.Fail.Rate >= ceiling*0.9 {
			held++
		}
	}
	if held < searches*19/20 {
		t.Errorf("%d of %d intervals hold the ceiling", held, searches)
	}
}

// As above, but half of all probes within a fifth of the ceiling are undecided.
func TestIntervalCoversTruthWithUndecidedProbes(t *testing.T) {
	const searches = 400
	held, ended := 0, 0
	for seed := range uint64(searches) {
		random := rand.New(rand.NewPCG(seed, 3))
		ceiling := 1000 * math.Pow(50, random.Float64())
		s := searched(t, Plan{From: 1000, Precision: 0.1, Retests: 2, Probes: 80, Seed: seed}, func(rate float64) Judgement {
			if math.Abs(rate/ceiling-1) < 0.2 && random.Float64() < 0.5 {
				return Undecided
			}
			if random.Float64() < 1/(1+math.Exp((rate/ceiling-1)/0.02)) {
				return Passed
			}
			return Failed
		})
		a := s.Answer()
		if a.Stop == Found || a.Stop == Between {
			ended++
			if a.Pass <= ceiling*1.1 && a.Fail.Rate >= ceiling*0.9 {
				held++
			}
		}
	}
	if ended < searches*19/20 || held < ended*19/20 {
		t.Errorf("%d of %d searches ended with an interval, and %d hold the ceiling", ended, searches, held)
	}
}

func TestRatesAreRoundedForTyping(t *testing.T) {
	for rate, want := range map[float64]float64{1234567: 1230000, 999.6: 1000, 12.3456: 12.3, 45.678: 45.7, 99.96: 100, 9.8765: 9.88, 0.123456: 0.123, 1e-9: 0, 0: 0, 1: 1} {
		if got := round(rate); got != want {
			t.Errorf("round(%v) = %v; want %v", rate, got, want)
		}
	}
	if s := New(Plan{From: 1, Probes: 1}); s.Answer() != (Answer{Stop: Unstarted}) || !slices.Equal(s.Probes(), nil) {
		t.Errorf("%+v", s.Answer())
	}
}

// A search for each number, and then the curve if requested.
func TestReportRunsAreInOrder(t *testing.T) {
	plan := Planned{FromPerS: 100, MostPerS: 100, Precision: 0.1, Probes: 10}
	dirs := func(p Planned) (all []string) {
		r := &Report{Plan: p}
		for {
			r.Sum()
			next, more := r.Next()
			if !more {
				return all
			}
			all = append(all, next.Dir)
			next.Judgement = Passed.String()
			r.Add(next)
		}
	}
	plan.Curve = 2
	if got, want := dirs(plan), []string{"001-100", "002-100", "curve-01", "curve-02"}; !slices.Equal(got, want) {
		t.Errorf("the runs of one search are %q; want %q", got, want)
	}
	plan.Curve, plan.Over = 0, &Varied{Of: "consumers", Numbers: []int{1, 2}}
	if got, want := dirs(plan), []string{"001-100-1-consumers", "002-100-1-consumers", "003-100-2-consumers", "004-100-2-consumers"}; !slices.Equal(got, want) {
		t.Errorf("the runs over consumers are %q; want %q", got, want)
	}
}
