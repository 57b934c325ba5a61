package quantity

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// units of time, largest first.
var units = []struct {
	name string
	ns   float64
}{
	{"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}, {"ns", 1},
}

// timeUnit returns the largest unit that fits into ns; minutes only from 1,000 s on.
func timeUnit(ns int64) (name string, size float64) {
	v := math.Abs(float64(ns))
	for i, u := range units {
		// A value that rounds up to 1,000 of a unit is one of the next.
		if v >= u.ns*0.9995 && (i > 0 || v >= 999.5e9) {
			return u.name, u.ns
		}
	}
	return "ns", 1
}

// Time formats a duration of ns nanoseconds to three significant digits: "1.23 ms", "12 ns", "0 ns".
func Time(ns int64) string {
	name, size := timeUnit(ns)
	return Significant(float64(ns)/size, name == "ns") + " " + name
}

// Range formats the ends of an interval, each a number with its unit: "1.54 to 1.65 ms", or "<= 322 µs" and
// ">= 1.72 ms" if only one end is known, which the other's text says by being empty.
func Range(lo, hi string) string {
	switch {
	case lo == "" && hi == "":
		return ""
	case lo == "":
		return "<= " + hi
	case hi == "":
		return ">= " + lo
	case lo == hi:
		return lo
	}
	if number, unit, _ := strings.Cut(lo, " "); unit != "" && strings.HasSuffix(hi, " "+unit) {
		lo = number
	}
	return lo + " to " + hi
}

// TimeRange formats an interval of times in ns; a nil end is unknown.
func TimeRange(lo, hi *int64) string {
	end := func(ns *int64) string {
		if ns == nil {
			return ""
		}
		return Time(*ns)
	}
	return Range(end(lo), end(hi))
}

// Significant formats v to three significant digits; whole units of ns are kept exact.
func Significant(v float64, whole bool) string {
	a := math.Abs(v)
	switch {
	case whole || a >= 99.95 || a == 0:
		return Commas(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// Count returns n with its thousands separated: "10,000".
func Count(n uint64) string { return Commas(strconv.FormatUint(n, 10)) }

// Rate returns a number of messages per second: "1,000/s", "0.500/s".
func Rate(perSecond float64) string {
	if perSecond >= 99.95 {
		return Commas(strconv.FormatFloat(perSecond, 'f', 0, 64)) + "/s"
	}
	return Significant(perSecond, false) + "/s"
}

// ByteRate returns a number of bytes per second in units of 1000: "1.02 MB/s".
func ByteRate(perSecond float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"KB/s", 1e3}} {
		if perSecond >= u.size*0.9995 {
			return Significant(perSecond/u.size, false) + " " + u.name
		}
	}
	return Significant(perSecond, true) + " B/s"
}

// Span returns a length of time in words of at most two units: "8 min 20 s",
// "2 h 47 min", "12 s".
func Span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		d = d.Round(time.Hour)
		return strconv.Itoa(int(d/(24*time.Hour))) + " d" + further(int(d%(24*time.Hour)/time.Hour), "h")
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return strconv.Itoa(int(d/time.Hour)) + " h" + further(int(d%time.Hour/time.Minute), "min")
	case d >= time.Minute:
		d = d.Round(time.Second)
		return strconv.Itoa(int(d/time.Minute)) + " min" + further(int(d%time.Minute/time.Second), "s")
	case d >= 10*time.Second && d%time.Second == 0:
		return strconv.Itoa(int(d/time.Second)) + " s"
	}
	return strings.TrimSuffix(strings.Replace(Time(int64(d)), ".00 ", " ", 1), "")
}

// Typed returns a length of time as people type it: "1m", "2h", not "1m0s", "2h0m0s".
func Typed(d time.Duration) string {
	s := d.String()
	for _, zero := range []struct{ end, from string }{{"m0s", "m"}, {"h0m", "h"}} {
		if short, found := strings.CutSuffix(s, zero.end); found {
			s = short + zero.from
		}
	}
	return s
}

func further(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return " " + strconv.Itoa(n) + " " + unit
}

// Commas separates the thousands of a decimal number.
func Commas(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, fraction, point := strings.Cut(s, ".")
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if point {
		return sign + b.String() + "." + fraction
	}
	return sign + b.String()
}

// Counted formats a number of things: "1 run", "2 runs".
func Counted[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(uint64(n)) + " " + many
}

// Plural formats a number of things whose plural ends in s, without separating thousands: "1 run", "2000 runs".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Bytes returns a number of bytes in units of 1024: "12.0 MiB".
func Bytes(bytes float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.size*0.9995 {
			return Significant(bytes/u.size, false) + " " + u.name
		}
	}
	return Significant(math.Round(bytes), true) + " B"
}
