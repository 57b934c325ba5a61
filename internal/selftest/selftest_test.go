package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
)

// TestMain makes the test binary one of the processes of the check of kernel instants too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "instants" {
		if err := KernelMain(os.Args[3:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestKernelTimestampsSplitLatency(t *testing.T) {
	needs.Time(t)
	needs.NoRace(t)
	if err := wire.Check(); err != nil {
		needs.Host(t, "ebpf", err)
	}
	self := must.Get(os.Executable())(t)
	c, err := kernelInstants(t.Context(), Options{Scale: 0.5, Self: self})
	switch {
	case err != nil:
		t.Fatal(err)
	case c.Unclear:
		t.Logf("%s: %+v", c.Why, c.Rows)
	case !c.Pass || c.NotRun != "" || len(c.Rows) != 3:
		t.Errorf("%+v", c)
	}
}

// TestKernelTimestampsOfSwappedSidesFail: what a recorder that mixed up the sides would say fails.
func TestKernelTimestampsOfSwappedSidesFail(t *testing.T) {
	r := &wire.Report{}
	r.Send.Levels = []wire.Level{
		{Bucket: wire.Bucket(int64(kernelServed)), Known: 100, System: 200e6},
		{Bucket: wire.Bucket(int64(kernelFreeze)), Known: 4, System: 1590e6, HostIn: 10e6},
	}
	system := longest(r, "server", func(l *wire.Level) int64 { return l.System })
	if !system.OK || !system.Says || system.Want != 400e6 || system.Got != 397_500_000 {
		t.Errorf("%+v", system)
	}
	if host := longest(r, "server", func(l *wire.Level) int64 { return l.HostIn }); host.OK {
		t.Errorf("%+v", host)
	}
	if none := longest(&wire.Report{}, "none", func(l *wire.Level) int64 { return l.HostIn }); none.Says {
		t.Errorf("of no message: %+v", none)
	}
}

// TestSelfTestPasses is `weir calibrate`'s self-test, scaled down. Results that a busy host leaves
// unclear are logged rather than failed: the engine's tests in virtual time check the same figures
// exactly. Conclusive results must be right, and checks that need no clock must always pass.
func TestSelfTestPasses(t *testing.T) {
	only := slices.DeleteFunc(Parts(), func(p string) bool { return p == PartKernel || p == PartIntervals }) // which have tests of their own
	checks := must.Get(Checks(t.Context(), Options{Scale: 0.2, Only: only, OnCheck: func(c Check) { t.Logf("%s: %v after %d runs", c.Name, c.Pass, c.Attempts) }}))(t)
	var names []string
	for _, c := range checks {
		names = append(names, c.Name)
		timed := c.Lateness != nil
		switch {
		case c.Unclear && timed:
			t.Logf("%s, %d attempts: %s", c.Name, c.Attempts, c.Why)
		case !c.Pass:
			t.Errorf("%s, in attempt %d: %s", c.Name, c.Attempts, c.Why)
		}
		text := must.Get(json.Marshal(c))(t)
		t.Logf("%s", text)
	}
	want := []string{
		"m/m/1 closed form", "m/m/1", "stall", "stall, several producers", "slow-down", "planted faults, one consumer",
		"planted faults, competing consumers", "capacity, m/m/1", "capacity, token bucket", "clock", "compare",
	}
	if !slices.Equal(names, want) {
		t.Errorf("checks: %q; want %q", names, want)
	}
	if all := !slices.ContainsFunc(checks, func(c Check) bool { return !c.Pass }); Passed(checks) != all {
		t.Errorf("passed together: %v; each on its own: %v", !all, all)
	}
}

// TestCapacitySearchCoversTruth: a search's interval covers the rate from the closed form, and a wrong
// interval is detected.
func TestCapacitySearchCoversTruth(t *testing.T) {
	needs.NoRace(t)
	for _, c := range ceilings() {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !got.Pass {
				t.Errorf("%s: %+v", got.Why, got.Rows)
			}
			c.truth *= 1.5
			if got, err = c.check(t.Context()); err != nil || got.Pass {
				t.Errorf("with a wrong truth: %+v, %v", got, err)
			}
		})
	}
}

