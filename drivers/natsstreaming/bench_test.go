package natsstreaming

import (
	"context"
	"testing"

	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// room takes completions; it bounds how many messages are under way. Each has a
// message of its own, as with the engine.
type room struct {
	t    testing.TB
	free chan *driver.Message
}

func newRoom(t testing.TB, size int) room {
	r := room{t, make(chan *driver.Message, 100)}
	for range cap(r.free) {
		r.free <- &driver.Message{Destination: "d", Payload: make([]byte, size)}
	}
	return r
}

func (r room) Complete(m *driver.Message, err error) {
	if err != nil {
		r.t.Error(err)
	}
	r.free <- m
}

// TestPublishAddsNoAllocation compares a message published with one that the
// client's own PublishAsync is given the same handler for.
func TestPublishAddsNoAllocation(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"store": "memory"}})
	c := open(t, driver.Run{ID: "budget"}, s.Options, "d")
	const rounds = 5000

	r := newRoom(t, 64)
	p := produce(t, c, r, "d")
	publish := func() { p.Publish(context.Background(), <-r.free) }
	for range 2000 {
		publish() // until each message has been used, and the client's map has grown
	}
	ours := testing.AllocsPerRun(rounds, publish)
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	sc := theirs(t, s)
	free := make(chan struct{}, 100)
	handler := func(_ string, err error) {
		if err != nil {
			t.Error(err)
		}
		<-free
	}
	payload := make([]byte, 64)
	plain := func() {
		free <- struct{}{}
		if _, err := sc.PublishAsync("plain", payload, handler); err != nil {
			t.Error(err)
		}
	}
	for range 2000 {
		plain()
	}
	client := testing.AllocsPerRun(rounds, plain)
	for range cap(free) { // all are acknowledged
		free <- struct{}{}
	}
	if ours > client+1 { // the measurement takes in what the client does beside
		t.Errorf("%v allocations a message, %v of the client's own", ours, client)
	}
	t.Logf("%v allocations a message, %v of the client's own", ours, client)
}

// nothing is a sink that accepts all.
type nothing struct{}

func (nothing) Ready()                           {}
func (nothing) Deliver([]driver.Delivery) error  { return nil }
func (nothing) Settled([]driver.Delivery, error) {}
func (nothing) Fault(error)                      {}

// TestDeliverAddsNoAllocation compares a delivery with what the client's own
// acknowledgement of it costs.
func TestDeliverAddsNoAllocation(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"store": "memory"}})
	sc := theirs(t, s)
	got := make(chan *stan.Msg, 1)
	if _, err := sc.Subscribe("c", func(m *stan.Msg) { got <- m }, stan.SetManualAckMode()); err != nil {
		t.Fatal(err)
	}
	if err := sc.Publish("c", make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	m := <-got
	r := &running{x: &consumer{}, sink: nothing{}}
	ours := testing.AllocsPerRun(5000, func() { r.deliver(0, m) })
	client := testing.AllocsPerRun(5000, func() { _ = m.Ack() })
	if ours > client+1 { // the measurement takes in what the client does beside
		t.Errorf("%v allocations a delivery, %v of the client's own", ours, client)
	}
	t.Logf("%v allocations a delivery, %v of the client's own", ours, client)
}

// BenchmarkPublish compares this driver with the client's own PublishAsync, at the
// same number of messages under way.
func BenchmarkPublish(b *testing.B) {
	s := served.Up(b, Definition(), 1, served.With{Settings: map[string]string{"store": "memory"}})
	b.Run("weir", func(b *testing.B) {
		c := open(b, driver.Run{ID: "bench"}, s.Options, "d")
		r := newRoom(b, 1024)
		p := produce(b, c, r, "d")
		b.ReportAllocs()
		for b.Loop() {
			p.Publish(b.Context(), <-r.free)
		}
		_ = p.Flush(b.Context())
	})
	b.Run("PublishAsync", func(b *testing.B) {
		sc, err := stan.Connect("weir", "bench", stan.NatsURL(s.Address[0]))
		if err != nil {
			b.Fatal(err)
		}
		free := make(chan struct{}, 100)
		payload := make([]byte, 1024)
		b.ReportAllocs()
		for b.Loop() {
			free <- struct{}{}
			if _, err := sc.PublishAsync("plain", payload, func(string, error) { <-free }); err != nil {
				b.Fatal(err)
			}
		}
		for range cap(free) {
			free <- struct{}{}
		}
		_ = sc.Close()
	})
}
