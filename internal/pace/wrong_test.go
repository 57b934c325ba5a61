package pace

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirmq/weir/internal/must"
)

func TestParseWrong(t *testing.T) {
	for text, want := range map[string]Wrong{
		"constant=25ms,drift=40ppm,step=10s:3ms": {Constant: 25 * time.Millisecond, DriftPPM: 40, StepAt: 10 * time.Second, StepBy: 3 * time.Millisecond},
		"wall=-2s,drift=1ppm":                    {DriftPPM: 1, Wall: -2 * time.Second},
		"constant=-1h":                           {Constant: -time.Hour},
		"drift=-0.5ppm":                          {DriftPPM: -0.5},
		"step=1m:-3ms, drift=1ppm":               {DriftPPM: 1, StepAt: time.Minute, StepBy: -3 * time.Millisecond},
	} {
		got, err := ParseWrong(text)
		if err != nil || got != want {
			t.Errorf("ParseWrong(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if again, err := ParseWrong(got.String()); err != nil || again != got {
			t.Errorf("ParseWrong(%q) = %+v, %v; want what was written, %+v", got.String(), again, err, got)
		}
	}
}

func TestParseWrongNamesInvalidPart(t *testing.T) {
	for text, want := range map[string]string{
		"":                          `""`,
		"constant":                  `"constant"`,
		"constant=5":                "missing unit",
		"constant=1s,constant=2s":   `"constant=2s"`,
		"drift=40":                  `"40" is not a drift`,
		"drift=fastppm":             `"fastppm" is not a drift`,
		"drift=NaNppm":              "at most 100000 ppm",
		"drift=100001ppm":           "at most 100000 ppm",
		"step=3ms":                  `"3ms" is not a step`,
		"step=x:3ms":                `invalid duration "x"`,
		"step=3s:":                  `invalid duration ""`,
		"step=-1s:3ms":              "before the clock's making",
		"wander=3ms":                `"wander" is not known`,
		"constant=25ms,":            `""`,
		"constant=1000000h":         "hundred years",
		"step=1s:1000000h":          "hundred years",
		"wall=-1000000h":            "hundred years",
		"step=1000000h:1s,drift=0x": `"0x" is not a drift`,
	} {
		_, err := ParseWrong(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "want constant=DURATION") {
			t.Errorf("ParseWrong(%q): %v, want an error with %s and what is allowed", text, err, want)
		}
	}
}

func TestNewWrongClockRejectsInvalid(t *testing.T) {
	if c, err := NewWrongClock(Wrong{DriftPPM: math.Inf(1)}); err == nil {
		t.Errorf("NewWrongClock = %+v, want an error", c)
	}
}

// Closed forms, in virtual time.
func TestWrongClockFollowsItsSpecification(t *testing.T) {
	const s, ms, us = time.Second, time.Millisecond, time.Microsecond
	for name, c := range map[string]struct {
		wrong string
		after time.Duration
		reads time.Duration // more than the true time
	}{
		"constant, at once":             {"constant=25ms", 0, 25 * ms},
		"constant, later":               {"constant=25ms", 3600 * s, 25 * ms},
		"behind":                        {"constant=-25ms", 10 * s, -25 * ms},
		"fast":                          {"drift=40ppm", 100 * s, 4 * ms},
		"slow":                          {"drift=-30ppm", 100 * s, -3 * ms},
		"just before a step":            {"step=10s:3ms", 10*s - 1, 0},
		"at a step":                     {"step=10s:3ms", 10 * s, 3 * ms},
		"after a step":                  {"step=10s:3ms", 20 * s, 3 * ms},
		"in a step back it stands":      {"step=10s:-3ms", 10*s + ms, -ms},
		"after a step back":             {"step=10s:-3ms", 10*s + 3*ms, -3 * ms},
		"all together":                  {"constant=25ms,drift=40ppm,step=10s:3ms", 100 * s, 32 * ms},
		"all together, just before one": {"constant=25ms,drift=40ppm,step=100s:3ms", 100*s - 25*us, 29*ms - 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := must.Get(ParseWrong(c.wrong))(t)
				right := NewClock()
				wrong := must.Get(NewWrongClock(w))(t)
				time.Sleep(c.after)
				// Both on the host's monotonic clock: the true one, and the one that the wrong clock takes for it.
				got := wrong.Now() + wrong.Epoch().MonotonicNS - right.Now() - right.Epoch().MonotonicNS
				if off := got - int64(c.reads); off < -1 || off > 1 { // a drift is rounded to whole nanoseconds
					t.Errorf("reads %v more, want %v", time.Duration(got), c.reads)
				}
			})
		})
	}
}

func TestWrongClockCountsFromCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustWrong(t, "constant=25ms,drift=100000ppm")
		if now := c.Now(); now != 0 {
			t.Errorf("read %d when made, want 0", now)
		}
		e := c.Epoch()
		time.Sleep(10 * time.Second)
		later := c.At(e.MonotonicNS + int64(5*time.Second))
		if got, want := later.Now(), int64(6*time.Second); got != want {
			t.Errorf("read %v from an epoch 5 s later, want %v", time.Duration(got), time.Duration(want))
		}
		if got := later.Epoch().MonotonicNS - e.MonotonicNS; got != int64(5*time.Second) {
			t.Errorf("epochs are %v apart, want 5s", time.Duration(got))
		}
		if back := later.At(e.MonotonicNS).Epoch(); back != e {
			t.Errorf("there and back: %+v, want %+v", back, e)
		}
	})
}

