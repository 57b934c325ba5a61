package offset

import (
	"testing"
	"time"
)

// An hour of windows: of a steady clock, of one that wanders more than is
// assumed, and of one with a step.
func BenchmarkFit(b *testing.B) {
	for _, c := range []struct {
		name  string
		truth func(int64) float64
	}{
		{"steady", linear(int64(25*time.Millisecond), 30)},
		{"wandering", func(t int64) float64 { return 160_000 * float64(t%1e12) / 1e12 }},
		{"stepped", stepped(linear(0, 30), 30*time.Minute, 3*time.Millisecond)},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(1, c.truth)
			track := gather(b, w.sample(0, time.Hour, 200*time.Millisecond))
			var course Course
			b.ReportAllocs()
			for b.Loop() {
				course, _ = track.Fit()
			}
			b.ReportMetric(float64(len(track.kept)), "windows")
			b.ReportMetric(float64(len(course.Lines)), "lines")
			b.ReportMetric(float64(course.Bound())/1e3, "bound-us")
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	w := newWorld(1, linear(int64(25*time.Millisecond), 30))
	es := w.sample(0, 10*time.Minute, 100*time.Millisecond)
	b.ReportAllocs()
	for b.Loop() {
		gather(b, es)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(es)), "ns/exchange")
}
