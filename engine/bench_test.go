package engine

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// benchSize is the size of a message in bytes.
const benchSize = 64

// onNoop configures a closed loop of one producer with a driver that does nothing (noop).
func onNoop(tb testing.TB, cal pace.Calibration) Config {
	tb.Helper()
	inFlight := must.Get(InFlight(0, 1, benchSize, 1, false, 1<<30, driver.Intake{}))(tb)
	d := noop.Definition()
	return Config{
		RunID: "bench", Run: 7, Definition: d, Options: d.New(),
		Plan: schedule.Spec{
			Seed: 1, Producers: 1, Destinations: 1, BatchMin: 1, BatchMax: 1,
			Sizes: []schedule.WeightedSize{{Bytes: benchSize, Weight: 1}},
		},
		Mode: Produce, InFlight: inFlight, Drain: time.Second, Pacers: 1, Calibration: cal, Clock: pace.NewClock(),
	}
}

// BenchmarkMessage measures the total cost of a message, from its slot to its record, in a closed
// loop on noop, alternating with the floor.
func BenchmarkMessage(b *testing.B) {
	const turn = 100 * time.Millisecond
	cal := pace.Calibrate(1)
	b.ReportAllocs()
	b.ResetTimer()
	var sent, lasted, floored float64
	for turns := 1.0; sent < float64(b.N); turns++ {
		cfg := onNoop(b, cal)
		// Half a million messages first: until then the ledger dates each message, later one in
		// many.
		cfg.WarmUp, cfg.Measure = 2*turn, turn
		raw := must.Get(Run(b.Context(), nil, cfg))(b)
		sent += float64(raw.Snapshot.Window.Sent)
		lasted += float64(raw.To - raw.From)
		floored += floor(500_000)
		b.ReportMetric(floored/turns, "floor-ns/op")
		b.ReportMetric(lasted/sent/(floored/turns), "x-floor")
	}
	b.ReportMetric(lasted/sent, "ns/op")
	b.ReportMetric(1e9*sent/lasted, "msg/s")
}

// BenchmarkFloor measures what any honest instrument does for a message: two clock readings, one
// record, one checksum.
func BenchmarkFloor(b *testing.B) {
	b.ReportAllocs()
	floor(b.N)
}

// floor does that n times, with the clock that a run reads, and returns the ns per iteration.
func floor(n int) float64 {
	clock := pace.NewClock()
	defer clock.Follow(func(string) {})()
	time.Sleep(150 * time.Millisecond) // until it reads the processor's counter
	h := measure.NewHistogram()
	var body [benchSize]byte
	start := clock.Now()
	for range n {
		from := clock.NowUnordered()
		body[0] = byte(stamp.Checksum(body[:]))
		h.Record(clock.Now() - from)
	}
	return float64(clock.Now()-start) / float64(n)
}

// receiving is a receiver with everything behind it.
type receiving struct {
	*run
	k          *receiver
	deliveries []driver.Delivery
	first      func(int, *ledger.Event)
	seq        uint64
}

func newReceiving(tb testing.TB, atOnce int) *receiving {
	tb.Helper()
	cfg := onNoop(tb, pace.Calibration{})
	cfg.Mode, cfg.Subscriptions, cfg.Consumers = Stream, 1, 1
	r := schedule.PerSecond(1000)
	cfg.Plan.Phases = []schedule.Phase{{From: r, To: r, For: time.Hour}}
	plan := must.Get(schedule.New(cfg.Plan))(tb)
	x := &receiving{run: &run{shape: &shape{cfg: cfg, plan: plan, assigned: assigned{of: cfg.Plan.Producers}, to: plan.End(), sizes: []int{benchSize}}}}
	x.clock.Store(cfg.Clock)
	x.clock.Store(cfg.Clock)
	x.recorder = measure.NewRecorder(x.recorderConfig())
	x.ledger = ledger.New(ledger.Config{Streams: 1, Consumers: []int{1}})
	x.k = &receiver{run: x.run, reader: x.ledger.Reader(0, 0), shard: x.recorder.Receiver(0), owner: anybody, serves: []int{0}}
	shard := x.recorder.Receiver(0)
	x.first = func(_ int, e *ledger.Event) { delivered(shard, e, e.At) }
	for range atOnce {
		x.deliveries = append(x.deliveries, driver.Delivery{Payload: make([]byte, benchSize), Partition: -1})
	}
	return x
}

// A dueing returns when message seq was due, given about when it arrives.
type dueing func(seq uint64, at int64) int64

// varied yields latencies from 100 us to 1 ms, in no order.
func varied(seq uint64, at int64) int64 {
	return max(0, at-100_000-int64(seq*0x9e3779b97f4a7c15>>32*900_000>>32))
}

