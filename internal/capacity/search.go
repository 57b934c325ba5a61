// Package capacity finds the highest rate that keeps a promise. It says which rates to
// probe, and what the probes come to: an interval between a rate that kept the promise
// and one that did not. It runs nothing itself.
package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Judgement is what one probe says of its rate.
type Judgement uint8

// The judgements.
const (
	Passed    Judgement = iota + 1 // the promise was kept
	Failed                         // the system did not keep it
	Limited                        // the generator or its host did not offer the rate: it says nothing about the system
	Undecided                      // the probe was too short to say
)

// String returns the word that screens and files use.
func (j Judgement) String() string {
	switch j {
	case Passed:
		return "passed"
	case Failed:
		return "failed"
	case Limited:
		return "generator-limited"
	case Undecided:
		return "undecided"
	}
	return "unknown"
}

// A Purpose says why a rate is probed.
type Purpose string

// The purposes.
const (
	Doubling   Purpose = "doubling"
	Halving    Purpose = "halving" // while no rate has passed
	Bisection  Purpose = "bisection"
	Retest     Purpose = "retest"
	Confirming Purpose = "confirmation"
	Curving    Purpose = "curve" // a point of the latency against the load: it is not a probe of the search
)

// A Plan says how to search. Rates are in messages per second, all of them together.
type Plan struct {
	From      float64 // the first rate, above 0
	Most      float64 // no rate above it is probed; 0: no limit
	Precision float64 // the search ends where the interval is at most this share of its lower end, above 0
	Retests   int     // how often each end is probed again, 0 or more
	Probes    int     // at most so many probes, 1 or more
	Seed      uint64  // of the order of the retests
}

// A Probe is one rate that was probed.
type Probe struct {
	Rate      float64
	Purpose   Purpose
	Judgement Judgement
}

// A Search keeps the probes of one search. One goroutine uses it. It is as long as
// Plan.Probes.
type Search struct {
	plan   Plan
	probes []Probe
}

// New begins a search.
func New(p Plan) *Search {
	return &Search{plan: p}
}

// A Stop says why a search is over.
type Stop string

// The reasons.
const (
	Found      Stop = "found"      // the interval is narrow enough, its ends are tested again, and the last probe of its lower end passed
	AtMost     Stop = "most"       // the highest rate allowed passed
	NonePassed Stop = "none"       // no rate passed, down to a thousandth of the first
	OutOfTries Stop = "probes"     // no further probe is allowed
	Generator  Stop = "generator"  // a higher rate, or where none passed most probes, is more than the generator offers
	TooShort   Stop = "too short"  // a higher rate, or where none passed every rate, needs longer probes to decide
	Between    Stop = "undecided"  // as Found, but rates between the ends need longer probes to decide
	Doubtful   Stop = "doubtful"   // as Found, but no probe confirmed the lower end: the last ones there did not pass
	Unstarted  Stop = "unstarted"  // nothing was probed yet
	Unfinished Stop = "unfinished" // it was stopped before its end
)

// An End is the upper end of what a search found: a rate that did not pass, and what was
// in the way. Only where that was the system does the rate say something about the system.
type End struct {
	Rate float64   // 0: no rate failed to pass
	By   Judgement // Failed, Limited or Undecided; 0 where there is no rate
}

// System returns the rate where the system set it, else 0.
func (e End) System() float64 {
	if e.By != Failed {
		return 0
	}
	return e.Rate
}

// An Answer is what a search came to.
type Answer struct {
	Pass float64 // highest rate that passed, with none below it that failed; 0: none
	Fail End     // lowest rate that did not pass, and with Between that failed
	Stop Stop

	Undecided float64 // with Between: lowest rate that could not be decided; 0: none
}

// vote is how often the probes of one rate said what, by judgement.
type vote [Undecided + 1]int

