package engine

import (
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/pace"
)

// BenchmarkMessageCPU measures the processor time of a message in a closed loop on noop, with all that the
// process does meanwhile. Another load on the host hardly affects it, unlike the time that passes.
func BenchmarkMessageCPU(b *testing.B) {
	cfg := onNoop(b, pace.Calibrate(1))
	cfg.Messages = uint64(max(b.N, 1_000_000))
	before := processorTime(b)
	raw, err := Run(b.Context(), nil, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(raw.All.Confirmed), "cpu-ns/op")
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
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