func TestFiguresAreTaken(t *testing.T) {
	f := must.Get(Measure(t.Context(), Options{Scale: 0.1}))(t)
	if f.Slept.Max < 0 || f.Spun.Max < 0 || f.Hiccups.Max <= 0 || f.Calibration.ClockCostNS <= 0 {
		t.Errorf("figures that cannot be: %+v", f)
	}
	if f.Ceiling.MessageNS <= 0 || f.Ceiling.FloorNS <= 0 || f.Ceiling.Ratio <= 0 || f.Ceiling.MessagesPerSecond <= 0 {
		t.Errorf("a ceiling that cannot be: %+v", f.Ceiling)
	}
	if c := f.Ceiling; c.RatioLo > c.Ratio || c.Ratio > c.RatioHi || c.Pairs < 6 || math.Abs(c.Ratio*c.FloorNS-c.MessageNS) > 1e-6*c.MessageNS {
		t.Errorf("a ceiling whose figures do not agree: %+v", c)
	}
	for i, p := range f.Lateness {
		// How much is sent in so short a window depends on the host: a stall can leave nothing, or more after
		// it.
		if p.Rate != float64(lateRates[i]) || p.Sent < 0 || p.Reached != (p.Sent >= reached*p.Rate) {
			t.Errorf("lateness at %d/s: sent %.0f/s at %.0f/s", lateRates[i], p.Sent, p.Rate)
		}
	}
	if len(f.Lateness) != len(lateRates) {
		t.Errorf("lateness at %d rates; want %d", len(f.Lateness), len(lateRates))
	}
}

// TestCeilingFiguresComeFromOnePair simulates a host that slowed down for some pairs: the medians of
// message, floor and ratio are then of different pairs, which gave 138 ns as 1.42 times 148 ns.
func TestCeilingFiguresComeFromOnePair(t *testing.T) {
	var measured []Ceiling
	for i, message := range []float64{138, 200, 210, 100, 138} {
		floor := []float64{97, 148, 148, 71, 150}[i]
		measured = append(measured, Ceiling{MessagesPerSecond: 1e9 / message, MessageNS: message, FloorNS: floor, Ratio: message / floor})
	}
	c := middlePair(measured)
	if c.MessageNS != 100 || c.FloorNS != 71 || c.Ratio != 100.0/71 || c.MessagesPerSecond != 1e7 {
		t.Errorf("%+v; want the pair of 100 and 71 ns", c)
	}
	// With five pairs the interval of a median is from the minimum to the maximum.
	if c.RatioLo != 138.0/150 || c.RatioHi != 138.0/97 || c.Pairs != 5 {
		t.Errorf("%+v; want the interval from 0.92 to 1.42 of 5 pairs", c)
	}
}

// TestCoordinatedOmissionIsDetected replaces the stall's figures by those of a generator that measures
// from the hand-over.
func TestCoordinatedOmissionIsDetected(t *testing.T) {
	var want []int64
	served := new(measure.Counts)
	for i := range int64(200) {
		ms := int64(1)
		if i >= 101 {
			ms += 1000 - 10*(i-101)
		}
		want = append(want, ms*int64(time.Millisecond))
		served.Add(int64(time.Millisecond), 1)
	}
	slices.Sort(want)
	wrong := comparison{name: "response", got: served, want: want, worst: want}
	c := Check{Rows: wrong.rows(true, percents[:]...)}
	if says := c.judge(); !says || c.Pass {
		t.Errorf("service times passed for response times: %+v", c)
	}
	for _, r := range c.Rows {
		if ok := r.What == "response p50"; ok != r.OK {
			t.Errorf("%s: OK = %v; want %v (want %d, got %d)", r.What, r.OK, ok, r.Want, r.Got)
		}
	}
}

func TestFreezeNotCountedAsLateness(t *testing.T) {
	ms := func(n int64) int64 { return n * int64(time.Millisecond) }
	for _, c := range []struct {
		lateness, service int64
		ok, says          bool
	}{
		{1, 1, true, true},
		{150, 1, true, false},
		{390, 1, false, true}, // the freeze, counted as lateness
		{390, 170, true, false},
	} {
		others := []Row{{What: "blocked p99", Host: ms(300)}, {What: "service p99", Host: ms(c.service)}}
		if r := unfrozen(ms(c.lateness), ms(400), others); r.OK != c.ok || r.Says != c.says {
			t.Errorf("lateness of %d ms, a service that the host delays by %d ms: %+v", c.lateness, c.service, r)
		}
	}
}