// allAtOnce makes all messages due at the beginning, so that each takes longer than those before
// it.
func allAtOnce(seq uint64, _ int64) int64 { return int64(seq) }

// takes is about the cost of a delivery, in ns.
const takes = 80

// stamped writes the next headers into the deliveries, as a sender would.
func (x *receiving) stamped(due dueing) {
	at := x.now()
	for i := range x.deliveries {
		b := x.deliveries[i].Payload
		st := stamp.Stamp{Run: x.cfg.Run, CRC: stamp.Checksum(b[stamp.Size:]), Seq: x.seq, Due: due(x.seq, at)}
		st.Start = st.Due
		stamp.Put(b, &st)
		x.ledger.Sent(0, x.seq, st.Due, st.Start)
		x.ledger.Confirmed(0, x.seq)
		x.seq++
		at += takes
	}
}

// deliver delivers them one by one and merges.
func (x *receiving) deliver(tb testing.TB) {
	for i := range x.deliveries {
		must.Do(tb, x.k.Deliver(x.deliveries[i:i+1]))
	}
	x.ledger.Merge(x.first)
}

// BenchmarkDelivery measures the total cost of a delivery: instant, verification, ring, merge,
// record.
func BenchmarkDelivery(b *testing.B) { benchmarkDelivery(b, varied) }

// BenchmarkDeliveryFallingBehind measures a delivery by a system that falls behind. Each message
// takes longer than all before: it raises the maximum of each distribution, and is kept as one of
// the slowest.
func BenchmarkDeliveryFallingBehind(b *testing.B) { benchmarkDelivery(b, allAtOnce) }

// benchmarkDelivery also reports the median of its rounds, which other load on the host hardly
// affects.
func benchmarkDelivery(b *testing.B, due dueing) {
	const atOnce = 1024
	x := newReceiving(b, atOnce)
	rounds := make([]int64, 0, b.N/atOnce+1)
	b.ReportAllocs()
	b.ResetTimer()
	var lasted int64
	for n := 0; n < b.N; n += atOnce {
		x.stamped(due)
		from := x.now()
		x.deliver(b)
		rounds = append(rounds, x.now()-from)
		lasted += rounds[len(rounds)-1]
	}
	b.ReportMetric(float64(lasted)/float64(x.seq), "ns/op")
	slices.Sort(rounds)
	b.ReportMetric(float64(rounds[len(rounds)/2])/atOnce, "median-ns/op")
}

// BenchmarkLateness measures lateness at 100,000 a second on noop.
func BenchmarkLateness(b *testing.B) {
	cal := pace.Calibrate(1)
	var late measure.Counts
	for range b.N {
		cfg := onNoop(b, cal)
		r := schedule.PerSecond(100_000)
		cfg.Plan.WarmUp = 200 * time.Millisecond
		cfg.Plan.Phases = []schedule.Phase{{From: r, To: r, For: time.Second}}
		raw := must.Get(Run(b.Context(), nil, cfg))(b)
		late.Merge(&raw.Snapshot.Kinds[measure.SendLateness][measure.Measure])
	}
	at := func(p float64) float64 { return float64(late.At(measure.Rank(p, late.Total()))) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(50), "p50-ns")
	b.ReportMetric(at(99), "p99-ns")
	b.ReportMetric(at(99.9), "p99.9-ns")
	b.ReportMetric(float64(late.Max()), "max-ns")
}

// mallocs returns how often a closed loop of n messages allocates, from opening to the end.
func mallocs(t *testing.T, n uint64) uint64 {
	t.Helper()
	cfg := onNoop(t, pace.Calibration{})
	cfg.Messages = n
	cfg.OnEvent = func(e Event) {
		if e.Kind == "stalled" {
			t.Error("the run did not end when its messages were confirmed")
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	raw, err := Run(t.Context(), nil, cfg)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if raw.All.Confirmed != n {
		t.Fatalf("%d of %d messages confirmed", raw.All.Confirmed, n)
	}
	return after.Mallocs - before.Mallocs
}

// Compares two runs, to cancel out what opening, reading once a second and closing allocate.
func TestAMessageAllocatesNothing(t *testing.T) {
	needs.NoRace(t)
	const n = 1_000_000
	short := mallocs(t, 1000)
	if long := mallocs(t, n); long > short+n/1000 {
		t.Errorf("a run of %d messages allocates %d times, one of 1000 %d times: that is not nothing a message", n, long, short)
	}
}

func TestADeliveryAllocatesNothing(t *testing.T) {
	x := newReceiving(t, 64)
	once := func() {
		x.stamped(allAtOnce)
		x.deliver(t)
	}
	for range 1000 {
		once()
	}
	if n := testing.AllocsPerRun(1000, once); n != 0 {
		t.Errorf("64 deliveries allocate %v times; want 0", n)
	}
}
