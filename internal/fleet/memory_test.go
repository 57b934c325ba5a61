package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
)

// A memory is a system in the test's memory, shared by all agents like a server: it records the header of
// each message, and delivers it to each subscription, except for planted faults. The consumer of a message
// is determined by the producer's and the message's number, so that it does not depend on how the run is
// divided.
type memory struct {
	name    string
	plants  bool          // faults, see pattern
	deaf    bool          // nothing is ever delivered
	silent  bool          // nothing is ever confirmed
	late    time.Duration // until a delivery
	entered func(payload []byte)
	got     func(payload []byte, deliver func())
	open    func() error // called by Open

	mu        sync.Mutex
	opened    int
	sent      []mark
	queues    map[string]map[string]*shelf // destination, subscription
	producers map[int]int                  // messages taken, by producer
	count     planted
}

// A mark identifies a message, and has its due time.
type mark struct {
	stream uint32
	seq    uint64
	due    int64
}

// A shelf is a subscription to a destination.
type shelf struct{ consumers map[int]*taker }

// period is the length of the pattern of planted faults. A period of a producer's messages goes to one
// consumer, so that a swap is visible.
const period = 20

// planted counts what a memory did, in the words of a result.
type planted struct {
	confirmed, failed, delivered, lost, corrupted, duplicated, redelivered, reordered, foreign, failedDelivered uint64
}

func newMemory(name string) *memory {
	return &memory{name: name, queues: map[string]map[string]*shelf{}, producers: map[int]int{}}
}

func (m *memory) definition() driver.Definition {
	return driver.Definition{
		Name: m.name, Title: "a memory", Summary: "Does what a test tells it to.",
		Capabilities: driver.Capabilities{
			Consume: true, Subscriptions: true, Competing: true, Batch: true, Retains: true, Settle: []driver.Settle{driver.SettleNone},
			Guarantees: []driver.Guarantee{driver.Buffered}, Delivery: driver.AtMostOnce,
		},
		New: func() driver.Config { return &reach{m} },
	}
}

// A reach is an agent's way to the memory.
type reach struct{ *memory }

func (r *reach) Validate() error { return nil }

func (r *reach) Open(context.Context, driver.Run) (driver.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened++
	if r.open != nil {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *reach) Declare(context.Context, ...driver.Destination) error { return nil }

func (r *reach) Delete(context.Context, ...driver.Destination) error { return nil }

func (r *reach) Close(context.Context) error { return nil }

// Backlog answers for consumers of every agent.
func (r *reach) Backlog(_ context.Context, subscription string, destinations []string) (n uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range destinations {
		if s := r.queues[d][subscription]; s != nil {
			for _, c := range s.consumers {
				n += uint64(len(c.in))
			}
		}
	}
	return n, nil
}

func (r *reach) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{Name: "memory", Version: "1", Confirms: driver.Confirms{Guarantee: driver.Buffered}}, nil
}

func (r *reach) Consumer(_ context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &taker{memory: r.memory, news: make(chan struct{}, 1)}
	for _, d := range spec.Destinations {
		if r.queues[d] == nil {
			r.queues[d] = map[string]*shelf{}
		}
		s := r.queues[d][spec.Subscription]
		if s == nil {
			s = &shelf{consumers: map[int]*taker{}}
			r.queues[d][spec.Subscription] = s
		}
		if s.consumers[spec.Index] != nil {
			return nil, fmt.Errorf("consumer %d of %s is there already", spec.Index, spec.Subscription)
		}
		s.consumers[spec.Index] = c
	}
	return c, nil
}

// A taker is one consumer.
type taker struct {
	*memory
	in   []waiting // under the memory's lock
	news chan struct{}
}

// A waiting is a delivery and when it is to be made.
type waiting struct {
	driver.Delivery
	at time.Time
}

func (t *taker) Close(context.Context) error { return nil }

