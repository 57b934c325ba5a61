package offset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrUnsynchronised is the error where chrony runs but follows no clock that it
// could be compared by: none at all, or only the host's own.
var ErrUnsynchronised = errors.New("not synchronised")

// A Tracking is what chrony knows of the host's wall clock.
type Tracking struct {
	// Source is the address or name of what it follows: a server, or the name of
	// a reference clock, such as PPS.
	Source string
	// Stratum is how many servers away the reference clock is, 1 at one.
	Stratum int
	// Offset is what must be added to the wall clock to get chrony's idea of the
	// time: what it has not corrected yet.
	Offset time.Duration
	// RootDelay is the delay there and back of all the way to the reference clock,
	// RootDispersion what all clocks on the way may be off beside that.
	RootDelay      time.Duration
	RootDispersion time.Duration
	// Leap is chrony's word on leap seconds: Normal, or that one is due.
	Leap string
}

// Bound is how far the host's wall clock may be from true time: the offset that
// is left, the root dispersion and half of the root delay, as chrony's FAQ has it
// ("How accurate is my system clock?").
func (t Tracking) Bound() time.Duration {
	return t.Offset.Abs() + t.RootDispersion + t.RootDelay/2
}

// localClock is chrony's reference identifier of the host's own clock, which the
// directive `local` lets it pass for a source (127.127.1.1).
const localClock = "7F7F0101"

// ParseTracking reads the output of `chronyc -c tracking`: fourteen fields with
// commas between them, in seconds and parts per million, as chrony 4.3 writes
// them. The error says which field is wrong; it wraps ErrUnsynchronised where
// nothing is wrong but chrony follows no clock.
func ParseTracking(output string) (Tracking, error) {
	const (
		refID = iota
		source
		stratum
		_ // time of the last measurement
		system
		_ // offset at the last measurement
		_ // root mean square of those
		_ // frequency
		_ // residual frequency
		_ // skew
		rootDelay
		rootDispersion
		_ // interval between measurements
		leap
		fields
	)
	f := strings.Split(strings.TrimSpace(output), ",")
	if len(f) != fields {
		return Tracking{}, fmt.Errorf("reading chrony's tracking: %d fields of %d in %.100q", len(f), fields, output)
	}
	switch {
	case f[leap] == "Not synchronised":
		return Tracking{}, fmt.Errorf("chrony is %w", ErrUnsynchronised)
	case f[refID] == localClock:
		return Tracking{}, fmt.Errorf("chrony follows the host's own clock (its directive local): %w", ErrUnsynchronised)
	}
	t := Tracking{Source: f[source], Leap: f[leap]}
	if t.Source == "" {
		t.Source = f[refID]
	}
	var err error
	if t.Stratum, err = strconv.Atoi(f[stratum]); err != nil || t.Stratum < 0 {
		return Tracking{}, fmt.Errorf("reading chrony's tracking: stratum %q", f[stratum])
	}
	for _, d := range []struct {
		into  *time.Duration
		name  string
		text  string
		least float64
	}{
		{&t.Offset, "system time", f[system], -longest},
		{&t.RootDelay, "root delay", f[rootDelay], 0},
		{&t.RootDispersion, "root dispersion", f[rootDispersion], 0},
	} {
		s, err := strconv.ParseFloat(d.text, 64)
		if err != nil || !(s >= d.least && s <= longest) { // what is not a number compares to none
			return Tracking{}, fmt.Errorf("reading chrony's tracking: %s %q", d.name, d.text)
		}
		*d.into = time.Duration(math.Round(s * 1e9))
	}
	return t, nil
}

// longest bounds the durations that are taken, in seconds: fifty years, so that a
// bound made of them is not overflow.
const longest = 50 * 365 * 86400
