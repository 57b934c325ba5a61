package nats

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/natsd"
)

func open(t testing.TB, s *natstest.Server, options map[string]string) driver.Conn {
	t.Helper()
	cfg := Definition().New()
	if err := driver.SetOption(cfg, "address", s.Address...); err != nil {
		t.Fatal(err)
	}
	for k, v := range options {
		if err := driver.SetOption(cfg, k, v); err != nil {
			t.Fatal(err)
		}
	}
	c, err := driver.Open(t.Context(), Definition(), cfg, driver.Run{ID: "t", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// A sink blocks in its first Deliver until it is let go.
type sink struct {
	ready, let chan struct{}
	faults     chan error
	once       sync.Once
}

func (s *sink) Ready() { close(s.ready) }

func (s *sink) Deliver([]driver.Delivery) error {
	s.once.Do(func() { <-s.let })
	return nil
}

func (s *sink) Settled([]driver.Delivery, error) {}

func (s *sink) Fault(err error) {
	select {
	case s.faults <- err:
	default:
	}
}

// A completer hands errors on.
type completer struct{ errs chan error }

func (c *completer) Complete(_ *driver.Message, err error) { c.errs <- err }

func TestWhatTheClientDropsIsReported(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	c := open(t, s, map[string]string{"pending-bytes": "4KiB"})
	x, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleNone})
	if err != nil {
		t.Fatal(err)
	}
	k := &sink{ready: make(chan struct{}), let: make(chan struct{}), faults: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, k) }()
	<-k.ready
	done := &completer{make(chan error, 100)}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 100}, done)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 1024)})
	}
	select {
	case err := <-k.faults:
		if !errors.Is(err, client.ErrSlowConsumer) || !strings.Contains(err.Error(), "dropped") {
			t.Errorf("Fault(%v); want ErrSlowConsumer and how many were dropped", err)
		}
	case <-time.After(time.Minute):
		t.Error("no fault")
	}
	dropped := func() uint64 {
		f, err := c.Facts(t.Context())
		if err != nil || len(f.Discarded) != 1 || !f.Discarded[0].Client {
			t.Fatalf("facts %+v, %v; want the client's count", f, err)
		}
		return f.Discarded[0].Messages
	}
	open := dropped()
	close(k.let)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := dropped(); open == 0 || n < open {
		t.Errorf("dropped %d, and %d after the consumer's end", open, n)
	}
	_ = x.Close(context.Background())
	_ = p.Close(context.Background())
}

func TestFlushOnANewConnectionConfirmsNothingOfTheOld(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	c := open(t, s, map[string]string{"confirm": "flush", "reconnect-wait": "1ms"})
	done := &completer{make(chan error, 1)}
	dp, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1}, done)
	if err != nil {
		t.Fatal(err)
	}
	p := dp.(*producer)
	defer func() { _ = p.Close(context.Background()) }()
	resume, err := s.Stall()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
	p.link.Kill() // with the message sent, as far as the client knows, and never read
	resume()
	select {
	case err := <-done.errs:
		if !errors.Is(err, driver.ErrDisconnected) {
			t.Errorf("completed with %v; want ErrDisconnected", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("no completion")
	}
}

func TestSubjectsThatExistAreUsedAsTheyAre(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	cfg := Definition().New()
	if err := driver.SetOption(cfg, "address", s.Address...); err != nil {
		t.Fatal(err)
	}
	c, err := driver.Open(t.Context(), Definition(), cfg, driver.Run{ID: "t", Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	nc, err := client.Connect(s.Address[0])
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	there, err := nc.SubscribeSync("orders.eu")
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	x, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "t-s0", Destinations: []string{"orders.*"}, Settle: driver.SettleNone})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := &taken{ready: make(chan struct{}), payload: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, got) }()
	<-got.ready
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.eu"}, Largest: 5}, ignore{})
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(t.Context(), &driver.Message{Destination: "orders.eu", Payload: []byte("hello")})
	if m, err := there.NextMsg(time.Minute); err != nil || string(m.Data) != "hello" {
		t.Errorf("a subscriber of orders.eu: %v, %v", m, err)
	}
	select {
	case text := <-got.payload:
		if text != "hello" {
			t.Errorf("the consumer of orders.* got %q", text)
		}
	case <-time.After(time.Minute):
		t.Error("the consumer of orders.* got nothing")
	}
	cancel()
	if err := errors.Join(<-ended, x.Close(t.Context()), p.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.*"}}, ignore{}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a producer of a wildcard: %v; want ErrUnsupported", err)
	}
	_, err = c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.eu"}, Largest: natsd.MaxPayload + 1}, ignore{})
	if !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a producer of messages larger than the server takes: %v; want ErrTooLarge", err)
	}
}

// taken is a sink that keeps the first payload.
type taken struct {
	ready   chan struct{}
	payload chan string
}

func (k *taken) Ready() { close(k.ready) }

func (k *taken) Deliver(ds []driver.Delivery) error {
	select {
	case k.payload <- string(ds[0].Payload):
	default:
	}
	return nil
}

func (k *taken) Settled([]driver.Delivery, error) {}
func (k *taken) Fault(error)                      {}

// ignore is a Completer that does nothing.
type ignore struct{}

func (ignore) Complete(*driver.Message, error) {}

func TestTheGuaranteeFollowsTheOptionConfirm(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	for confirm, want := range map[string]driver.Guarantee{confirmNone: driver.Buffered, confirmFlush: driver.Received} {
		f, err := open(t, s, map[string]string{"confirm": confirm}).Facts(t.Context())
		if err != nil || f.Confirms != (driver.Confirms{Guarantee: want}) {
			t.Errorf("confirm %s: %+v, %v", confirm, f.Confirms, err)
		}
	}
}
