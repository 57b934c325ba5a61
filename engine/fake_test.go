package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// fake is a system that a test configures. The zero value confirms at once and delivers everything
// to every subscription.
type fake struct {
	blocks    bool                                    // declare PublishBlocks
	delay     time.Duration                           // until the confirmation; 0: inside Publish
	delays    func(n int) time.Duration               // the same for the n-th message of a producer; nil: delay
	enter     func(ctx context.Context, producer int) // at the beginning of Publish
	confirm   func(producer int, n int) error         // result of the n-th message of a producer
	forget    func(producer int, n int) bool          // never completes it
	twice     bool                                    // complete every message twice
	twiceBy   func(producer int) bool                 // only those of some producers
	copies    func(producer int, n int) int           // number of deliveries; nil: once
	unready   bool                                    // consumers never become ready
	lose      func(ctx context.Context) error         // consumers' Run waits for it and returns its error
	guarantee driver.Guarantee
	down      error     // error of Facts after the first time
	up        time.Time // when Facts succeeds again; zero: always

	feed    func(ctx context.Context, sink driver.Sink) error // replaces the consumers' behaviour
	late    time.Duration                                     // until a delivery
	hold    func()                                            // before each delivery
	closing func(ctx context.Context)                         // inside a producer's Close
	slow    time.Duration                                     // of every call of Facts
	spoil   bool                                              // bodies arrive damaged

	backlog func() (uint64, error) // what the system reports as its backlog; nil: nothing

	damage func(producer int, n int) bool     // the n-th message of a producer arrives damaged
	route  func(destination string) string    // actual destination of a message
	buries bool                               // drops dead letters
	single bool                               // declares no batches
	native bool                               // supports requests, see fakeRequester
	answer func(n int, request []byte) []byte // reply to the n-th request, after late; nil: none

	mu      sync.Mutex
	run     driver.Run
	subs    map[string]map[string]chan []byte // destination, subscription
	asked   int
	batches []int
	sent    []string // destination of each message, in order
	out     int      // messages in flight
	most    int      // the maximum of out
	made    []string
	limits  map[string]int        // Destination.Refusals, by name
	tries   map[string]int        // refusals, by payload
	specs   []driver.ConsumerSpec // of the consumers opened
	removed []string
}

func (f *fake) Validate() error { return nil }

func (f *fake) Open(_ context.Context, run driver.Run) (driver.Conn, error) {
	f.run = run
	f.subs = map[string]map[string]chan []byte{}
	if f.native {
		return &fakeRequester{fake: f}, nil
	}
	return f, nil
}

func (f *fake) Backlog(context.Context, string, []string) (uint64, error) {
	if f.backlog == nil {
		return 0, nil
	}
	return f.backlog()
}

func (f *fake) Declare(_ context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		f.made = append(f.made, d.Name)
		if f.limits == nil {
			f.limits, f.tries = map[string]int{}, map[string]int{}
		}
		f.limits[d.Name] = d.Refusals
	}
	return nil
}

func (f *fake) Delete(_ context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		f.removed = append(f.removed, d.Name)
	}
	return nil
}

func (f *fake) Facts(context.Context) (driver.Facts, error) {
	f.asked++
	time.Sleep(f.slow)
	if f.asked > 1 && f.down != nil && (f.up.IsZero() || time.Now().Before(f.up)) {
		return driver.Facts{}, f.down
	}
	g := f.guarantee
	if g == 0 {
		g = driver.Buffered
	}
	return driver.Facts{Name: "fake", Version: "1", Confirms: driver.Confirms{Guarantee: g}}, nil
}

func (f *fake) Close(context.Context) error { return nil }

func (f *fake) Producer(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &fakeProducer{f: f, spec: spec, done: done}, nil
}

type fakeProducer struct {
	f    *fake
	spec driver.ProducerSpec
	done driver.Completer
	n    int
	wg   sync.WaitGroup
}

