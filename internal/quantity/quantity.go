// Package quantity parses and formats numbers, times, sizes and rates. It accepts the spellings that people
// type and other tools print: 10_000, 1,000, 1e4, 10k, 1.5KiB, 90sec, 8 min 20 s. Parsing is exact and
// never rounds. Formatting is for people: times to three significant digits in a suitable unit, counts with
// thousands separators.
package quantity

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Forms of texts as parts of regular expressions, for the patterns of a JSON Schema.
const (
	// NumberForm is a number that Decimal reads.
	NumberForm = `([0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?|[0-9]+(_[0-9]+)*(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?`
	// ThousandsForm is the letter that Decimal reads behind a number, if there is one.
	ThousandsForm = `( ?[kKMG])?`
	// DurationForm is a duration that Duration reads.
	DurationForm = `\+? ?` + partForm + `( ?` + partForm + `)*`
	// SizeForm is a size that Size reads.
	SizeForm = `\+?` + NumberForm + ` ?([bB]|[kKmMgGtT]([iI]?[bB])?)?`

	// ListForm is a number that may be a list, for MayBeList: no reader of numbers without a
	// unit takes it.
	ListForm = `\+?[0-9]{1,3}(,[1-9][0-9]{2})+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?`

	partForm = `(([0-9]{1,3}(,[0-9]{3})+|[0-9]+(_[0-9]+)*)(\.[0-9]*)?|\.[0-9]+) ?` + unitForm
	unitForm = `(ns|us|µs|μs|ms|s|m|h|d|msecs?|milliseconds?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)`
)

var (
	number    = regexp.MustCompile(`^` + NumberForm)
	component = regexp.MustCompile(`^ ?([0-9][0-9_,]*\.?[0-9]*|\.[0-9]+) ?([a-zµμ]+)`)
)

// unitOf returns the unit of a duration.
func unitOf(name string) (time.Duration, bool) {
	switch name {
	case "ns":
		return time.Nanosecond, true
	case "us", "µs", "μs":
		return time.Microsecond, true
	case "ms", "msec", "msecs", "millisecond", "milliseconds":
		return time.Millisecond, true
	case "s", "sec", "secs", "second", "seconds":
		return time.Second, true
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, true
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour, true
	case "d", "day", "days":
		return 24 * time.Hour, true
	}
	return 0, false
}

var errSyntax = errors.New("malformed")

// Decimal parses the number at the beginning of s, and returns the rest of s. Commas separate all groups of
// three digits or none, underscores may stand between digits, and an exponent has at most two digits. k and
// K after it mean thousand, M million, and G thousand million; m means nothing here, because it may be a
// minute. A sign is not part of a number.
func Decimal(s string) (v *big.Rat, rest string, err error) {
	m := number.FindString(s)
	if m == "" {
		return nil, s, errSyntax
	}
	v, ok := new(big.Rat).SetString(strings.NewReplacer(",", "", "_", "").Replace(m))
	if !ok {
		return nil, s, errSyntax
	}
	rest = s[len(m):]
	trimmed := strings.TrimPrefix(rest, " ")
	if trimmed == "" {
		return v, rest, nil
	}
	scale := map[byte]int64{'k': 1e3, 'K': 1e3, 'M': 1e6, 'G': 1e9}[trimmed[0]]
	if scale == 0 {
		return v, rest, nil
	}
	return v.Mul(v, new(big.Rat).SetInt64(scale)), trimmed[1:], nil
}

// MayBeList returns s without its commas if it is a number that could also be a list: "100,500" and
// "64,256". It is "" for all other texts. A unit after the number makes it a number. So does a group that
// begins with 0 ("1,000"): no list has "000".
func MayBeList(s string) (plain string) {
	s = strings.TrimPrefix(s, "+")
	if !strings.Contains(s, ",") || strings.Contains(s, ",0") || number.FindString(s) != s {
		return ""
	}
	return strings.ReplaceAll(s, ",", "")
}

// Whole parses a whole number, which may end in k, M or G: "1,000,000", "100k", "1e6". ok is false if s is
// not one, may be a list, or exceeds a uint64.
func Whole(s string) (n uint64, ok bool) {
	v, rest, err := Decimal(s)
	if err != nil || MayBeList(s) != "" || rest != "" || !v.IsInt() || !v.Num().IsUint64() {
		return 0, false
	}
	return v.Num().Uint64(), true
}

// Share parses 0, or a percentage below 100 with its sign, as a fraction.
func Share(s string) (part float64, ok bool) {
	text, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v / 100, err == nil && (percent || v == 0) && v >= 0 && v < 100
}

// Duration parses a duration: the syntax of time.ParseDuration, and also units as words ("90sec", "1min"),
// days ("2d") and spaces ("8 min 20 s"). A day has 24 hours. A number without a unit is an error, unless it
// is 0.
func Duration(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	sum := new(big.Rat)
	rest := strings.TrimPrefix(s, "+")
	for rest != "" {
		m := component.FindStringSubmatch(rest)
		if m == nil {
			return 0, errSyntax
		}
		unit, known := unitOf(m[2])
		v, over, err := Decimal(strings.TrimSuffix(m[1], "."))
		if !known || err != nil || over != "" {
			return 0, errSyntax
		}
		sum.Add(sum, v.Mul(v, new(big.Rat).SetInt64(int64(unit))))
		rest = rest[len(m[0]):]
	}
	ns := new(big.Int).Quo(sum.Num(), sum.Denom())
	if s == "" || s == "+" || !ns.IsInt64() {
		return 0, errSyntax
	}
	return time.Duration(ns.Int64()), nil
}

// Size parses a number of bytes. K, M, G and T are powers of 1024, like KiB, MiB, GiB and TiB; KB, MB, GB
// and TB are powers of 1000, as in the GNU tools. Case does not matter. A fraction must give whole bytes.
// What may be a list is an error.
func Size(s string) (int64, error) {
	if MayBeList(s) != "" {
		return 0, errSyntax
	}
	m := number.FindString(strings.TrimPrefix(s, "+"))
	if m == "" {
		return 0, errSyntax
	}
	v, _, err := Decimal(m)
	if err != nil {
		return 0, err
	}
	unit := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s, "+")[len(m):], " "))
	scale, ok := map[string]int64{
		"": 1, "b": 1,
		"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
		"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	}[unit]
	v.Mul(v, new(big.Rat).SetInt64(scale))
	if !ok || !v.IsInt() || !v.Num().IsInt64() || v.Num().Int64() > math.MaxInt64/2 {
		return 0, errSyntax
	}
	return v.Num().Int64(), nil
}
