package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

const (
	benchAgents = 50   // of tests
	benchValues = 1000 // of each distribution, a second
)

// A reporter makes reports as an agent of a busy run does: 12 distributions of 1,000
// values, and a ledger with some holes.
type reporter struct {
	index   int
	agents  int // of the run
	report  protocol.Report
	encoder protocol.ReportEncoder
	ledger  *ledger.Ledger
	part    ledger.Part
	seq     uint64
	random  *rand.Rand
}

func newReporter(index, agents int) *reporter {
	return &reporter{
		index: index, agents: agents, random: rand.New(rand.NewPCG(7, uint64(index))),
		ledger: ledger.New(ledger.Config{Streams: agents, Consumers: []int{1}}),
	}
}

// next is the report of the next second, in pieces.
func (r *reporter) next() ([][]byte, error) {
	const second = int64(time.Second)
	at := int64(r.seq+1) * second
	iv := &r.report.Interval
	iv.From, iv.To = at-second, at
	kinds := 0
	for k := range iv.Kinds {
		for p := range iv.Kinds[k] {
			c := &iv.Kinds[k][p]
			c.Reset()
			if kinds++; kinds > 12 {
				continue
			}
			for range benchValues {
				c.Add(int64(1e6*r.random.ExpFloat64())+1e5, 1)
			}
		}
	}
	for i := range uint64(benchValues) {
		seq := r.seq*benchValues + i
		due := at - second + int64(i)*1e6
		r.ledger.Sent(uint32(r.index), seq, due, due+10)
		if i%100 != 99 || i > 950 {
			r.ledger.Confirmed(uint32(r.index), seq)
		}
		r.ledger.Reader(0, 0).Delivered(&ledger.Event{Stream: uint32((r.index + 1) % r.agents), Partition: -1, Seq: seq, Due: due, Start: due + 10, At: due + 500_000})
	}
	r.ledger.Merge(func(int, *ledger.Event) {})
	r.ledger.Part(&r.part)
	var err error
	if r.report.Ledger, err = r.part.AppendBinary(r.report.Ledger[:0]); err != nil {
		return nil, err
	}
	r.seq++
	r.report.Agent, r.report.Seq, r.report.At = agentOf(r.index), r.seq, at
	whole, err := r.encoder.Encode(&r.report)
	return protocol.Split(r.seq, whole, 512<<10), err
}

func agentOf(i int) string { return fmt.Sprintf("agent-%03d", i) }

// benchDrive is a coordinator's run of that many agents.
func benchDrive(b testing.TB, f *Fleet, r *Run, agents int) *drive {
	d := &drive{f: f, run: r, places: map[string]int{}}
	for i := range agents {
		d.places[agentOf(i)] = i
		d.abouts = append(d.abouts, protocol.About{Name: agentOf(i), Instance: agentOf(i), Clock: agentOf(i), Version: ownVersion})
	}
	shares := must.Get(d.deal())(b)
	must.Do(b, d.prepare(shares))
	return d
}

// A letter is a message of JetStream's of which nothing but subject and data is asked.
type letter struct {
	jetstream.Msg
	subject string
	data    []byte
}

func (l *letter) Subject() string { return l.subject }

func (l *letter) Data() []byte { return l.data }

// begunFor brings a drive to where its run is in progress.
func (d *drive) begunFor(b testing.TB) {
	for i := range d.abouts {
		for n := range int64(enough) {
			d.clocks.add(i, []offset.Exchange{{T1: n, T2: n, T3: n, T4: n}})
		}
		d.c.Reached(i, int(engine.NumStages), nil)
	}
	if !d.c.Begun() {
		b.Fatal("the run did not begin")
	}
}

// BenchmarkReport measures the coordinator's cost for one report of one agent, which is one second of the agent's:
// parsing, adding and writing, and its share of the merge of the second. The metric cores/agent is what that
// is of a core.
func BenchmarkReport(b *testing.B) {
	for _, agents := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) { benchReport(b, agents) })
	}
}

func benchReport(b *testing.B, agents int) {
	r := benchRun(b, agents)
	f := &Fleet{limited: hub.NewLimitedLog((&fleettest.Diary{}).Log()), session: "s", clock: pace.NewClock()}
	given := 0
	r.Config.OnInterval = func(*measure.Interval) { given++ }
	d := benchDrive(b, f, r, agents)
	d.begunFor(b)
	reporters := make([]*reporter, agents)
	for i := range reporters {
		reporters[i] = newReporter(i, agents)
		d.c.Status(i, &engine.Status{Subs: make([]engine.SubscriptionStatus, 1)})
	}
	var size, n int
	b.ReportAllocs()
	for b.Loop() {
		i := n % agents
		b.StopTimer()
		pieces := must.Get(reporters[i].next())(b)
		b.StartTimer()
		for _, p := range pieces {
			size += len(p)
			d.report(&letter{subject: protocol.ReportSubject("s", "bench", agentOf(i)), data: p})
		}
		if n++; i == agents-1 {
			must.Get(d.c.Deliveries(nil))(b)
		}
	}
	b.ReportMetric(float64(size)/float64(n), "B/report")
	b.ReportMetric(b.Elapsed().Seconds()/float64(n), "cores/agent")
}

// benchRun is a run of that many agents, for hours.
func benchRun(b testing.TB, agents int) *Run {
	b.Helper()
	t, ok := b.(*testing.T)
	if !ok {
		t = &testing.T{}
	}
	_, drivers := memoryDrivers(t)
	return runOf(t, drivers, "bench", fmt.Sprintf("topology: {producers: %d, consumers: %d}\nload: {rate: 50000/s}\nwarmup: 0s\nmeasure: 10h%s", agents, agents, common))
}

// The memory depends on the run's shape, not on its length.
func TestCoordinatorMemoryIndependentOfRunLength(t *testing.T) {
	r := benchRun(t, benchAgents)
	f := &Fleet{limited: hub.NewLimitedLog((&fleettest.Diary{}).Log()), session: "s", clock: pace.NewClock()}
	r.Config.OnInterval = func(*measure.Interval) {}
	d := benchDrive(t, f, r, benchAgents)
	d.begunFor(t)
	const agents = 5 // of the 50: the others have ended
	for i := agents; i < benchAgents; i++ {
		d.c.End(i, nil, errors.New("it died"))
	}
	reporters := make([]*reporter, agents)
	for i := range reporters {
		reporters[i] = newReporter(i, benchAgents)
	}
	run := func(seconds int) {
		for range seconds {
			for i, x := range reporters {
				pieces := must.Get(x.next())(t)
				for _, p := range pieces {
					d.report(&letter{subject: protocol.ReportSubject("s", "bench", agentOf(i)), data: p})
				}
				d.clocks.add(i, []offset.Exchange{{T1: int64(x.seq) * 1e9, T2: int64(x.seq)*1e9 + 50, T3: int64(x.seq)*1e9 + 60, T4: int64(x.seq)*1e9 + 120}})
			}
			d.clocks.lines()
			must.Get(d.c.Deliveries(nil))(t)
		}
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	first, rest := 60, 540
	if needs.Less() {
		first, rest = 20, 80
	}
	run(first)
	short := heap()
	run(rest)
	long := heap()
	t.Logf("heap after %d s %d KiB, after %d s %d KiB", first, short>>10, first+rest, long>>10)
	if long > short+short/4+4<<20 {
		t.Errorf("the heap is %d KiB after %d s of %d agents, and was %d KiB after %d s", long>>10, first+rest, agents, short>>10, first)
	}
	runtime.KeepAlive(d)
	runtime.KeepAlive(reporters)
}
