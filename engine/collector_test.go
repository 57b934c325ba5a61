package engine

import (
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// The intervals are shorter than a second, contiguous, and add up to what the run recorded.
func TestShortRunReportsIntervals(t *testing.T) {
	cfg := onNoop(t, pace.Calibration{})
	cfg.Measure, cfg.Messages, cfg.Every = 400*time.Millisecond, 0, 50*time.Millisecond
	var sum measure.Snapshot
	var parts int
	var to int64
	cfg.OnInterval = func(iv *measure.Interval) {
		if iv.From != to {
			t.Errorf("a part begins at %d; the one before it ended at %d", iv.From, to)
		}
		to = iv.To
		parts++
		sum.Add(iv)
	}
	raw := must.Get(Run(t.Context(), nil, cfg))(t)
	got, want := &sum.Kinds[measure.SendService][measure.Measure], &raw.Snapshot.Kinds[measure.SendService][measure.Measure]
	if parts < 2 || got.Total() != want.Total() || got.Total() == 0 {
		t.Errorf("%d parts of a run of 0.4 s hold %d of %d samples", parts, got.Total(), want.Total())
	}
}

// BenchmarkReading measures the cost of reading a run's recorder.
func BenchmarkReading(b *testing.B) {
	rec := measure.NewRecorder(measure.Config{SendShards: 2, ReceiveShards: 2, To: 1 << 40})
	for i := range int64(200_000) {
		rec.Sender(int(i)).Handed(i, i, i+i%1000, 0, i+i%1000, 64)
		rec.Sender(int(i)).Confirmed(i, i, i+10_000+i*i%1_000_000, i%1000)
		rec.Receiver(int(i)).Delivered(i, i, i+20_000+i*i%2_000_000, i%1000)
	}
	iv := new(measure.Interval)
	for i := int64(0); b.Loop(); i++ {
		for m := range int64(100) { // a tenth of a second at 1,000/s
			n := 100*i + m
			rec.Sender(0).Handed(n, n, n+n%1000, 0, n+n%1000, 64)
			rec.Sender(0).Confirmed(n, n, n+10_000+n*n%1_000_000, n%1000)
			rec.Receiver(0).Delivered(n, n, n+20_000+n*n%2_000_000, n%1000)
		}
		rec.Next(i, iv)
	}
}
