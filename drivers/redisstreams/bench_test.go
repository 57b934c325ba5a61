package redisstreams

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
)

// A free list of messages, which Complete fills.
type free chan *driver.Message

func (f free) Complete(m *driver.Message, err error) {
	if err != nil {
		panic(err)
	}
	f <- m
}

// publisher returns a function that publishes n messages of 1 KiB, with at most
// inFlight under way, and flushes.
func publisher(tb testing.TB, inFlight int, options map[string]string) func(n int) {
	tb.Helper()
	return publisherTo(tb, redistest.Start(tb).Address, 1, inFlight, options)
}

// publisherTo is publisher to a server that is there, and a destination of so many partitions.
func publisherTo(tb testing.TB, address string, partitions, inFlight int, options map[string]string) func(n int) {
	tb.Helper()
	cfg := newConfig()
	for name, value := range options {
		if err := driver.SetOption(cfg, name, value); err != nil {
			tb.Fatal(err)
		}
	}
	cfg.Address = []string{address}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb.Cleanup(cancel)
	conn, err := cfg.Open(ctx, driver.Run{ID: "bench"})
	if err != nil {
		tb.Fatal(err)
	}
	d := driver.Destination{Name: "d", Partitions: partitions, Replicas: 1}
	if err := conn.Declare(ctx, d); err != nil {
		tb.Fatal(err)
	}
	f := make(free, inFlight)
	for range inFlight {
		f <- &driver.Message{Destination: "d", Payload: make([]byte, 1<<10)}
	}
	p, err := conn.Producer(ctx, driver.ProducerSpec{Destinations: []string{"d"}, InFlight: inFlight}, f)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = p.Close(context.Background())
		_ = conn.Delete(context.Background(), d)
		_ = conn.Close(context.Background())
	})
	return func(n int) {
		for range n {
			p.Publish(ctx, <-f)
		}
		if err := p.Flush(ctx); err != nil {
			tb.Error(err)
		}
	}
}

// spent returns the processor's time that this process has used.
func spent(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPublish is the budget of one message, from Publish to Complete. cpu-ns
// is without the server's share, and what to look at where others use the host.
func BenchmarkPublish(b *testing.B) {
	publish := publisher(b, 1000, map[string]string{"max-len": "10000"})
	publish(1000)
	b.ReportAllocs()
	b.ResetTimer()
	before := spent(b)
	publish(b.N)
	b.StopTimer()
	b.ReportMetric(float64(spent(b)-before)/float64(b.N), "cpu-ns/op")
}

// perMessage is how many allocations one message may take: the client's for its
// command, its answer and the wait for it.
const perMessage = 5

func TestAPublishedMessageTakesFewAllocations(t *testing.T) {
	fewAllocations(t, publisher(t, 100, map[string]string{"max-len": "10000"}))
}

// fewAllocations fails where a message that publish publishes takes more than perMessage.
func fewAllocations(t *testing.T, publish func(n int)) {
	t.Helper()
	publish(1000)
	const n = 5000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	publish(n)
	runtime.ReadMemStats(&after)
	if per := float64(after.Mallocs-before.Mallocs) / n; per > perMessage+0.5 {
		t.Errorf("%.1f allocations a message, at most %d", per, perMessage)
	} else {
		t.Logf("%.2f allocations a message", per)
	}
}
