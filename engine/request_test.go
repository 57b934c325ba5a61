package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// A fakeRequester is a fake with native requests: each takes delay to a responder, which takes no
// time, and late back.
type fakeRequester struct {
	*fake
	mu   sync.Mutex
	n    int
	sink map[string][]serving // the responders of a destination, used in turn
}

// A serving is a responder and the index of one of its destinations.
type serving struct {
	c      chan asking
	source int32
}

type asking struct {
	request []byte
	source  int32
	answer  func()
}

func (q *fakeRequester) Requester(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &fakeAsker{q: q, done: done, left: make(chan struct{})}, nil
}

func (q *fakeRequester) Responder(_ context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := make(chan asking, 1<<16)
	if q.sink == nil {
		q.sink = map[string][]serving{}
	}
	for i, d := range spec.Destinations {
		q.sink[d] = append(q.sink[d], serving{c, int32(i)})
	}
	return fakeResponder{c}, nil
}

type fakeResponder struct{ c chan asking }

func (x fakeResponder) Run(ctx context.Context, sink driver.Sink) error {
	sink.Ready()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-x.c:
			if sink.Deliver([]driver.Delivery{{Payload: a.request, Partition: -1, Source: a.source}}) == nil {
				a.answer()
			}
		}
	}
}

func (fakeResponder) Close(context.Context) error { return nil }

type fakeAsker struct {
	q    *fakeRequester
	done driver.Completer
	left chan struct{} // closed by Close
	wg   sync.WaitGroup
}

func (p *fakeAsker) Publish(ctx context.Context, m *driver.Message) {
	q := p.q
	if q.enter != nil {
		q.enter(ctx, 0)
	}
	q.mu.Lock()
	n := q.n
	q.n++
	to := q.sink[m.Destination]
	s := to[n%len(to)]
	q.mu.Unlock()
	request := slices.Clone(m.Payload)
	answered := make(chan struct{}, 1)
	p.wg.Go(func() {
		time.Sleep(q.delay)
		s.c <- asking{request, s.source, func() { answered <- struct{}{} }}
		select {
		case <-answered:
		case <-p.left:
			p.done.Complete(m, driver.ErrClosed)
			return
		}
		if q.confirm != nil {
			if err := q.confirm(0, n); err != nil {
				p.done.Complete(m, err)
				return
			}
		}
		time.Sleep(q.late)
		m.Reply = request
		if q.answer != nil {
			m.Reply = q.answer(n, request)
		}
		p.done.Complete(m, nil)
	})
}

func (p *fakeAsker) Flush(context.Context) error { p.wg.Wait(); return nil }

func (p *fakeAsker) Close(context.Context) error {
	close(p.left)
	p.wg.Wait()
	return nil
}

// asks returns a run of mode Request with a thousand measured requests.
func asks(f *fake) Config {
	cfg := config(f, 1000)
	cfg.Mode = Request
	cfg.Definition.Capabilities.Requests = f.native
	return cfg
}

// ask runs it and checks what holds for every run of this mode.
func ask(t *testing.T, cfg Config) *Raw {
	t.Helper()
	raw := must.Get(Run(t.Context(), nil, cfg))(t)
	return squared(t, raw, cfg.Definition.Capabilities.Requests)
}

// squared checks the message accounting, and that every distribution agrees with it.
func squared(t *testing.T, raw *Raw, native bool) *Raw {
	t.Helper()
	expect(t, "subscriptions", raw.Subscriptions, map[bool]int{true: 1, false: 2}[native])
	for name, m := range map[string]result.Messages{"all": raw.All, "measured": raw.Measured} {
		if m.Scheduled != m.Sent+m.Dropped+m.Unsent || m.Sent != m.Confirmed+m.Failed+m.Unconfirmed ||
			m.Confirmed*uint64(raw.Subscriptions) != m.Delivered+m.Late+m.Corrupted+m.Lost+m.Pending {
			t.Errorf("%s: the books do not balance: %+v", name, m)
		}
	}
	if want := map[bool]int{true: 0, false: 2}[native]; len(raw.Shares) != want {
		t.Errorf("%d shares; want %d", len(raw.Shares), want)
	}
	for _, x := range raw.Shares {
		if m := x.MessagesAll; m.Delivered+m.Late+m.Corrupted+m.Lost+m.Pending != raw.All.Confirmed {
			t.Errorf("the %s do not balance: %+v; want %d", x.Name, m, raw.All.Confirmed)
		}
		if m := x.Messages; m.Delivered+m.Late+m.Corrupted+m.Lost+m.Pending != raw.Measured.Confirmed {
			t.Errorf("the %s of the window do not balance: %+v; want %d", x.Name, m, raw.Measured.Confirmed)
		}
	}
	m := raw.Measured
	want := map[measure.Kind]uint64{
		measure.SendService: m.Sent, measure.E2EService: m.Sent, measure.RTTService: m.Sent,
		measure.SendResponse: m.Scheduled, measure.E2EResponse: m.Scheduled, measure.RTTResponse: m.Scheduled,
		measure.SendLateness: m.Sent, measure.SendBlocked: m.Sent,
	}
	if native {
		want[measure.SendService], want[measure.SendResponse] = 0, 0
	}
	for k, want := range want {
		if raw.Closed && k != measure.SendService && k != measure.E2EService && k != measure.RTTService {
			want = 0
		}
		if got := raw.Snapshot.Kinds[k][measure.Measure].Total() + raw.Censored[k][measure.Measure].Total(); got != want {
			t.Errorf("%s holds %d samples, censored ones included; want %d", k, got, want)
		}
	}
	twins(t, raw)
	return raw
}

