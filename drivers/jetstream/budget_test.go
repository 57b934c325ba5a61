package jetstream

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/natsd"
)

// Budgets of a message, all of it the client's own. Published: what it makes of the
// acknowledgement received. Received one by one: of the message, twice. Fetched: a
// timer besides. Half of one is room for what does not come with each message.
const (
	publishBudget = 3.5
	consumeBudget = 5.5
	fetchBudget   = 8.5
)

func TestMessagesKeepToTheirBudgets(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 1}
	c := open(t, s, map[string]string{"storage": "memory"}, d)
	const n, inFlight = 20_000, 1000
	done := &count{make(chan struct{}, inFlight), make(chan error, 1)}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: inFlight}, done)
	if err != nil {
		t.Fatal(err)
	}
	m := &driver.Message{Destination: "d", Payload: make([]byte, 64)} // shared: the driver keeps nothing in it
	publish := func() {
		for range n {
			done.room <- struct{}{}
			p.Publish(t.Context(), m)
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish() // until what grows has grown
	if got := allocations(publish) / n; got > publishBudget {
		t.Errorf("%.2f allocations a message published; the budget is %v", got, publishBudget)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for settle, budget := range map[driver.Settle]float64{driver.SettleEach: consumeBudget, driver.SettleBatch: fetchBudget} {
		x, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: settle.String(), Destinations: []string{"d"}, Settle: settle})
		if err != nil {
			t.Fatal(err)
		}
		consume := func() {
			ctx, cancel := context.WithCancel(t.Context())
			g := &gather{want: 2 * n, all: make(chan struct{}), ready: make(chan struct{})}
			ended := make(chan error, 1)
			go func() { ended <- x.Run(ctx, g) }()
			within(t, "all messages", g.all)
			cancel()
			if err := errors.Join(<-ended, x.Close(t.Context())); err != nil {
				t.Error(err)
			}
		}
		if got := allocations(consume) / (2 * n); got > budget {
			t.Errorf("settle %v: %.2f allocations a message received; the budget is %v", settle, got, budget)
		}
	}
}

// allocations returns how many all goroutines make while f runs.
func allocations(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}

// BenchmarkConsume compares what this driver receives and acknowledges with the
// client's own Consume, 500 at a time, from a stream in memory.
func BenchmarkConsume(b *testing.B) {
	s := natstest.Start(b, natsd.Options{})
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 1}
	fill := func(b *testing.B, c driver.Conn) {
		b.Helper()
		done := &count{make(chan struct{}, 1024), make(chan error, 1)}
		p, err := c.Producer(b.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1024}, done)
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			done.room <- struct{}{}
			p.Publish(b.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 128)})
		}
		if err := errors.Join(p.Flush(b.Context()), p.Close(b.Context())); err != nil {
			b.Fatal(err)
		}
	}
	for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch} {
		b.Run(fmt.Sprint("settle ", settle), func(b *testing.B) {
			c := open(b, s, map[string]string{"storage": "memory"}, d)
			fill(b, c)
			x, err := c.Consumer(b.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: settle})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			g := &gather{want: int64(b.N), all: make(chan struct{}), ready: make(chan struct{})}
			ended := make(chan error, 1)
			b.ReportAllocs()
			b.ResetTimer()
			go func() { ended <- x.Run(ctx, g) }()
			<-g.all
			b.StopTimer()
			cancel()
			if err := errors.Join(<-ended, x.Close(b.Context())); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.Run("client's Consume", func(b *testing.B) {
		c := open(b, s, map[string]string{"storage": "memory"}, d)
		fill(b, c)
		nc, err := nats.Connect(s.Address[0])
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			b.Fatal(err)
		}
		x, err := js.CreateConsumer(b.Context(), inside(c).stream("d"), jetstream.ConsumerConfig{Durable: "x", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: -1})
		if err != nil {
			b.Fatal(err)
		}
		var got atomic.Int64
		all := make(chan struct{})
		b.ReportAllocs()
		b.ResetTimer()
		cc, err := x.Consume(func(m jetstream.Msg) {
			_ = m.Ack()
			if got.Add(1) == int64(b.N) {
				close(all)
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		<-all
		b.StopTimer()
		cc.Stop()
		<-cc.Closed()
	})
}
