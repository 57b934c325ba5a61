package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// chronyLimit is how long chronyc is waited for. It answers within milliseconds,
// or gives up by itself after some seconds without a daemon.
const chronyLimit = 10 * time.Second

// Chrony asks the host's chronyd how far the wall clock may be off. It runs
// `chronyc -n -c tracking`, which needs no privilege and changes nothing, and
// blocks until that has answered, for ten seconds at most.
//
// The error wraps exec.ErrNotFound where there is no chronyc, and
// ErrUnsynchronised where chronyd follows no clock. Without a chronyd, or
// with one that may not be asked, it has chronyc's own words.
func Chrony(ctx context.Context) (Tracking, error) {
	ctx, cancel := context.WithTimeout(ctx, chronyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "chronyc", "-n", "-c", "tracking")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second // for who inherited its output
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if said := strings.Join(strings.Fields(out.String()), " "); said != "" {
			return Tracking{}, fmt.Errorf("asking chronyc: %w: %.200s", err, said)
		}
		return Tracking{}, fmt.Errorf("asking chronyc: %w", err)
	}
	return ParseTracking(out.String())
}

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
		{&t.Offset, "system time", f[system], -mostOff},
		{&t.RootDelay, "root delay", f[rootDelay], 0},
		{&t.RootDispersion, "root dispersion", f[rootDispersion], 0},
	} {
		s, err := strconv.ParseFloat(d.text, 64)
		if err != nil || !(s >= d.least && s <= mostOff) { // what is not a number compares to none
			return Tracking{}, fmt.Errorf("reading chrony's tracking: %s %q", d.name, d.text)
		}
		*d.into = time.Duration(math.Round(s * 1e9))
	}
	return t, nil
}

// mostOff bounds the durations that are taken, in seconds: fifty years, so that a
// bound made of them is not overflow.
const mostOff = 50 * 365 * 86400