func (p *fakeProducer) Publish(ctx context.Context, m *driver.Message) {
	f, n := p.f, p.n
	p.n++
	if f.enter != nil {
		f.enter(ctx, p.spec.Index)
		if ctx.Err() != nil {
			p.done.Complete(m, ctx.Err())
			return
		}
	}
	var err error
	if f.confirm != nil {
		err = f.confirm(p.spec.Index, n)
	}
	copies := 1
	if f.copies != nil {
		copies = f.copies(p.spec.Index, n)
	}
	destination := m.Destination
	if f.route != nil {
		destination = f.route(destination)
	}
	f.mu.Lock()
	f.sent = append(f.sent, m.Destination)
	f.out++
	f.most = max(f.most, f.out)
	for range copies {
		for _, ch := range f.subs[destination] {
			b := slices.Clone(m.Payload)
			if f.spoil || f.damage != nil && f.damage(p.spec.Index, n) {
				b[len(b)-1]++
			}
			if f.late == 0 {
				ch <- b
				continue
			}
			p.wg.Go(func() {
				time.Sleep(f.late)
				ch <- b
			})
		}
	}
	f.mu.Unlock()
	if f.forget != nil && f.forget(p.spec.Index, n) {
		return
	}
	complete := func() {
		f.mu.Lock()
		f.out--
		f.mu.Unlock()
		p.done.Complete(m, err)
		if f.twice || f.twiceBy != nil && f.twiceBy(p.spec.Index) {
			p.done.Complete(m, err)
		}
	}
	delay := f.delay
	if f.delays != nil {
		delay = f.delays(n)
	}
	if delay == 0 {
		complete()
		return
	}
	p.wg.Go(func() {
		time.Sleep(delay)
		complete()
	})
}

func (p *fakeProducer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	p.f.mu.Lock()
	p.f.batches = append(p.f.batches, len(ms))
	p.f.mu.Unlock()
	for _, m := range ms {
		p.Publish(ctx, m)
	}
}

func (p *fakeProducer) Flush(context.Context) error { p.wg.Wait(); return nil }

func (p *fakeProducer) Close(ctx context.Context) error {
	if p.f.closing != nil {
		p.f.closing(ctx)
	}
	p.wg.Wait()
	return nil
}

func (f *fake) Consumer(_ context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	c := &fakeConsumer{f: f, names: spec.Destinations}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.specs = append(f.specs, spec)
	for _, d := range spec.Destinations {
		if f.subs[d] == nil {
			f.subs[d] = map[string]chan []byte{}
		}
		if f.subs[d][spec.Subscription] == nil {
			f.subs[d][spec.Subscription] = make(chan []byte, 1<<16)
		}
		c.chans = append(c.chans, f.subs[d][spec.Subscription])
	}
	return c, nil
}

type fakeConsumer struct {
	f     *fake
	names []string
	chans []chan []byte
}

// refused returns a nacked message to its queue, or moves it to the dead letters.
func (f *fake) refused(destination string, from chan []byte, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tries[string(b)]++; f.limits[destination] == 0 || f.tries[string(b)] < f.limits[destination] {
		from <- b // to the next consumer
		return
	}
	for _, ch := range f.subs[driver.DeadLetters(destination)] {
		if !f.buries {
			ch <- b
		}
	}
}

func (c *fakeConsumer) Close(context.Context) error { return nil }

