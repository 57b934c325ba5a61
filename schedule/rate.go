package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// A Rate is a number of messages per time, in millionths of a message per
// hour, so that whole rates per second, minute and hour are all whole numbers.
// The zero Rate is none; the greatest that a schedule takes is MaxRate.
type Rate uint64

// MaxRate is one message a nanosecond: instants are whole nanoseconds, and a
// rate beyond this could not keep messages apart.
const MaxRate Rate = 3_600_000_000_000_000_000

// Rates of one message per second, minute and hour.
const (
	oneASecond = 3_600_000_000
	oneAMinute = 60_000_000
	oneAnHour  = 1_000_000
)

const rateBounds = "rate must be above 0 and at most 1,000,000,000/s (one message a nanosecond)"

// PerSecond is the rate of n messages a second. A rate that a Rate cannot hold
// gives the greatest Rate there is, which New refuses as any over MaxRate.
func PerSecond(n uint64) Rate {
	hi, lo := bits.Mul64(n, oneASecond)
	if hi != 0 {
		return math.MaxUint64
	}
	return Rate(lo)
}

// ParseRate reads a decimal number and a unit: "20000/s", "0.5/s", "100/m",
// "3/h". It refuses what is not above zero, what is over MaxRate, and what is
// no whole number of millionths of a message per hour; the error quotes s and
// says what is allowed.
func ParseRate(s string) (Rate, error) {
	r, err := parseRate(s)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", s, err)
	}
	return r, nil
}

func parseRate(s string) (Rate, error) {
	number, unit, _ := strings.Cut(s, "/")
	scale, ok := map[string]uint64{"s": oneASecond, "m": oneAMinute, "h": oneAnHour}[unit]
	number, negative := strings.CutPrefix(number, "-")
	whole, fraction, point := strings.Cut(number, ".")
	if !ok || !digits(whole) || point && !digits(fraction) {
		return 0, errors.New("a rate is a decimal number of messages per second, minute or hour, such as 20000/s, 0.5/s, 100/m or 3/h")
	}
	n, err := strconv.ParseUint(whole, 10, 64)
	if err != nil { // digits only: out of range
		n = math.MaxUint64
	}
	hi, units := bits.Mul64(n, scale)
	if negative || hi != 0 || units > uint64(MaxRate) {
		return 0, errors.New(rateBounds)
	}
	fraction = strings.TrimRight(fraction, "0")
	if fraction != "" {
		part, ok := fractionOf(scale, fraction)
		if !ok {
			return 0, errors.New("a rate must be a whole number of millionths of a message per hour: use fewer decimals, or /m or /h")
		}
		units += part
	}
	if units == 0 || units > uint64(MaxRate) {
		return 0, errors.New(rateBounds)
	}
	return Rate(units), nil
}

// fractionOf returns 0.fraction * scale where that is a whole number.
func fractionOf(scale uint64, fraction string) (uint64, bool) {
	// The scales have no factor 2 or 5 to a power above 10, so that a fraction
	// that ends in another digit than 0 beyond the 18th is never whole.
	if len(fraction) > 18 {
		return 0, false
	}
	n, err := strconv.ParseUint(fraction, 10, 64)
	if err != nil {
		return 0, false
	}
	ten := uint64(1)
	for range fraction {
		ten *= 10
	}
	hi, lo := bits.Mul64(n, scale)
	q, rem := bits.Div64(hi, lo, ten)
	return q, rem == 0
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// String returns the rate as ParseRate reads it, exactly: per second where
// three decimals are enough, else per minute where it is whole, else per hour.
func (r Rate) String() string {
	n := uint64(r)
	switch {
	case n%(oneASecond/1000) == 0:
		return decimal(n, oneASecond) + "/s"
	case n%oneAMinute == 0:
		return decimal(n, oneAMinute) + "/m"
	}
	return decimal(n, oneAnHour) + "/h"
}

// decimal writes n/unit, which must have at most six decimals.
func decimal(n, unit uint64) string {
	whole := strconv.FormatUint(n/unit, 10)
	millionths := n % unit / (unit / 1_000_000)
	if millionths == 0 {
		return whole
	}
	return whole + strings.TrimRight(fmt.Sprintf(".%06d", millionths), "0")
}

// PerSecond returns the rate in messages per second, rounded to a float64: to
// show, not to compute instants with.
func (r Rate) PerSecond() float64 { return float64(r) / oneASecond }
