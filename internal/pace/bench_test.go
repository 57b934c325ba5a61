package pace

import (
	"slices"
	"testing"
	"time"
)

func BenchmarkClockNow(b *testing.B) {
	c := NewClock()
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}

func BenchmarkClockNowFollowed(b *testing.B) {
	c := followed(b)
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}

func BenchmarkClockNowUnordered(b *testing.B) {
	c := followed(b)
	b.ReportAllocs()
	for b.Loop() {
		c.NowUnordered()
	}
}

func BenchmarkUntilPassed(b *testing.B) {
	w := NewWaiter(NewClock(), Calibration{Spin: true, Margin: 20_000})
	b.ReportAllocs()
	for b.Loop() {
		w.Until(0)
	}
}

func BenchmarkNewClock(b *testing.B) {
	for b.Loop() {
		NewClock()
	}
}

// BenchmarkLateness waits for periodic instants and reports the lateness: spinning as calibrated,
// and by sleeping alone.
func BenchmarkLateness(b *testing.B) {
	spin := Calibrate(0) // no pacer: spins whatever the cores
	sleep := spin
	sleep.Spin = false
	for _, wait := range []struct {
		name string
		cal  Calibration
	}{{"spin", spin}, {"sleep", sleep}} {
		for _, period := range []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
			b.Run(wait.name+"/"+period.String(), func(b *testing.B) {
				c := NewClock()
				w := NewWaiter(c, wait.cal)
				defer w.Lock()()
				late := make([]int64, b.N)
				b.ReportAllocs()
				b.ResetTimer()
				due := c.Now()
				for i := range late {
					due += int64(period)
					late[i] = w.Until(due) - due
				}
				b.StopTimer()
				slices.Sort(late)
				b.ReportMetric(float64(rank(late, 500)), "p50-ns")
				b.ReportMetric(float64(rank(late, 990)), "p99-ns")
				b.ReportMetric(float64(rank(late, 999)), "p99.9-ns")
				b.ReportMetric(float64(late[len(late)-1]), "max-ns")
			})
		}
	}
}
