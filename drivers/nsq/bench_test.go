package nsq

import (
	"context"
	"math"
	"runtime"
	"testing"

	client "github.com/nsqio/go-nsq"

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

// The budget of a message published: two are the client's own, for the answer that
// it reads and the size that it writes.
const budget = 2

func TestPublishKeepsToItsBudget(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, driver.Run{ID: "budget"}, s.Options)
	p := producerOf(t, c, room{t, make(chan struct{}, 1000)})
	m := &driver.Message{Destination: "d", Payload: make([]byte, 64)}
	publish := func() {
		p.done.(room).free <- struct{}{}
		p.Publish(t.Context(), m) // shared: the driver keeps nothing in it
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

// BenchmarkPublish compares this driver with the client's own Producer, at the
// same number of messages under way.
func BenchmarkPublish(b *testing.B) {
	s := served.Up(b, Definition(), 1)
	c := open(b, driver.Run{ID: "bench"}, s.Options)
	b.Run("weir", func(b *testing.B) {
		r := room{b, make(chan struct{}, 1000)}
		p := producerOf(b, c, r)
		m := &driver.Message{Destination: "d", Payload: make([]byte, 1024)}
		b.ReportAllocs()
		for b.Loop() {
			r.free <- struct{}{}
			p.Publish(b.Context(), m)
		}
		_ = p.Flush(b.Context())
	})
	b.Run("PublishAsync", func(b *testing.B) {
		p, err := client.NewProducer(s.Address[0], client.NewConfig())
		if err != nil {
			b.Fatal(err)
		}
		p.SetLoggerLevel(client.LogLevelMax)
		free := make(chan struct{}, 1000)
		done := make(chan *client.ProducerTransaction, 1000)
		go func() {
			for t := range done {
				if t.Error != nil {
					b.Error(t.Error)
				}
				<-free
			}
		}()
		body := make([]byte, 1024)
		b.ReportAllocs()
		for b.Loop() {
			free <- struct{}{}
			if err := p.PublishAsync("bench-async", body, done, free); err != nil {
				b.Fatal(err)
			}
		}
		for len(free) > 0 { // closed while answers are on their way it would leave goroutines
			runtime.Gosched()
		}
		p.Stop()
		close(done)
	})
	b.Run("MPUB of 100", func(b *testing.B) {
		r := room{b, make(chan struct{}, 1000)}
		p := producerOf(b, c, r)
		ms := make([]*driver.Message, 100)
		for i := range ms {
			ms[i] = &driver.Message{Destination: "d", Payload: make([]byte, 1024)}
		}
		b.ReportAllocs()
		for b.Loop() {
			for range ms {
				r.free <- struct{}{}
			}
			p.PublishBatch(b.Context(), ms)
		}
		_ = p.Flush(b.Context())
	})
}