// all checks that every value of a kind is d.
func all(t *testing.T, raw *Raw, k measure.Kind, d time.Duration) {
	t.Helper()
	c := &raw.Snapshot.Kinds[k][measure.Measure]
	if lo, hi := time.Duration(c.Min()), time.Duration(c.Max()); lo != d || hi != d {
		t.Errorf("%s: from %v to %v; want %v", k, lo, hi, d)
	}
}

func TestEchoedRequestMeasuresRoundTrip(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			f := &fake{blocks: blocks, delay: time.Millisecond, late: 3 * time.Millisecond}
			raw := ask(t, asks(f))
			expect(t, "confirmed", raw.Measured.Confirmed, 1000)
			expect(t, "delivered, both ways", raw.Measured.Delivered, 2000)
			all(t, raw, measure.SendResponse, time.Millisecond)
			all(t, raw, measure.E2EResponse, 3*time.Millisecond)
			all(t, raw, measure.RTTResponse, 6*time.Millisecond)
			all(t, raw, measure.RTTService, 6*time.Millisecond)
			expect(t, "received in the window, both ways", raw.Snapshot.Window.Received, 2000)
			expect(t, "destinations", f.made, []string{"t-d0", "t-r0"})
			expect(t, "destinations removed", f.removed, f.made)
		})
	}
}

func TestNativeReplyConfirmsRequest(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{native: true, delay: 2 * time.Millisecond, late: 5 * time.Millisecond}
		raw := ask(t, asks(f))
		expect(t, "confirmed", raw.Measured.Confirmed, 1000)
		expect(t, "delivered", raw.Measured.Delivered, 1000)
		all(t, raw, measure.E2EResponse, 2*time.Millisecond)
		all(t, raw, measure.RTTResponse, 7*time.Millisecond)
		all(t, raw, measure.SendLateness, 0)
		expect(t, "destinations", f.made, []string{"t-d0"})
	})
}

func TestRequestReplyBetweenManyClients(t *testing.T) {
	for _, native := range []bool{false, true} {
		for _, c := range []struct{ producers, destinations, consumers int }{{7, 3, 5}, {2, 7, 3}, {25, 1, 25}, {3, 3, 1}} {
			virtual(t, func(t *testing.T) {
				f := &fake{native: native, delay: time.Millisecond, late: time.Millisecond}
				cfg := asks(f)
				cfg.Plan.Producers, cfg.Plan.Destinations, cfg.Consumers = c.producers, c.destinations, c.consumers
				raw := ask(t, cfg)
				all(t, raw, measure.RTTResponse, 2*time.Millisecond)
				m := raw.All
				expect(t, "confirmed", m.Confirmed, 1100)
				expect(t, "lost, foreign, duplicated, reordered, misrouted", m.Lost+m.Foreign+m.Duplicated+m.Reordered+m.Misrouted, 0)
			})
		}
	}
}

