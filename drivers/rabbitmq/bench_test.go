package rabbitmq

import (
	"testing"

	client "github.com/rabbitmq/amqp091-go"

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

// TestPublishKeepsToItsBudget compares with the client alone, which makes a
// deferred confirmation for each message whether or not somebody waits for it.
func TestPublishKeepsToItsBudget(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{}, s.Options)
	declared(t, c, 1)
	r := room{t, make(chan struct{}, 1000)}
	p := producerOf(t, c, r, "d")
	m := &driver.Message{Destination: "d", Payload: make([]byte, 64)}
	publish := func() {
		r.free <- struct{}{}
		p.Publish(t.Context(), m) // shared: the driver keeps nothing in it
	}
	for range 2000 {
		publish() // until buffers and maps have grown
	}
	weir := testing.AllocsPerRun(5000, publish)
	if err := p.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	l, err := c.reach(t.Context(), "alone", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.end()
	ch, err := l.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	at := mustPlace(t, c, "d")
	free := make(chan struct{}, 1000)
	confirmed := ch.NotifyPublish(make(chan client.Confirmation, 1000))
	go func() {
		for range confirmed {
			<-free
		}
	}()
	alone := func() {
		free <- struct{}{}
		if err := ch.PublishWithContext(t.Context(), at.exchange, at.key, true, false, client.Publishing{DeliveryMode: 2, Body: m.Payload}); err != nil {
			t.Error(err)
		}
	}
	for range 2000 {
		alone()
	}
	// Its listener costs a timer for each confirmation, which ours does not.
	if client := testing.AllocsPerRun(5000, alone); weir > client {
		t.Errorf("%v allocations a message; the client alone makes %v", weir, client)
	} else {
		t.Logf("%v allocations a message; the client alone makes %v", weir, client)
	}
}

// BenchmarkPublish compares the wire below the client with a socket, confirmed by
// the client's own means.
func BenchmarkPublish(b *testing.B) {
	s := served.Up(b, Definition(), 1)
	for _, mode := range []string{transient, persistent} {
		c := open(b, driver.Run{}, options(s, "delivery-mode", mode))
		declared(b, c, 1)
		b.Run(mode+"/weir", func(b *testing.B) {
			r := room{b, make(chan struct{}, 1000)}
			p := producerOf(b, c, r, "d")
			m := &driver.Message{Destination: "d", Payload: make([]byte, 1024)}
			b.ReportAllocs()
			for b.Loop() {
				r.free <- struct{}{}
				p.Publish(b.Context(), m)
			}
			_ = p.Flush(b.Context())
		})
		b.Run(mode+"/client", func(b *testing.B) {
			l, err := client.DialConfig("amqp://guest:guest@"+s.Address[0], client.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			ch, err := l.Channel()
			if err == nil {
				err = ch.Confirm(false)
			}
			if err != nil {
				b.Fatal(err)
			}
			free := make(chan struct{}, 1000)
			confirmed := ch.NotifyPublish(make(chan client.Confirmation, 1000))
			go func() {
				for range confirmed {
					<-free
				}
			}()
			at := mustPlace(b, c, "d")
			message := client.Publishing{DeliveryMode: 1, Body: make([]byte, 1024)}
			if mode == persistent {
				message.DeliveryMode = 2
			}
			b.ReportAllocs()
			for b.Loop() {
				free <- struct{}{}
				if err := ch.PublishWithContext(b.Context(), at.exchange, at.key, true, false, message); err != nil {
					b.Fatal(err)
				}
			}
			for range cap(free) { // until all are confirmed
				free <- struct{}{}
			}
		})
	}
}
