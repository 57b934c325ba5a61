// Package capacity searches for the highest rate that meets the objectives. It chooses the rates to probe,
// and summarizes the probes: an interval between a rate that met them and one that did not. It runs nothing
// itself.
package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Judgement is what one probe says about its rate.
type Judgement uint8

// The judgements.
const (
	Passed    Judgement = iota + 1 // the objectives were met
	Failed                         // the system missed them
	Limited                        // the generator or its host missed the rate: says nothing about the system
	Undecided                      // the probe was too short
)

// String returns the word used on screens and in files.
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
	Halving    Purpose = "halving" // no rate has passed yet
	Bisection  Purpose = "bisection"
	Retest     Purpose = "retest"
	Confirming Purpose = "confirmation"
	Curving    Purpose = "curve" // a point of latency against load: not a probe of the search
)

// A Plan controls a search. Rates are in messages per second in total.
type Plan struct {
	From      float64 // the first rate, above 0
	Most      float64 // limit; 0: none
	Precision float64 // target width of the interval relative to its lower end, above 0
	Retests   int     // repeated probes of each end, 0 or more
	Probes    int     // limit, 1 or more
	Seed      uint64  // of the order of the retests
}

// A Probe is one probed rate.
type Probe struct {
	Rate      float64
	Purpose   Purpose
	Judgement Judgement
}

// A Search holds the probes of one search, at most Plan.Probes. It is not safe for concurrent use.
type Search struct {
	plan   Plan
	probes []Probe
}

// New begins a search.
func New(p Plan) *Search {
	return &Search{plan: p}
}

// A Stop is why a search is over.
type Stop string

// The reasons.
const (
	Found      Stop = "found"      // narrow enough, both ends retested, and the last probe of the lower end passed
	AtMost     Stop = "most"       // the highest allowed rate passed
	NonePassed Stop = "none"       // no rate passed, down to a thousandth of the first
	OutOfTries Stop = "probes"     // the limit on probes is reached
	Generator  Stop = "generator"  // the generator cannot offer a higher rate, or if none passed, most rates
	TooShort   Stop = "too short"  // longer probes are needed to decide a higher rate, or if none passed, every rate
	Between    Stop = "undecided"  // as Found, but rates between the ends need longer probes to decide
	Doubtful   Stop = "doubtful"   // as Found, but the last probes of the lower end did not pass
	Unstarted  Stop = "unstarted"  // nothing was probed yet
	Unfinished Stop = "unfinished" // interrupted
)

// An End is the upper end of a search's interval: a rate that did not pass, and why. It describes the
// system only if the system was the reason.
type End struct {
	Rate float64   // 0: every rate passed
	By   Judgement // Failed, Limited or Undecided; 0 without a rate
}

// System returns the rate if the system set it, else 0.
func (e End) System() float64 {
	if e.By != Failed {
		return 0
	}
	return e.Rate
}

// An Answer is the result of a search.
type Answer struct {
	Pass float64 // highest rate that passed, above none that failed; 0: none
	Fail End     // lowest rate that did not pass, and with Between that failed
	Stop Stop

	Undecided float64 // with Between: lowest undecided rate; 0: none
}

// vote counts the probes of one rate by judgement.
type vote [Undecided + 1]int