func TestRepliesAreInMessageAccounting(t *testing.T) {
	// Producer 0 sends the requests, 1 the replies.
	virtual(t, func(t *testing.T) {
		f := &fake{
			late: time.Millisecond,
			copies: func(producer, n int) int {
				switch {
				case producer == 1 && n%100 == 10:
					return 0
				case producer == 1 && n%100 == 20:
					return 3
				}
				return 1
			},
			damage: func(producer, n int) bool { return producer == 1 && n%100 == 30 },
			confirm: func(producer, n int) error {
				if producer == 1 && n%100 == 10 {
					return driver.ErrOverloaded
				}
				return nil
			},
		}
		cfg := asks(f)
		cfg.Plan.WarmUp = 0
		var events []string
		var mu sync.Mutex
		cfg.OnEvent = func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == "error" {
				events = append(events, e.Text)
			}
		}
		raw := ask(t, cfg)
		m := raw.All
		expect(t, "confirmed requests", m.Confirmed, 1000)
		expect(t, "lost replies", m.Lost, 10)
		expect(t, "duplicated replies", m.Duplicated, 20)
		expect(t, "corrupted replies", m.Corrupted, 10)
		expect(t, "round trips", raw.Snapshot.Kinds[measure.RTTResponse][measure.Measure].Total(), 980)
		expect(t, "censored round trips", raw.Censored[measure.RTTResponse][measure.Measure].Total(), 20)
		expect(t, "censored deliveries", raw.Censored[measure.E2EResponse][measure.Measure].Total(), 0)
		expect(t, "errors", raw.Errors, []ErrorCount{{"overloaded", "sending a reply: system overloaded", 10, 0}})
		expect(t, "events", events, []string{"sending a reply: system overloaded"})
	})
}

func TestALostRequestHasNoReplyEither(t *testing.T) {
	virtual(t, func(t *testing.T) {
		raw := ask(t, asks(&fake{copies: func(producer, n int) int { return min(n, 1) }}))
		// The producer's first, and the echo's first.
		expect(t, "lost", raw.All.Lost, 3)
		expect(t, "first part", raw.Shares[0].Name, "requests")
		expect(t, "lost requests", raw.Shares[0].MessagesAll.Lost, 1)
		expect(t, "second part", raw.Shares[1].Name, "replies")
		expect(t, "lost replies", raw.Shares[1].MessagesAll.Lost, 2)
	})
}

func TestAReplyToAnotherProducerIsMisrouted(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{route: func(d string) string {
			return map[string]string{"t-r0": "t-r1", "t-r1": "t-r0", "t-d0": "t-d0"}[d]
		}}
		cfg := asks(f)
		cfg.Plan.Producers = 2
		raw := ask(t, cfg)
		expect(t, "misrouted", raw.All.Misrouted, 1100)
		expect(t, "misrouted replies", raw.Shares[replies].MessagesAll.Misrouted, 1100)
		expect(t, "foreign", raw.All.Foreign, 0)
		expect(t, "lost", raw.All.Lost, 1100)
		expect(t, "round trips", raw.Snapshot.Kinds[measure.RTTResponse][measure.Measure].Total(), 0)
	})
}

func TestAWrongReplyConfirmsNothing(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{native: true, late: time.Millisecond, answer: func(n int, request []byte) []byte {
			switch n % 100 {
			case 10: // damaged
				b := slices.Clone(request)
				b[len(b)-1]++
				return b
			case 20: // of another run
				return make([]byte, len(request))
			case 30: // of another message
				var st stamp.Stamp
				stamp.Read(request, 7, &st)
				st.Seq++
				b := slices.Clone(request)
				stamp.Put(b, &st)
				return b
			case 40:
				return nil
			case 50: // cut short
				return request[:len(request)-1]
			}
			return request
		}}
		cfg := asks(f)
		cfg.Plan.WarmUp = 0
		raw := ask(t, cfg)
		m := raw.All
		expect(t, "confirmed", m.Confirmed, 950)
		expect(t, "failed", m.Failed, 50)
		expect(t, "failed, and yet delivered to a responder", m.FailedDelivered, 50)
		expect(t, "foreign", m.Foreign, 20)
		expect(t, "misrouted", m.Misrouted, 10)
		expect(t, "misrouted in the window", raw.Measured.Misrouted, 10)
		expect(t, "corrupted", raw.CorruptedReplies, 20)
		expect(t, "damaged", raw.Damaged, 20)
		expect(t, "kinds of failure", raw.Errors, []ErrorCount{
			{"corrupted reply", errCorruptedReply.Error(), 20, 20},
			{"foreign reply", errForeignReply.Error(), 20, 20},
			{"misrouted reply", errMisroutedReply.Error(), 10, 10},
		})
		expect(t, "censored round trips", raw.Censored[measure.RTTResponse][measure.Measure].Total(), 50)
		all(t, raw, measure.SendFailed, time.Millisecond)
	})
}

