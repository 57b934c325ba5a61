package engine

import (
	"context"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// BenchmarkMessageCPU measures the processor time of a message in a closed loop on noop, with all that the
// process does meanwhile. Another load on the host hardly affects it, unlike the time that passes.
func BenchmarkMessageCPU(b *testing.B) { messages(b, 1) }

// BenchmarkProducersCPU does the same for 1, 2, 4 producers, up to the number of cores. On an idle host
// msg/s shows how far they scale.
func BenchmarkProducersCPU(b *testing.B) {
	for n := 1; n <= runtime.NumCPU(); n *= 2 {
		b.Run(strconv.Itoa(n), func(b *testing.B) { messages(b, n) })
	}
}

// messages measures at least b.N messages between two readings of a run, without its beginning and end.
func messages(b *testing.B, producers int) {
	cfg := onNoop(b, pace.Calibrate(1))
	cfg.Plan.Producers = producers
	cfg.Measure, cfg.Every = time.Hour, 50*time.Millisecond
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var sent, first, last uint64
	var from, to, used int64
	cfg.OnInterval = func(iv *measure.Interval) {
		sent += iv.Counters[measure.Measure].Confirmed
		switch {
		case from == 0 && sent > 500_000:
			first, from, used = sent, iv.To, processorTime(b)
		case from > 0 && to == 0 && sent >= first+uint64(b.N):
			last, to, used = sent, iv.To, processorTime(b)-used
			cancel()
		}
	}
	must.Get(Run(ctx, nil, cfg))(b)
	n := float64(last - first)
	b.ReportMetric(float64(used)/n, "cpu-ns/op")
	b.ReportMetric(1e9*n/float64(to-from), "msg/s")
}

// BenchmarkFloorCPU measures the processor time of the floor.
func BenchmarkFloorCPU(b *testing.B) {
	n := max(b.N, 1_000_000)
	before := processorTime(b)
	floor(n)
	b.ReportMetric(float64(processorTime(b)-before)/float64(n), "cpu-ns/op")
}

// processorTime returns what this process has used, ns.
func processorTime(tb testing.TB) int64 {
	tb.Helper()
	var used syscall.Rusage
	must.Do(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}