func (c *fakeConsumer) Run(ctx context.Context, sink driver.Sink) error {
	f := c.f
	if f.unready {
		<-ctx.Done()
		return nil
	}
	sink.Ready()
	if f.feed != nil {
		return f.feed(ctx, sink)
	}
	if f.lose != nil {
		return f.lose(ctx)
	}
	var wg sync.WaitGroup
	var one sync.Mutex
	for i, ch := range c.chans {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case b := <-ch:
					if f.hold != nil {
						f.hold()
					}
					one.Lock()
					err := sink.Deliver([]driver.Delivery{{Payload: b, Partition: -1, Source: int32(i)}})
					one.Unlock()
					if errors.Is(err, errRefused) {
						f.refused(c.names[i], ch, b)
					}
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// config returns a run of f: rate for a second after a warm-up of 100 ms, one
// producer and consumer, 64 bytes.
func config(f *fake, perSecond uint64) Config {
	return Config{
		RunID: "t", Run: 7, Options: f,
		Definition: driver.Definition{Name: "fake", Title: "Fake", Capabilities: driver.Capabilities{
			Consume: true, PublishBlocks: f.blocks, Batch: !f.single, Partitions: true, Replicas: true, Subscriptions: true, Competing: true, Resumes: true, DeadLetters: true,
			Settle:  []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto, driver.SettleNone},
			Replays: []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
		}},
		Plan: schedule.Spec{
			Seed: 1, WarmUp: 100 * time.Millisecond, Producers: 1, Destinations: 1, BatchMin: 1, BatchMax: 1,
			Phases: []schedule.Phase{{From: schedule.PerSecond(perSecond), To: schedule.PerSecond(perSecond), For: time.Second}},
			Sizes:  []schedule.WeightedSize{{Bytes: 64, Weight: 1}},
		},
		Subscriptions: 1, Consumers: 1, InFlight: 100, Drain: 5 * time.Second,
		Calibration: pace.Virtual(), Clock: pace.NewClock(),
	}
}

// do runs cfg to its end and checks what holds for every run.
func do(t *testing.T, cfg Config) *Raw {
	t.Helper()
	raw := must.Get(Run(t.Context(), nil, cfg))(t)
	balanced(t, raw, max(1, cfg.Subscriptions))
	return raw
}

// balanced checks the message accounting (DESIGN 2) and that every distribution agrees with it.
func balanced(t *testing.T, raw *Raw, subs int) {
	t.Helper()
	for _, b := range []struct {
		name string
		m    result.Messages
	}{{"all", raw.All}, {"measured", raw.Measured}} {
		m := b.m
		if m.Scheduled != m.Sent+m.Dropped+m.Unsent {
			t.Errorf("%s: scheduled %d != sent %d + dropped %d + unsent %d", b.name, m.Scheduled, m.Sent, m.Dropped, m.Unsent)
		}
		if m.Sent != m.Confirmed+m.Failed+m.Unconfirmed {
			t.Errorf("%s: sent %d != confirmed %d + failed %d + unconfirmed %d", b.name, m.Sent, m.Confirmed, m.Failed, m.Unconfirmed)
		}
		if len(raw.Dry) > 0 && m.Confirmed*uint64(subs) != m.Delivered+m.Late+m.DeadLettered+m.Corrupted+m.Lost+m.Pending {
			t.Errorf("%s: confirmed %d x %d != delivered %d + corrupted %d + lost %d + pending %d", b.name, m.Confirmed, subs, m.Delivered, m.Corrupted, m.Lost, m.Pending)
		}
	}
	if raw.Closed {
		return
	}
	m := raw.Measured
	sum := func(k measure.Kind) uint64 {
		return raw.Snapshot.Kinds[k][measure.Measure].Total() + raw.Censored[k][measure.Measure].Total()
	}
	for k, want := range map[measure.Kind]uint64{
		measure.SendResponse: m.Scheduled, measure.SendService: m.Sent, measure.SendLateness: m.Sent, measure.SendBlocked: m.Sent,
		measure.E2EResponse: m.Scheduled * uint64(len(raw.Dry)), measure.E2EService: m.Sent * uint64(len(raw.Dry)),
	} {
		if raw.Drained != nil && (k == measure.E2EResponse || k == measure.E2EService) {
			want = 0 // the time in a backlog is not a latency
		}
		if got := sum(k); got != want {
			t.Errorf("%s holds %d samples, censored ones included; want %d", k, got, want)
		}
	}
	twins(t, raw)
	stagesAdd(t, raw)
}

// stagesAdd checks that the stages of a run add up to its window.
func stagesAdd(t *testing.T, raw *Raw) {
	t.Helper()
	if len(raw.Stages) == 0 {
		return
	}
	var sum measure.Stage
	var late measure.Counts // censored messages of all
	for i := range raw.Stages {
		sum.Merge(&raw.Stages[i].Stage)
		late.Merge(&raw.Stages[i].Censored[measure.SendResponse])
	}
	w := raw.Snapshot.Window
	expect(t, "offered in all stages", sum.Offered, raw.Measured.Scheduled)
	if !raw.Cut { // then the two are read one after the other, while messages continue
		expect(t, "sent, confirmed and received in all stages", []uint64{sum.Sent, sum.Confirmed, sum.Received}, []uint64{w.Sent, w.Confirmed, w.Received})
	}
	for _, k := range []measure.Kind{measure.SendResponse, measure.SendOnTime, measure.E2EResponse} {
		expect(t, k.String()+" of all stages", sum.Kinds[k].Total(), raw.Snapshot.Kinds[k][measure.Measure].Total())
	}
	expect(t, "censored in all stages", late.Total(), raw.Censored[measure.SendResponse][measure.Measure].Total())
}

// twins checks that each response has the same messages without their lateness.
func twins(t *testing.T, raw *Raw) {
	t.Helper()
	for k := range measure.NumKinds {
		onTime, ok := k.OnTime()
		for p := range measure.NumPhases {
			if got, want := raw.Snapshot.Kinds[onTime][p].Total(), raw.Snapshot.Kinds[k][p].Total(); ok && got != want {
				t.Errorf("%s %s holds %d samples; want %d as %s", p, onTime, got, want, k)
			}
			if got, want := &raw.Censored[onTime][p], &raw.Censored[k][p]; ok && (got.Total() != want.Total() || got.Ages.Min() != want.Ages.Min() || got.Ages.Max() != want.Ages.Max()) {
				t.Errorf("%s %s holds %d censored samples; want %d as %s", p, onTime, got.Total(), want.Total(), k)
			}
		}
	}
}

// p returns a percentile of the measured part of a kind.
func p(raw *Raw, k measure.Kind, percent float64) time.Duration {
	c := &raw.Snapshot.Kinds[k][measure.Measure]
	n := c.Total()
	return time.Duration(c.At(max(1, uint64(percent/100*float64(n)+0.999999))))
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s = %v; want %v", what, got, want)
	}
}
