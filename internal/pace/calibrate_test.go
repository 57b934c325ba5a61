package pace

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCalibrateMeasuresThisHost(t *testing.T) {
	cal := Calibrate(1)
	if cal.Samples < 1 || cal.Samples > calibrationSamples {
		t.Errorf("%d samples, want 1 to %d", cal.Samples, calibrationSamples)
	}
	if cal.P50 < 0 || cal.P99 < cal.P50 || cal.P999 < cal.P99 || cal.Max < cal.P999 {
		t.Errorf("percentiles out of order: %+v", cal)
	}
	if cal.Margin != cal.P99 && cal.Margin != cal.P50 && cal.Margin != marginCap {
		t.Errorf("margin %d, want the 99th percentile %d, the median %d or the cap %d", cal.Margin, cal.P99, cal.P50, marginCap)
	}
	if cal.ClockCostNS <= 0 {
		t.Errorf("a reading costs %v ns", cal.ClockCostNS)
	}
	if cal.Portable != (runtime.GOOS != "linux") {
		t.Errorf("portable = %v on %s", cal.Portable, runtime.GOOS)
	}
	if cal.Why == "" {
		t.Error("says nothing about its choice")
	}
	t.Logf("%+v", cal)
}

func TestCalibrateInABubbleIsVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		if got := Calibrate(1); got != Virtual() {
			t.Errorf("Calibrate = %+v, want %+v", got, Virtual())
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("took %v of virtual time", took)
		}
	})
}

func TestSpinningLeavesOneCoreFree(t *testing.T) {
	for _, c := range []struct {
		name          string
		pacers, cores int
		p50, p99      int64
		margin        int64
		spin          bool
		why           string
	}{
		{"one pacer of two cores", 1, 2, 4_000, 11_000, 11_000, true, "spins the last 11µs"},
		{"one pacer of one core", 1, 1, 4_000, 11_000, 11_000, false, "1 pacer would take the last of 1 core"},
		{"two pacers of two cores", 2, 2, 4_000, 11_000, 11_000, false, "2 pacers would take the last of 2 cores"},
		{"more pacers than cores", 9, 2, 4_000, 11_000, 11_000, false, "median 4µs"},
		{"no pacer, as in closed loop", 0, 1, 4_000, 11_000, 11_000, true, "1 of 1 cores stay free"},
		{"a sleep as long as the cap", 1, 8, 4_000, marginCap, marginCap, true, "the 99th percentile"},
		{"a host that others use", 1, 8, 4_000, 5_000_000, 4_000, true, "its 99th percentile, 5ms, shows a busy host"},
		{"times with many digits", 1, 2, 25_727, 1_079_151, 25_727, true, "spins the last 25.7µs, the median of the sleep's overshoot; its 99th percentile, 1.08ms, shows a busy host"},
		{"a host with no good sleep", 1, 8, 4_000_000, 5_000_000, marginCap, true, "busy host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cal := Calibration{P50: c.p50, P99: c.p99}
			cal.decide(c.pacers, c.cores)
			if cal.Spin != c.spin || cal.Margin != c.margin {
				t.Errorf("spin %v with a margin of %d, want %v, %d", cal.Spin, cal.Margin, c.spin, c.margin)
			}
			if !strings.Contains(cal.Why, c.why) {
				t.Errorf("why = %q, want it to say %q", cal.Why, c.why)
			}
		})
	}
}

func TestFewWaitsAllowWiderMargin(t *testing.T) {
	for _, c := range []struct {
		name          string
		p99, decided  int64
		perSecond     float64
		margin        int64
		why, whySleep string
	}{
		{"few waits: three times as wide", 20_000, 20_000, 1000, 60_000, "spins the last 60µs, more than the 99th percentile of the sleep's overshoot (20µs), as 1000 waits a second can afford; 1 of 2 cores stay free", "does not spin"},
		{"as wide as a fifth of a core allows", 20_000, 20_000, 4000, 50_000, "the last 50µs", "does not spin"},
		{"many waits: as it was", 20_000, 20_000, 10_000, 20_000, "the last 20µs, the 99th", "does not spin"},
		{"never wider than the cap", 100_000, 100_000, 10, marginCap, "more than the 99th", "does not spin"},
		{"a rate that is not known: as it was", 20_000, 20_000, 0, 20_000, "the 99th", "does not spin"},
		{"a host that others use: as it was", 5_000_000, 4_000, 10, 4_000, "busy host", "does not spin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cores := range []int{2, 1} {
				cal := Calibration{P50: 4_000, P99: c.p99}
				cal.decide(1, cores)
				if cal.Margin != c.decided {
					t.Fatalf("decided on %d, want %d", cal.Margin, c.decided)
				}
				cal = cal.At(c.perSecond)
				if cal.Margin != c.margin {
					t.Errorf("margin %d, want %d", cal.Margin, c.margin)
				}
				if want := []string{1: c.whySleep, 2: c.why}[cores]; !strings.Contains(cal.Why, want) {
					t.Errorf("why = %q, want it to say %q", cal.Why, want)
				}
			}
		})
	}
}

func TestRankIsTheCeilingRank(t *testing.T) {
	thousand := make([]int64, 1000)
	for i := range thousand {
		thousand[i] = int64(i + 1)
	}
	for _, c := range []struct {
		of       []int64
		permille int
		want     int64
	}{
		{thousand, 500, 500},
		{thousand, 990, 990},
		{thousand, 999, 999},
		{thousand[:1], 500, 1},
		{thousand[:3], 500, 2},
		{thousand[:3], 999, 3},
	} {
		if got := rank(c.of, c.permille); got != c.want {
			t.Errorf("rank %d‰ of %d values = %d, want %d", c.permille, len(c.of), got, c.want)
		}
	}
}