func TestAComparison(t *testing.T) {
	const ms = int64(time.Millisecond)
	all := func(v int64) []int64 { return slices.Repeat([]int64{v}, 1000) }
	for _, tc := range []struct {
		name       string
		got        int64
		host       int64
		wrong      int64
		ok, saying bool
	}{
		{"that is exact holds", 10 * ms, 0, 0, true, true},
		{"that is 2 % high holds", 10*ms + 200_000, 0, 0, true, true},
		{"that is 2 % low holds", 10*ms - 200_000, 0, 0, true, true},
		{"that is 4 % high does not", 10*ms + 400_000, 0, 0, false, true},
		{"that is 4 % low does not", 10*ms - 400_000, 0, 0, false, true},
		{"that is high by what the host added holds", 11 * ms, ms, 0, true, true},
		{"that is low is not excused by the host", 9 * ms, ms, 0, false, true},
		{"on a host that doubles the median says nothing", 20 * ms, 10 * ms, 0, true, false},
		{"on such a host still tells it from what is 40 times as much", 20 * ms, 10 * ms, 400 * ms, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := new(measure.Counts)
			got.Add(tc.got, 1000)
			c := comparison{name: "response", got: got, want: all(10 * ms), worst: all(10*ms + tc.host)}
			if tc.wrong > 0 {
				c.wrong = all(tc.wrong)
			}
			r := c.rows(false, 50)[0]
			if r.OK != tc.ok || r.Says != tc.saying {
				t.Errorf("OK = %v, Says = %v; want %v, %v: %+v", r.OK, r.Says, tc.ok, tc.saying, r)
			}
		})
	}
	t.Run("of what is blocked is low by what was late, and no more", func(t *testing.T) {
		for by, ok := range map[int64]bool{ms: true, 2 * ms: false} {
			got, late := new(measure.Counts), new(measure.Counts)
			got.Add(10*ms-by, 1000)
			late.Add(ms, 1000)
			c := comparison{name: "blocked", got: got, want: all(10 * ms), worst: all(10 * ms), late: late}
			for _, r := range c.rows(true, 50) {
				if r.OK != ok || r.Host < ms || !r.Says {
					t.Errorf("%v less: %+v; want OK = %v", time.Duration(by), r, ok)
				}
			}
		}
	})
	t.Run("of another number of samples does not hold", func(t *testing.T) {
		got := new(measure.Counts)
		got.Add(10*ms, 999)
		c := comparison{name: "response", got: got, want: all(10 * ms), worst: all(10 * ms)}
		if rows := c.rows(true, 50); len(rows) != 1 || rows[0].OK {
			t.Errorf("999 samples for 1000: %+v", rows)
		}
	})
}

func TestUnclearCheckIsRepeatedThenFails(t *testing.T) {
	unclear, fine, wrong := Row{What: "x", OK: true}, Row{What: "x", OK: true, Says: true}, Row{What: "x"}
	for _, tc := range []struct {
		name     string
		rows     []Row // by attempt
		pass     bool
		attempts int
	}{
		{"clear at once", []Row{fine}, true, 1},
		{"clear the second time", []Row{unclear, fine}, true, 2},
		{"never clear", []Row{unclear, unclear, unclear}, false, 3},
		{"wrong at once", []Row{wrong}, false, 1},
		{"wrong once it is clear", []Row{unclear, wrong}, false, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := 0
			c, err := repeat(t.Context(), func() (Check, error) {
				n++
				return Check{Rows: []Row{tc.rows[n-1]}}, nil
			})
			unclear := !tc.rows[len(tc.rows)-1].Says && tc.rows[len(tc.rows)-1].OK
			if err != nil || c.Pass != tc.pass || c.Attempts != tc.attempts || c.Pass != (c.Why == "") || c.Unclear != unclear {
				t.Errorf("pass = %v after %d attempts (%q), %v; want %v after %d", c.Pass, c.Attempts, c.Why, err, tc.pass, tc.attempts)
			}
		})
	}
}

func TestAnInterruptEndsTheChecks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var done []string
	checks, err := Checks(ctx, Options{Scale: 0.2, OnCheck: func(c Check) {
		done = append(done, c.Name)
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Checks returned %v; want that it was cancelled", err)
	}
	if len(checks) != len(done) || len(done) == 0 || len(done) == 7 {
		t.Errorf("returned %d checks, told %q; want those before the interrupt", len(checks), done)
	}
}

func TestExponentialServiceHasItsMean(t *testing.T) {
	var sum float64
	const n = 1_000_000
	for k := range uint64(n) {
		sum += float64(exponential(1, k, time.Millisecond))
	}
	// The standard error of the mean of n is 0.1 % of it; allow 4 of them.
	if mean := sum / n; mean < 0.996e6 || mean > 1.004e6 {
		t.Errorf("mean of a million draws = %.0f ns; want 1 ms", mean)
	}
}
