package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// chronyLimit is the timeout for chronyc, which answers within milliseconds, or gives up by itself
// after some seconds without a daemon.
const chronyLimit = 10 * time.Second

// Chrony asks the host's chronyd how far the wall clock may be off. It runs `chronyc -n -c tracking`,
// which needs no privilege and changes nothing, and blocks until it has answered, for at most ten
// seconds.
//
// The error wraps exec.ErrNotFound if chronyc is missing, ErrSilent if chronyd does not run, and
// ErrUnsynchronised if it follows no clock. If it refuses the query, the error has chronyc's message.
func Chrony(ctx context.Context) (Tracking, error) {
	ctx, cancel := context.WithTimeout(ctx, chronyLimit)
	defer cancel()
	out, err := daemonSays(ctx, "chronyc", "-n", "-c", "tracking")
	if err != nil && strings.Contains(err.Error(), "506 Cannot talk to daemon") {
		err = fmt.Errorf("%w: %w", ErrSilent, err)
	}
	if err != nil {
		return Tracking{}, fmt.Errorf("asking chronyc: %w", err)
	}
	return ParseTracking(out)
}

// ErrUnsynchronised is returned when chrony runs but follows no external clock: none at all, or only
// the host's own.
var ErrUnsynchronised = errors.New("not synchronised")

// A Tracking is chrony's view of the host's wall clock.
type Tracking struct {
	// Source is the address or name of the source it follows: a server, or a reference clock such as PPS.
	Source string
	// Stratum is the distance to the reference clock in servers; 1 is a server that has one.
	Stratum int
	// Offset is the remaining correction: add it to the wall clock to get chrony's estimate of the time.
	Offset time.Duration
	// RootDelay is the round-trip delay to the reference clock; RootDispersion is the additional error of
	// all clocks on the way.
	RootDelay      time.Duration
	RootDispersion time.Duration
	// Leap is chrony's leap second status: Normal, or that one is due.
	Leap string
}

// Bound returns how far the host's wall clock may be from true time: remaining offset + root
// dispersion + half of the root delay, as in chrony's FAQ ("How accurate is my system clock?").
func (t Tracking) Bound() time.Duration {
	return t.Offset.Abs() + t.RootDispersion + t.RootDelay/2
}

// localClock is chrony's reference ID for the host's own clock, which the directive `local` allows as
// a source (127.127.1.1).
const localClock = "7F7F0101"

// ParseTracking parses the output of `chronyc -c tracking`: fourteen comma-separated fields in seconds
// and parts per million, as printed by chrony 4.3. The error names the invalid field; it wraps
// ErrUnsynchronised if the output is valid but chrony follows no clock.
func ParseTracking(output string) (Tracking, error) {
	const (
		refID = iota
		source
		stratum
		_ // time of the last measurement
		system
		_ // offset at the last measurement
		_ // root mean square of the offsets
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
		{&t.Offset, "system time", f[system], -mostOff},
		{&t.RootDelay, "root delay", f[rootDelay], 0},
		{&t.RootDispersion, "root dispersion", f[rootDispersion], 0},
	} {
		s, err := strconv.ParseFloat(d.text, 64)
		if err != nil || !(s >= d.least && s <= mostOff) { // NaN fails every comparison
			return Tracking{}, fmt.Errorf("reading chrony's tracking: %s %q", d.name, d.text)
		}
		*d.into = time.Duration(math.Round(s * 1e9))
	}
	return t, nil
}

// mostOff is the longest duration accepted, in seconds: fifty years, so that sums for a bound cannot
// overflow.
const mostOff = 50 * 365 * 86400