func (t *taker) Run(ctx context.Context, sink driver.Sink) error {
	sink.Ready()
	for {
		t.mu.Lock()
		in := t.in
		t.in = nil
		t.mu.Unlock()
		for _, w := range in {
			if d := time.Until(w.at); d > 0 {
				select {
				case <-time.After(d):
				case <-ctx.Done():
					return nil
				}
			}
			deliver := func() { _ = sink.Deliver([]driver.Delivery{w.Delivery}) }
			if t.got != nil {
				t.got(w.Payload, deliver)
			} else {
				deliver()
			}
		}
		select {
		case <-t.news:
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *reach) Producer(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &giver{memory: r.memory, index: spec.Index, done: done}, nil
}

// A giver is one producer.
type giver struct {
	*memory
	index int
	done  driver.Completer
	held  []byte // to be delivered after the next
	kept  []*driver.Message
}

func (g *giver) PublishBatch(ctx context.Context, ms []*driver.Message) {
	for _, m := range ms {
		g.Publish(ctx, m)
	}
}

func (g *giver) Publish(_ context.Context, m *driver.Message) {
	if g.entered != nil {
		g.entered(m.Payload)
	}
	g.mu.Lock()
	k := g.producers[g.index]
	g.producers[g.index]++
	g.sent = append(g.sent, markOf(m.Payload))
	err := g.publish(k, m.Destination, slices.Clone(m.Payload))
	if g.silent {
		g.kept = append(g.kept, m)
	}
	g.mu.Unlock()
	if !g.silent {
		g.done.Complete(m, err)
	}
}

func (g *giver) Flush(context.Context) error { return nil }

func (g *giver) Close(context.Context) error {
	for _, m := range g.kept {
		g.done.Complete(m, driver.ErrClosed)
	}
	g.kept = nil
	return nil
}

// markOf reads a message's header.
func markOf(payload []byte) mark {
	s := stampOf(payload)
	return mark{s.Stream, s.Seq, s.Due}
}

func stampOf(payload []byte) (s stamp.Stamp) {
	_ = stamp.Read(payload, number, &s) // of what is none, nothing
	return s
}

// number is the number of the tests' runs, in headers.
const number = 0x7275

// publish applies the planted fault to message k, and counts it: the ground truth.
func (g *giver) publish(k int, to string, body []byte) error {
	if g.deaf {
		return nil
	}
	n, subs := &g.count, uint64(len(g.queues[to]))
	before := g.held
	g.held = nil
	defer func() {
		if before != nil {
			g.send(k, to, before, false)
		}
	}()
	fault := k % period
	if !g.plants {
		fault = -1
	}
	if fault == 17 {
		n.failed++
		return driver.ErrOverloaded
	}
	if fault == 18 {
		g.send(k, to, body, false)
		n.failed++
		n.failedDelivered += subs
		return driver.ErrOverloaded
	}
	n.confirmed++
	n.delivered += subs
	switch fault {
	case 2: // lost
		n.delivered -= subs
		n.lost += subs
	case 4: // twice in a row
		g.send(k, to, body, false)
		g.send(k, to, body, false)
		n.duplicated += subs
	case 6: // again, to the next consumer, flagged
		g.send(k, to, body, false)
		g.send(k+period, to, body, true)
		n.duplicated += subs
		n.redelivered += subs
	case 8: // after the one behind it
		g.held = body
		n.reordered += subs
	case 11: // damaged
		g.send(k, to, spoilt(body), false)
		n.delivered -= subs
		n.corrupted += subs
	case 13: // with one behind it that is not of the run
		g.send(k, to, body, false)
		g.send(k, to, []byte("not of weir"), false)
		n.foreign += subs
	default:
		g.send(k, to, body, false)
	}
	return nil
}

func spoilt(body []byte) []byte {
	b := slices.Clone(body)
	b[len(b)-1] ^= 1
	return b
}

// send delivers to a consumer of every subscription.
func (g *giver) send(k int, to string, body []byte, again bool) {
	for _, s := range g.queues[to] {
		who := make([]int, 0, len(s.consumers))
		for i := range s.consumers {
			who = append(who, i)
		}
		slices.Sort(who)
		if len(who) == 0 {
			continue
		}
		c := s.consumers[who[(g.index+k/period)%len(who)]]
		c.in = append(c.in, waiting{driver.Delivery{Payload: body, Partition: -1, Redelivered: again}, time.Now().Add(g.late)})
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
}

// marks returns what was sent, sorted, and forgets it.
func (m *memory) marks() []mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.sent
	m.sent, m.producers = nil, map[int]int{}
	m.queues, m.count = map[string]map[string]*shelf{}, planted{}
	slices.SortFunc(all, func(a, b mark) int {
		if a.stream != b.stream {
			return int(a.stream) - int(b.stream)
		}
		return int(int64(a.seq) - int64(b.seq))
	})
	return all
}
