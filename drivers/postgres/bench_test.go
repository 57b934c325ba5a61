package postgres

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// Budgets of allocations for a message. They are the client's: the list of what a
// pipeline waits for, and what stands for each answer.
const (
	allocationsToSend = 10
	allocationsToTake = 10
)

// inFlightMost is how many messages the measurements have under way.
const inFlightMost = 1000

// room is a completer that counts, and lets go on.
type room struct {
	tokens chan struct{}
	bad    atomic.Int64
}

func (r *room) Complete(_ *driver.Message, err error) {
	if err != nil {
		r.bad.Add(1)
	}
	<-r.tokens
}

// publish sends n messages, and returns when they are confirmed.
func publish(t testing.TB, c *conn, n int) {
	t.Helper()
	r := &room{tokens: make(chan struct{}, inFlightMost)}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: inFlightMost}, r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	m := &driver.Message{Destination: "d", Payload: make([]byte, 1024)} // shared: the driver keeps nothing in it
	for range n {
		r.tokens <- struct{}{}
		p.Publish(t.Context(), m)
	}
	flush(t, p.(*producer))
	if bad := r.bad.Load(); bad > 0 {
		t.Fatalf("%d of %d messages failed", bad, n)
	}
}

// counting is a sink that stops its consumer after so many messages.
type counting struct {
	left atomic.Int64
	stop context.CancelFunc
}

func (c *counting) Ready() {}
func (c *counting) Deliver(ds []driver.Delivery) error {
	if c.left.Add(-int64(len(ds))) <= 0 {
		c.stop()
	}
	return nil
}
func (c *counting) Settled([]driver.Delivery, error) {}
func (c *counting) Fault(error)                      {}

// take consumes n messages, which are there.
func take(t testing.TB, c *conn, n int, settle driver.Settle) {
	t.Helper()
	x, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: settle})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close(context.Background()) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := &counting{stop: cancel}
	k.left.Store(int64(n))
	if err := x.Run(ctx, k); err != nil {
		t.Fatal(err)
	}
}

func TestAMessageAllocatesNoMoreThanItsBudget(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, s, false, "synchronous-commit", "off")
	declare(t, c, "d")
	const n = 5000
	mallocs := func(f func()) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / n
	}
	publish(t, c, 1)
	take(t, c, 1, driver.SettleEach)
	if per := mallocs(func() { publish(t, c, n) }); per > allocationsToSend {
		t.Errorf("sending: %.1f allocations a message; want %d at most", per, allocationsToSend)
	}
	if per := mallocs(func() { take(t, c, n, driver.SettleEach) }); per > allocationsToTake {
		t.Errorf("taking and settling: %.1f allocations a message; want %d at most", per, allocationsToTake)
	}
}

func BenchmarkPublish(b *testing.B) {
	s := served.Up(b, Definition(), 1)
	for _, transaction := range []string{"1", "100"} {
		b.Run("transaction "+transaction, func(b *testing.B) {
			c := open(b, s, false, "synchronous-commit", "off", "transaction", transaction)
			declare(b, c, "d")
			b.ReportAllocs()
			b.ResetTimer()
			publish(b, c, b.N)
		})
	}
}

func BenchmarkConsume(b *testing.B) {
	s := served.Up(b, Definition(), 1)
	for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto} {
		b.Run("settle "+settle.String(), func(b *testing.B) {
			c := open(b, s, false, "synchronous-commit", "off")
			declare(b, c, "d")
			publish(b, c, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			take(b, c, b.N, settle)
		})
	}
}