func TestFailedRequestIsCensored(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{native: true, confirm: func(_, n int) error {
			if n%10 == 9 {
				return driver.ErrTimeout
			}
			return nil
		}}
		raw := ask(t, asks(f))
		expect(t, "failed", raw.Measured.Failed, 100)
		expect(t, "censored", raw.Censored[measure.RTTResponse][measure.Measure].Total(), 100)
		expect(t, "class", raw.Errors[0].Class, "timeout")
	})
}

func TestTheDrainWaitsForReplies(t *testing.T) {
	for _, native := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			raw := ask(t, func() Config {
				cfg := asks(&fake{native: native, late: 1500 * time.Millisecond})
				cfg.InFlight = 10_000
				return cfg
			}())
			want := 1500 * time.Millisecond
			if !native {
				want *= 2 // both ways
			}
			all(t, raw, measure.RTTResponse, want)
			expect(t, "pending, lost and unconfirmed", raw.All.Pending+raw.All.Lost+raw.All.Unconfirmed, 0)
		})
	}
}

func TestStoppedRequestRun(t *testing.T) {
	for _, native := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			cfg := asks(&fake{native: native, delay: 2 * time.Millisecond, late: 2 * time.Millisecond})
			stop := make(chan struct{})
			time.AfterFunc(500*time.Millisecond, func() { close(stop) })
			raw := must.Get(Run(t.Context(), stop, cfg))(t)
			squared(t, raw, native)
			m := raw.All
			if !raw.Interrupted || m.Sent < 400 || m.Sent > 600 || m.Confirmed != m.Sent || m.Pending+m.Lost > 0 {
				t.Errorf("interrupted %v, %+v", raw.Interrupted, m)
			}

			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			cfg = asks(&fake{native: native, delay: 200 * time.Millisecond, late: 200 * time.Millisecond})
			cfg.InFlight = 1000
			raw = must.Get(Run(ctx, nil, cfg))(t)
			squared(t, raw, native)
			if m := raw.All; m.Unconfirmed == 0 || m.Lost > 0 {
				t.Errorf("ended at once: %+v", m)
			}
		})
	}
}

func TestAClosedLoopOfRequests(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := asks(&fake{native: true, delay: 4 * time.Millisecond, late: 6 * time.Millisecond})
		cfg.Plan.Phases, cfg.Plan.WarmUp = nil, 0
		cfg.WarmUp, cfg.Measure, cfg.InFlight = 100*time.Millisecond, time.Second, 2
		raw := ask(t, cfg)
		// The reply frees the slot: two at a time, 10 ms each.
		expect(t, "sent", raw.Measured.Sent, 200)
		all(t, raw, measure.RTTService, 10*time.Millisecond)
		all(t, raw, measure.E2EService, 4*time.Millisecond)

		cfg.Options, cfg.Definition.Capabilities.Requests = &fake{delay: 5 * time.Millisecond, late: 10 * time.Millisecond}, false
		raw = ask(t, cfg)
		// The confirmation does.
		expect(t, "sent", raw.Measured.Sent, 400)
		all(t, raw, measure.SendService, 5*time.Millisecond)
		all(t, raw, measure.RTTService, 20*time.Millisecond)
	})
}

func TestBlockedReplyIsPending(t *testing.T) {
	virtual(t, func(t *testing.T) {
		n := 0
		f := &fake{blocks: true, enter: func(ctx context.Context, producer int) {
			if producer == 1 {
				if n++; n == 500 {
					<-ctx.Done() // the system accepts no more replies
				}
			}
		}}
		raw := ask(t, asks(f))
		m := raw.All
		expect(t, "lost", m.Lost, 0)
		// The consumer is blocked too, by what it was not given and what it has not answered. Two
		// of its messages arrive when the run releases it.
		expect(t, "pending and late", m.Pending+m.Late, 600+601)
		expect(t, "dry", raw.Dry, []bool{false, false})
	})
}

func TestAnEchoWithoutASlotWaits(t *testing.T) {
	virtual(t, func(t *testing.T) {
		held := make(chan *driver.Message, 2)
		r, e := lonely(t, func(m *driver.Message) { held <- m })
		e.reply([]byte("one"), 0)
		done := make(chan struct{})
		go func() { e.reply([]byte("two"), 0); close(done) }()
		time.Sleep(time.Second)
		if latch.Closed(done) || !r.replying() {
			t.Fatal("the second reply did not wait for the first one's slot")
		}
		e.Complete(<-held, nil)
		<-done
		if m := <-held; string(m.Payload) != "two" || m.Destination != "t-r0" {
			t.Errorf("sent %q to %s", m.Payload, m.Destination)
		}
		if r.replying() {
			t.Error("replying, with nothing to send")
		}
		// And no longer than the run.
		done = make(chan struct{})
		go func() { e.reply([]byte("three"), 0); close(done) }()
		time.Sleep(time.Second)
		r.endSend()
		<-done
		expect(t, "sent after the end", len(held), 0)
	})
}