// says is the judgement of most probes of a rate; a tie is against it. Those that the
// generator spoilt count only where there are no others.
func (v vote) says() Judgement {
	switch {
	case v[Passed] > v[Failed]+v[Undecided]:
		return Passed
	case v[Failed] > 0 && v[Failed] >= v[Undecided]:
		return Failed
	case v[Undecided] > 0:
		return Undecided
	}
	return Limited
}

func (v vote) all() int { return v[Passed] + v[Failed] + v[Limited] + v[Undecided] }

// votes sums the probes up, by rate.
func (s *Search) votes() map[float64]vote {
	votes := map[float64]vote{}
	for _, p := range s.probes {
		v := votes[p.Rate]
		v[p.Judgement]++
		votes[p.Rate] = v
	}
	return votes
}

// ends are the highest rate that passed with none that failed, or was more than the
// generator offers, below it, and the lowest one above that which did not pass; 0 where
// there is none. A rate that could not be decided counts for nothing below one that passed.
func (s *Search) ends() (pass, ceiling float64, votes map[float64]vote) {
	votes = s.votes()
	least := func(counts func(rate float64, says Judgement) bool) (least float64) {
		for rate, v := range votes {
			if counts(rate, v.says()) && (least == 0 || rate < least) {
				least = rate
			}
		}
		return least
	}
	against := least(func(_ float64, says Judgement) bool { return says == Failed || says == Limited })
	for rate, v := range votes {
		if v.says() == Passed && (against == 0 || rate < against) {
			pass = max(pass, rate)
		}
	}
	return pass, least(func(rate float64, says Judgement) bool { return says != Passed && rate > pass }), votes
}

// Next returns the rate to probe next and why, or false where the search is over.
func (s *Search) Next() (rate float64, why Purpose, more bool) {
	rate, why, stop := s.next()
	return rate, why, stop == ""
}

// growth is how a search goes up and down until it has both ends.
const growth = 2

// lowest is the share of the first rate below which no rate is probed.
const lowest = 1.0 / 1000

// furthest is how many times a rate that could not be decided is left behind, up or down,
// in search of one that can.
const furthest = 8

func (s *Search) next() (rate float64, why Purpose, stop Stop) {
	if len(s.probes) == 0 {
		return round(s.bounded(s.plan.From)), Doubling, ""
	}
	if len(s.probes) >= s.plan.Probes {
		return 0, "", OutOfTries
	}
	pass, ceiling, votes := s.ends()
	over := map[Judgement]Stop{Failed: Found, Limited: Generator, Undecided: TooShort}[votes[ceiling].says()]
	switch {
	case ceiling > 0 && over == Generator && votes[ceiling].all() == 1: // the host may have been busy for a moment
		return ceiling, Retest, ""
	case pass == 0:
		return s.below(ceiling, over)
	case ceiling == 0:
		if rate := round(s.bounded(pass * growth)); rate > pass {
			return rate, Doubling, ""
		}
	}
	fail, open := ceiling, 0.0
	if over == TooShort {
		if open, fail = undecided(ceiling, votes); fail == 0 {
			// Further up it may be clear that the promise is kept, or that it is not.
			if rate := round(s.bounded(open * growth)); rate > open && rate <= ceiling*furthest && votes[open].says() != Limited {
				return rate, Doubling, ""
			}
			open, fail = 0, ceiling
		} else {
			over = Between
		}
	}
	if ceiling > 0 {
		if rate := s.halved(pass, ceiling); rate > 0 {
			return rate, Bisection, ""
		}
	}
	if open > 0 {
		if rate := s.halved(open, fail); rate > 0 {
			return rate, Bisection, ""
		}
	}
	var again []float64
	for _, end := range []float64{pass, fail} {
		if end > 0 && votes[end].all() <= s.plan.Retests {
			again = append(again, end)
		}
	}
	if len(again) > 0 {
		// By the number of probes, so that a search that is taken up goes on as it would have.
		random := rand.New(rand.NewPCG(s.plan.Seed, uint64(len(s.probes)))) //nolint:gosec // G404: an order, not a secret
		return again[random.IntN(len(again))], Retest, ""
	}
	switch confirmed, tries := s.confirmed(pass); {
	case confirmed:
	case tries <= s.plan.Retests+1:
		return pass, Confirming, ""
	default:
		return 0, "", Doubtful
	}
	if ceiling == 0 {
		return 0, "", AtMost
	}
	return 0, "", over
}

