package schedule

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The bounds that New enforces.
const (
	maxInstant  = int64(1) << 48 // ns: 78 h 11 min
	maxClients  = 1 << 24        // producers, destinations
	maxBatch    = 1 << 20
	maxZipf     = 10_000_000
	maxReported = 10            // errors reported of one trace
	maxRandomly = 1_000_000_000 // messages that New draws to find the end of a random arrival
)

const tooLong = "at most 78h11m (2^48 ns): a message's stamp holds its due instant in 48 bits"

// faults collects the errors in a Spec.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// check reports every error that is detectable without building the schedule.
func (s *Spec) check() error {
	var f faults
	s.checkArrival(&f)
	s.checkLength(&f)
	if s.Producers < 1 || s.Producers > maxClients {
		f.add("Producers: must be from 1 to %d, is %d", maxClients, s.Producers)
	}
	if s.Destinations < 1 || s.Destinations > maxClients {
		f.add("Destinations: must be from 1 to %d, is %d", maxClients, s.Destinations)
	}
	switch {
	case s.BatchMin < 1:
		f.add("BatchMin: must be at least 1 message, is %d", s.BatchMin)
	case s.BatchMax < s.BatchMin:
		f.add("BatchMax: must be at least BatchMin, which is %d, is %d", s.BatchMin, s.BatchMax)
	case s.BatchMax > maxBatch:
		f.add("BatchMax: must be at most %d messages, is %d", maxBatch, s.BatchMax)
	}
	s.checkSizes(&f)
	s.checkKeys(&f)
	return errors.Join(f...)
}

func (s *Spec) checkArrival(f *faults) {
	a := &s.Arrival
	switch {
	case a.Kind > Trace:
		f.add("Arrival.Kind: unknown kind %d", a.Kind)
	case a.Kind == Gamma && !(a.CV >= 0.1 && a.CV <= 10): // so that NaN is out
		f.add("Arrival.CV: the coefficient of variation must be from 0.1 to 10, is %v", a.CV)
	case a.Kind != Gamma && a.CV != 0:
		f.add("Arrival.CV: only gamma arrival has a coefficient of variation, arrival is %v", a.Kind)
	case (a.Kind == Poisson || a.Kind == Gamma) && len(s.Phases) == 0:
		f.add("Arrival.Kind: without Phases the loop is closed, and %v arrival needs a rate", a.Kind)
	}
	if a.Kind != Trace {
		if len(a.Trace) > 0 {
			f.add("Arrival.Trace: only for trace arrival, arrival is %v", a.Kind)
		}
		return
	}
	if len(s.Phases) > 0 {
		f.add("Phases: a trace has its own instants, and no phases")
	}
	if len(a.Trace) == 0 {
		f.add("Arrival.Trace: must hold at least one instant")
	}
	reported, last := 0, int64(0)
	for i, due := range a.Trace {
		why := ""
		switch {
		case due < 0:
			why = "before the start of the run"
		case due >= maxInstant:
			why = "over what a run may last: " + tooLong
		case due < last:
			why = fmt.Sprintf("out of order: before %d ns above it", last)
		}
		if why == "" {
			last = due
			continue
		}
		if reported++; reported <= maxReported {
			f.add("Arrival.Trace[%d] (line %d): %d ns is %s", i, i+1, due, why)
		}
	}
	if reported > maxReported {
		f.add("Arrival.Trace: %d more instants are wrong", reported-maxReported)
	}
	if reported == 0 && len(a.Trace) > 0 && int64(s.WarmUp) > last {
		f.add("WarmUp: the trace ends at %v, before the warm-up, %v, does", time.Duration(last), s.WarmUp)
	}
}

