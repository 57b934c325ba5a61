package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
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

// PerSecond is the rate of n messages a second. If it overflows, the result is the largest Rate,
// which New rejects like any over MaxRate.
func PerSecond(n uint64) Rate {
	hi, lo := bits.Mul64(n, oneASecond)
	if hi != 0 {
		return math.MaxUint64
	}
	return Rate(lo)
}

// ParseRate reads a number and a unit, in common spellings: "20000/s", "0.5/s", "100/m", "3/h",
// "10k/s", "1,000/s", "60/min", "1e4/s", "500rps". A number without a unit is messages per second.
// quantity.Decimal defines the numbers. ParseRate rejects what is not above zero, what is over
// MaxRate, and what is not a whole number of millionths of a message per hour. It rejects
// "100,500", which may be a list, and accepts "100,500/s". The error quotes s and says what is
// allowed.
func ParseRate(s string) (Rate, error) {
	r, err := ParseRateOrNone(s)
	if err == nil && r == 0 {
		return 0, fmt.Errorf("%q: %w", s, errors.New(rateBounds))
	}
	return r, err
}

// ParseRateOrNone is ParseRate, but also accepts 0/s.
func ParseRateOrNone(s string) (Rate, error) {
	r, err := parseRate(s)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", s, err)
	}
	return r, nil
}

func parseRate(s string) (Rate, error) {
	unsigned, negative := strings.CutPrefix(strings.TrimSpace(s), "-")
	n, unit, err := quantity.Decimal(unsigned)
	scale := scaleOf(unit)
	plain := quantity.MayBeList(unsigned)
	switch {
	case plain != "":
		return 0, fmt.Errorf("this may be one number or a list: write %s/s for the number", plain)
	case err != nil || scale == 0:
		return 0, errors.New("a rate is a number of messages per second, minute or hour, such as 20000/s, 10k/s, 0.5/s, 100/m or 3/h")
	case negative:
		return 0, errors.New(rateBounds)
	}
	n.Mul(n, new(big.Rat).SetInt64(scale))
	switch {
	case n.Cmp(new(big.Rat).SetInt64(int64(MaxRate))) > 0:
		return 0, errors.New(rateBounds)
	case !n.IsInt():
		return 0, errors.New("a rate must be a whole number of millionths of a message per hour: use fewer decimals, or /m or /h")
	}
	return Rate(n.Num().Uint64()), nil
}

// scaleOf returns how many units of a Rate one message per this unit of time is; 0 for an unknown
// unit.
func scaleOf(unit string) int64 {
	unit = strings.ToLower(strings.TrimSpace(unit))
	for _, counted := range []string{"messages", "message", "msgs", "msg"} {
		if of, ok := strings.CutPrefix(unit, counted); ok {
			unit = strings.TrimSpace(of)
			break
		}
	}
	if of, ok := strings.CutPrefix(unit, "per "); ok {
		unit = "/" + of
	}
	switch unit {
	case "", "/s", "/sec", "/second", "rps", "qps", "tps", "mps":
		return oneASecond
	case "/m", "/min", "/minute":
		return oneAMinute
	case "/h", "/hr", "/hour":
		return oneAnHour
	}
	return 0
}

// String returns the rate as ParseRate reads it, exactly: per second if three decimals suffice,
// else per minute if it is whole, else per hour.
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

// PerSecond returns the rate in messages per second, rounded to a float64: for display, not for
// computing instants.
func (r Rate) PerSecond() float64 { return float64(r) / oneASecond }