// confirmed reports whether the last probe confirmed a rate, and how many of the last
// probes tried to, one after the other.
func (s *Search) confirmed(rate float64) (confirmed bool, tries int) {
	for _, p := range slices.Backward(s.probes) {
		if p.Purpose != Confirming || p.Rate != rate {
			break
		}
		confirmed = confirmed || tries == 0 && p.Judgement == Passed
		tries++
	}
	return confirmed, tries
}

// below is what comes next where no rate passed, of those down to ceiling.
func (s *Search) below(ceiling float64, over Stop) (rate float64, why Purpose, stop Stop) {
	least := s.plan.From * lowest
	if over == TooShort { // a lower rate is further from the limit, but has fewer samples
		least = s.plan.From / furthest
	}
	if rate = round(ceiling / growth); rate >= least && rate < ceiling && rate > 0 {
		return rate, Halving, ""
	}
	switch spoilt := 0; over {
	case Found:
		over = NonePassed
	case TooShort:
		for _, p := range s.probes {
			if p.Judgement == Limited {
				spoilt++
			}
		}
		if 2*spoilt > len(s.probes) { // longer probes would be spoilt, too
			over = Generator
		}
	}
	return 0, "", over
}

// halved is the rate between two ends that are further apart than they may be, 0 where
// they are not.
func (s *Search) halved(from, to float64) float64 {
	if rate := round(math.Sqrt(from * to)); to > from*(1+s.plan.Precision) && rate > from && rate < to {
		return rate
	}
	return 0
}

// undecided are the highest rate from ceiling on that could not be decided, and the lowest
// one above that which failed; 0 where none did.
func undecided(ceiling float64, votes map[float64]vote) (open, fail float64) {
	for rate, v := range votes {
		if rate > ceiling && v.says() == Failed && (fail == 0 || rate < fail) {
			fail = rate
		}
	}
	for rate, v := range votes {
		if v.says() != Failed && (fail == 0 || rate < fail) {
			open = max(open, rate)
		}
	}
	return open, fail
}

// bounded keeps a rate within the plan.
func (s *Search) bounded(rate float64) float64 {
	if s.plan.Most > 0 {
		return min(rate, s.plan.Most)
	}
	return rate
}

// Add takes what a probe of the rate that Next gave came to.
func (s *Search) Add(p Probe) { s.probes = append(s.probes, p) }

// Probes returns the probes so far, in their order.
func (s *Search) Probes() []Probe { return slices.Clone(s.probes) }

// Answer says what the probes so far come to.
func (s *Search) Answer() Answer {
	a := Answer{Stop: Unstarted}
	if len(s.probes) == 0 {
		return a
	}
	pass, fail, votes := s.ends()
	if _, _, a.Stop = s.next(); a.Stop == "" {
		a.Stop = Unfinished
	}
	if a.Stop == Between {
		a.Undecided = fail
		_, fail = undecided(a.Undecided, votes)
	}
	if a.Pass = pass; fail > 0 {
		a.Fail = End{fail, votes[fail].says()}
	}
	return a
}

// Part is the i-th of n even parts of a rate, as far as it can be typed.
func Part(rate float64, i, n int) float64 { return round(rate * float64(i) / float64(n)) }

// round keeps three significant digits, so that a rate can be read and typed.
func round(rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	const mostDecimals = 6 // of a rate that is typed
	decimals := min(2-math.Floor(math.Log10(rate)), mostDecimals)
	if scale := math.Pow(10, decimals); decimals > 0 {
		return math.Round(rate*scale) / scale
	}
	unit := math.Pow(10, -decimals)
	return math.Round(rate/unit) * unit
}