func (s *Spec) checkLength(f *faults) {
	if s.WarmUp < 0 {
		f.add("WarmUp: must not be negative, is %v", s.WarmUp)
	}
	if s.Messages > 0 {
		s.checkMessages(f)
	}
	offers := func(p Phase) bool { return p.Burst > 0 || p.From > 0 || p.To > 0 }
	if len(s.Phases) > 0 && !slices.ContainsFunc(s.Phases, offers) {
		f.add("Phases: no message is ever due: one phase needs a rate above 0")
	}
	total := float64(s.WarmUp) // cannot overflow, and is exact up to 2^53 ns
	for i, p := range s.Phases {
		name := fmt.Sprintf("Phases[%d]", i)
		p.check(f, name)
		if s.Messages > 0 {
			continue
		}
		if p.For <= 0 {
			f.add("%s.For: must be above 0, is %v", name, p.For)
			continue
		}
		total += float64(p.For)
	}
	if total > float64(maxInstant) {
		f.add("Phases: warm-up and phases last %.1f h, %s", total/float64(time.Hour), tooLong)
	}
}

func (s *Spec) checkMessages(f *faults) {
	switch {
	case s.Arrival.Kind == Trace:
		f.add("Messages: a trace has as many messages as it has instants")
	case len(s.Phases) != 1:
		f.add("Messages: needs exactly one phase, has %d", len(s.Phases))
	case s.Phases[0].Burst > 0 || s.Phases[0].From != s.Phases[0].To:
		f.add("Messages: the only phase must have one rate, without ramp or burst")
	case s.Arrival.Kind != Constant && float64(s.Messages)+s.Phases[0].From.PerSecond()*s.WarmUp.Seconds() > maxRandomly:
		f.add("Messages: at most %d, warm-up included, with %v arrival, is %d after %v: every gap is drawn beforehand to know the end", maxRandomly, s.Arrival.Kind, s.Messages, s.WarmUp)
	}
}

func (p *Phase) check(f *faults, name string) {
	if p.Burst == 0 {
		for _, r := range []struct {
			name string
			Rate
		}{{"From", p.From}, {"To", p.To}} {
			if r.Rate > MaxRate {
				f.add("%s.%s: %s, is %v", name, r.name, rateBounds, r.Rate)
			}
		}
		if p.Every != 0 {
			f.add("%s.Every: only for bursts", name)
		}
		return
	}
	if p.From != 0 || p.To != 0 {
		f.add("%s: has both a rate and bursts; use two phases", name)
	}
	switch {
	case p.Every <= 0:
		f.add("%s.Every: must be above 0, is %v", name, p.Every)
	case p.Burst > uint64(p.Every):
		f.add("%s.Burst: %d every %v is over 1,000,000,000/s (one message a nanosecond)", name, p.Burst, p.Every)
	}
}

func (s *Spec) checkSizes(f *faults) {
	if len(s.Sizes) == 0 {
		f.add("Sizes: must hold at least one size")
	}
	total := uint64(0)
	for i, z := range s.Sizes {
		if z.Bytes < 1 {
			f.add("Sizes[%d].Bytes: must be at least 1, is %d", i, z.Bytes)
		}
		if z.Weight < 1 {
			f.add("Sizes[%d].Weight: must be at least 1, is %d", i, z.Weight)
			continue
		}
		if total += uint64(z.Weight); total > math.MaxInt64 {
			f.add("Sizes: the weights add up to more than %d", int64(math.MaxInt64))
			return
		}
	}
}

func (s *Spec) checkKeys(f *faults) {
	k := &s.Keys
	switch {
	case k.Kind > RoundRobinKeys:
		f.add("Keys.Kind: unknown kind %d", k.Kind)
		return
	case k.Kind == NoKeys && k.N != 0:
		f.add("Keys.N: is %d, but there are no keys", k.N)
	case k.Kind != NoKeys && k.N == 0:
		f.add("Keys.N: must be at least 1, is 0")
	case k.Kind == ZipfKeys && k.N > maxZipf:
		f.add("Keys.N: at most %d zipf keys, is %d: they need a table of 8 bytes each", maxZipf, k.N)
	}
	switch {
	case k.Kind == ZipfKeys && !(k.S > 0 && k.S <= 10):
		f.add("Keys.S: the exponent must be above 0 and at most 10, is %v", k.S)
	case k.Kind != ZipfKeys && k.S != 0:
		f.add("Keys.S: only zipf keys have an exponent")
	}
}