// says is the majority judgement on a rate; a tie does not pass. Probes spoilt by the generator count only
// if there are no others.
func (v vote) judgement() Judgement {
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

// votes counts the probes by rate.
func (s *Search) votes() map[float64]vote {
	votes := map[float64]vote{}
	for _, p := range s.probes {
		v := votes[p.Rate]
		v[p.Judgement]++
		votes[p.Rate] = v
	}
	return votes
}

// ends returns the highest rate that passed, without a lower one that failed or was beyond the generator,
// and the lowest rate above it that did not pass; 0 if none. Undecided rates below a passed one are
// ignored.
func (s *Search) ends() (pass, ceiling float64, votes map[float64]vote) {
	votes = s.votes()
	least := func(counts func(rate float64, says Judgement) bool) (least float64) {
		for rate, v := range votes {
			if counts(rate, v.judgement()) && (least == 0 || rate < least) {
				least = rate
			}
		}
		return least
	}
	against := least(func(_ float64, says Judgement) bool { return says == Failed || says == Limited })
	for rate, v := range votes {
		if v.judgement() == Passed && (against == 0 || rate < against) {
			pass = max(pass, rate)
		}
	}
	return pass, least(func(rate float64, says Judgement) bool { return says != Passed && rate > pass }), votes
}

// Next returns the rate to probe next and why, or false if the search is over.
func (s *Search) Next() (rate float64, why Purpose, more bool) {
	rate, why, stop := s.next()
	return rate, why, stop == ""
}

// growth is the factor by which a search moves until it has both ends.
const growth = 2

// lowest is the smallest probed fraction of the first rate.
const lowest = 1.0 / 1000

// furthest is how far, as a factor, a search moves away from an undecided rate to find one that can be
// decided.
const furthest = 8

func (s *Search) next() (rate float64, why Purpose, stop Stop) {
	if len(s.probes) == 0 {
		return round(s.bounded(s.plan.From)), Doubling, ""
	}
	if len(s.probes) >= s.plan.Probes {
		return 0, "", OutOfTries
	}
	pass, ceiling, votes := s.ends()
	over := map[Judgement]Stop{Failed: Found, Limited: Generator, Undecided: TooShort}[votes[ceiling].judgement()]
	switch {
	case ceiling > 0 && over == Generator && votes[ceiling].all() == 1: // the host may have been busy briefly
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
			// A higher rate may clearly keep or miss the objectives.
			if rate := round(s.bounded(open * growth)); rate > open && rate <= ceiling*furthest && votes[open].judgement() != Limited {
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
		// Seeded by the number of probes, so that a resumed search continues as it would have.
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

// confirmed reports whether the last probe confirmed a rate, and how many consecutive last probes were of
// it.
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

// below chooses the next rate if none passed down to ceiling.
func (s *Search) below(ceiling float64, over Stop) (rate float64, why Purpose, stop Stop) {
	least := s.plan.From * lowest
	if over == TooShort { // a lower rate is further from the limit, but gives fewer samples
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

// halved is a rate between two ends that are still too far apart, else 0.
func (s *Search) halved(from, to float64) float64 {
	if rate := round(math.Sqrt(from * to)); to > from*(1+s.plan.Precision) && rate > from && rate < to {
		return rate
	}
	return 0
}

// undecided returns the highest undecided rate from ceiling on, and the lowest failed one above it; 0 if
// none.
func undecided(ceiling float64, votes map[float64]vote) (open, fail float64) {
	for rate, v := range votes {
		if rate > ceiling && v.judgement() == Failed && (fail == 0 || rate < fail) {
			fail = rate
		}
	}
	for rate, v := range votes {
		if v.judgement() != Failed && (fail == 0 || rate < fail) {
			open = max(open, rate)
		}
	}
	return open, fail
}

// bounded limits a rate to the plan.
func (s *Search) bounded(rate float64) float64 {
	if s.plan.Most > 0 {
		return min(rate, s.plan.Most)
	}
	return rate
}

// Add adds the result of probing Next's rate.
func (s *Search) Add(p Probe) { s.probes = append(s.probes, p) }

// Probes returns the probes so far, in their order.
func (s *Search) Probes() []Probe { return slices.Clone(s.probes) }

// Answer summarizes the probes so far.
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
		a.Fail = End{fail, votes[fail].judgement()}
	}
	return a
}

// Part is the i-th of n even fractions of a rate, rounded.
func Part(rate float64, i, n int) float64 { return round(rate * float64(i) / float64(n)) }

// round keeps three significant digits, so that rates are easy to read and type.
func round(rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	const mostDecimals = 6 // of a rate to type
	decimals := min(2-math.Floor(math.Log10(rate)), mostDecimals)
	if scale := math.Pow(10, decimals); decimals > 0 {
		return math.Round(rate*scale) / scale
	}
	unit := math.Pow(10, -decimals)
	return math.Round(rate/unit) * unit
}
