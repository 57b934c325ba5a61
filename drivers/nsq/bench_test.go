package nsq

import (
	"context"
	"math"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// room takes completions; it bounds how many messages are under way.
type room struct {
	t    testing.TB
	free chan struct{}
}

func (r room) Complete(_ *driver.Message, err error) {
	if err != nil {
		r.t.Error(err)
	}
	<-r.free
}

// messages returns what gives a message that is not under way: more than room has.
func messages(size int) func() *driver.Message {
	ms := make([]driver.Message, 1001)
	for i := range ms {
		ms[i] = driver.Message{Destination: "d", Payload: make([]byte, size)}
	}
	i := 0
	return func() *driver.Message {
		i = (i + 1) % len(ms)
		return &ms[i]
	}
}

// The budget of a message published: all are the client's own, for its command and
// transaction and for the answer that it reads.
const budget = 8

func TestPublishKeepsToItsBudget(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, driver.Run{ID: "budget"}, s.Options)
	r := room{t, make(chan struct{}, 1000)}
	p := producerOf(t, c, r)
	next := messages(64)
	publish := func() {
		r.free <- struct{}{}
		p.Publish(t.Context(), next())
	}
	for range 2000 {
		publish() // until the queue has grown
	}
	// The least of a few: queues grow while a crowded host holds the server up, which
	// is not the path's.
	least := math.Inf(1)
	for range 5 {
		least = min(least, testing.AllocsPerRun(5000, publish))
	}
	if least > budget {
		t.Errorf("%v allocations a message; the budget is %d", least, budget)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// producerOf opens a producer to the destination d, with whoever takes completions.
func producerOf(t testing.TB, c driver.Conn, done driver.Completer) *producer {
	t.Helper()
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 1}
	if err := c.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1000}, done)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close(context.Background())
		_ = c.Delete(context.Background(), d)
	})
	return p.(*producer)
}

// BenchmarkPublish compares messages published one by one with batches of them.
func BenchmarkPublish(b *testing.B) {
	s := served.Up(b, Definition(), 1)
	c := open(b, driver.Run{ID: "bench"}, s.Options)
	b.Run("PUB", func(b *testing.B) {
		r := room{b, make(chan struct{}, 1000)}
		p := producerOf(b, c, r)
		next := messages(1024)
		b.ReportAllocs()
		for b.Loop() {
			r.free <- struct{}{}
			p.Publish(b.Context(), next())
		}
		_ = p.Flush(b.Context())
	})
	b.Run("MPUB of 100", func(b *testing.B) {
		r := room{b, make(chan struct{}, 1000)}
		p := producerOf(b, c, r)
		next, ms := messages(1024), make([]*driver.Message, 100)
		b.ReportAllocs()
		for b.Loop() {
			for i := range ms {
				r.free <- struct{}{}
				ms[i] = next()
			}
			p.PublishBatch(b.Context(), ms)
		}
		_ = p.Flush(b.Context())
	})
}