func TestAbandonedReplyBufferIsNotReused(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var sent *driver.Message
		r, e := lonely(t, func(m *driver.Message) { sent = m })
		e.reply([]byte("one"), 0)
		kept := sent.Payload
		e.Complete(sent, errors.Join(driver.ErrTimeout, driver.ErrAbandoned))
		expect(t, "abandoned", e.abandoned.Load(), 1)
		expect(t, "failures", r.errs.list()[0].Class, "timeout")
		e.Complete(sent, nil)
		expect(t, "completions too many", e.twice.Load(), 1)
		// The only slot serves the next reply, with other bytes.
		time.AfterFunc(time.Second, r.endSend)
		e.reply([]byte("two"), 0)
		expect(t, "abandoned bytes", string(kept), "one")
		expect(t, "sent", string(sent.Payload), "two")
	})
}

// lonely returns an echo with one slot, whose producer is publish.
func lonely(t testing.TB, publish func(m *driver.Message)) (*run, *echo) {
	t.Helper()
	r := &run{shape: &shape{sizes: []int{64}, replyNames: []string{"t-r0"}, owners: []int{0}}}
	r.cfg.Consumers = SlotBytes / 64 // so that each has one slot
	r.clock.Store(config(&fake{}, 1).Clock)
	r.sending, r.endSend = context.WithCancel(t.Context())
	t.Cleanup(r.endSend)
	e := newEcho(r, 0)
	if len(e.slots) != 1 {
		t.Fatalf("%d slots", len(e.slots))
	}
	e.producer = publisher(publish)
	r.echoes = []*echo{e}
	return r, e
}

type publisher func(m *driver.Message)

func (p publisher) Publish(_ context.Context, m *driver.Message) { p(m) }
func (publisher) Flush(context.Context) error                    { return nil }
func (publisher) Close(context.Context) error                    { return nil }

func TestAnEchoAllocatesNothing(t *testing.T) {
	var e *echo
	_, e = lonely(t, func(m *driver.Message) { e.Complete(m, nil) })
	request := make([]byte, 64)
	if n := testing.AllocsPerRun(1000, func() { e.reply(request, 0) }); n != 0 {
		t.Errorf("%v allocations a reply", n)
	}
}

func BenchmarkEcho(b *testing.B) {
	var e *echo
	_, e = lonely(b, func(m *driver.Message) { e.Complete(m, nil) })
	request := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		e.reply(request, 0)
	}
}

func TestUnsupportedRequestsAreRejected(t *testing.T) {
	for _, c := range []struct {
		name, want string
		is         error
		change     func(*Config)
	}{
		{"without a consumer side", "no consumer side", driver.ErrUnsupported, func(c *Config) { c.Definition.Capabilities.Consume = false }},
		{"of what exists", "makes its own destinations", driver.ErrUnsupported, func(c *Config) { c.Names = []string{"mine"} }},
		{"answered twice", "2 subscriptions", driver.ErrUnsupported, func(c *Config) { c.Subscriptions = 2 }},
		{"of a driver that only says so", "declares requests and has none", ErrContract, func(c *Config) { c.Definition.Capabilities.Requests = true }},
		{"whose replies have no consumer", "not ready", ErrNotReady, func(c *Config) { c.Options.(*fake).unready = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				cfg := asks(&fake{})
				c.change(&cfg)
				_, err := Run(t.Context(), nil, cfg)
				if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v; want %q", err, c.want)
				}
			})
		})
	}
}

func TestReplyProducerCompletingTwiceBreaksContract(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{twiceBy: func(producer int) bool { return producer == 1 }}
		if _, err := Run(t.Context(), nil, asks(f)); !errors.Is(err, ErrContract) || !strings.Contains(err.Error(), "replies") {
			t.Errorf("%v; want ErrContract, naming the producer of replies", err)
		}
	})
}

func TestMessagesOfSeveralSizesAreEchoedWhole(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := asks(&fake{late: time.Millisecond})
		cfg.Plan.Sizes = []schedule.WeightedSize{{Bytes: 32, Weight: 1}, {Bytes: 100_000, Weight: 1}}
		raw := ask(t, cfg)
		expect(t, "corrupted and lost", raw.All.Corrupted+raw.All.Lost, 0)
		expect(t, "delivered", raw.Measured.Delivered, 2000)
	})
}