func TestWrongClockHasOwnBootID(t *testing.T) {
	a, right := mustWrong(t, "constant=1s").Epoch(), NewClock().Epoch()
	time.Sleep(time.Millisecond)
	b := mustWrong(t, "constant=1s").Epoch()
	if a.BootID == right.BootID || a.BootID == b.BootID {
		t.Errorf("boot ids %q, %q and of the host %q: want three", a.BootID, b.BootID, right.BootID)
	}
}

func mustWrong(t *testing.T, text string) *Clock {
	t.Helper()
	w := must.Get(ParseWrong(text))(t)
	return must.Get(NewWrongClock(w))(t)
}

func faults() *rapid.Generator[*fault] {
	return rapid.Custom(func(t *rapid.T) *fault {
		return &fault{
			drift:  rapid.Float64Range(-0.1, 0.1).Draw(t, "drift"),
			stepAt: rapid.Int64Range(0, int64(1e15)).Draw(t, "step at"),
			stepBy: rapid.Int64Range(-int64(1e12), int64(1e12)).Draw(t, "step by"),
		}
	})
}

// The inverse is exact: the clock reaches x at that instant, and not a nanosecond before.
func TestInvertFindsFirstMatchingInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := faults().Draw(t, "fault")
		x := rapid.OneOf(
			rapid.Int64Range(-int64(1e18), int64(2e18)),
			rapid.Map(rapid.Int64Range(-int64(1e7), int64(1e7)), func(d int64) int64 { return f.plain(f.stepAt) + d }),
			rapid.Map(rapid.Int64Range(-int64(1e7), int64(1e7)), func(d int64) int64 { return f.plain(f.stepAt) + f.stepBy + d }),
		).Draw(t, "x")
		e := f.invert(x)
		if got := f.apply(e); got < x {
			t.Errorf("at %d it reads %d, want %d at least", e, got, x)
		}
		if got := f.apply(e - 1); got >= x {
			t.Errorf("at %d, before it, it reads %d already, want less than %d", e-1, got, x)
		}
	})
}

func TestAWrongClockNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := faults().Draw(t, "fault")
		from := rapid.OneOf(rapid.Int64Range(-int64(1e15), int64(1e15)), rapid.Just(f.stepAt-2)).Draw(t, "from")
		by := rapid.Int64Range(0, 100).Draw(t, "by")
		if a, b := f.apply(from), f.apply(from+by); b < a {
			t.Errorf("reads %d, and %d ns later %d", a, by, b)
		}
	})
}

func TestInstantsOfAWrongClockSaturate(t *testing.T) {
	c := mustWrong(t, "constant=25ms,drift=40ppm,step=10s:3ms")
	for _, instant := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2} {
		if got := c.monotonic(instant); got < math.MaxInt64/4 {
			t.Errorf("instant %d is %d on the host's clock, want one that never comes", instant, got)
		}
	}
	if got := c.monotonic(math.MinInt64); got > 0 {
		t.Errorf("the first instant is %d on the host's clock, want one long ago", got)
	}
}

// In virtual time a wait ends exactly at the first instant at which the clock reads the requested
// time.
func TestWaiterFollowsWrongClock(t *testing.T) {
	for _, wrong := range []string{"constant=25ms", "drift=100000ppm", "drift=-100000ppm", "step=10s:3s", "step=10s:-3s", "constant=-1h,drift=40ppm,step=7s:3ms"} {
		t.Run(wrong, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := mustWrong(t, wrong)
				w := NewWaiter(c, Virtual())
				for due := int64(time.Second); due < int64(20*time.Second); due += int64(500 * time.Millisecond) {
					now := w.Until(due)
					if want := c.fault.apply(c.fault.invert(due)); now != want {
						t.Errorf("until %v: read %v, want %v", time.Duration(due), time.Duration(now), time.Duration(want))
					}
					if got, want := time.Since(start), time.Duration(c.fault.invert(due)); got != want {
						t.Errorf("until %v: slept %v, want %v", time.Duration(due), got, want)
					}
				}
			})
		})
	}
}

// On the real clock: the kernel's sleep ends by the host's true clock, and no wait returns early or
// misses its instant by the clock's own error, which is an hour here.
func TestWrongClockWaiterSleepsByTrueClock(t *testing.T) {
	c := mustWrong(t, "constant=1h,drift=-100000ppm,step=20ms:10ms")
	for _, cal := range []Calibration{{}, {Spin: true, Margin: 20_000}} {
		w := NewWaiter(c, cal)
		start := time.Now()
		for range 20 {
			due := c.Now() + int64(2*time.Millisecond)
			if now := w.Until(due); now < due {
				t.Fatalf("returned at %d, before %d", now, due)
			}
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("20 waits of 2 ms took %v", took)
		}
	}
}

func TestReadingAWrongClockAllocatesNothing(t *testing.T) {
	c := mustWrong(t, "constant=25ms,drift=40ppm,step=0s:3ms")
	if n := testing.AllocsPerRun(1000, func() { c.Now() }); n != 0 {
		t.Errorf("Now allocates %v times", n)
	}
}
