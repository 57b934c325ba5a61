package nats

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
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

func TestClientDropsAreReported(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	c := open(t, s, map[string]string{"pending-bytes": "4KiB"})
	x, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleNone})
	if err != nil {
		t.Fatal(err)
	}
	let, l := make(chan struct{}), trial.NewLog()
	l.OnDeliver = func([]driver.Delivery) error {
		<-let
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, l) }()
	l.WaitReady(t)
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 100}, make(trial.Fates, 100))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 1024)})
	}
	l.Until(t, "a fault", func() bool {
		if len(l.Faults) > 0 {
			err = l.Faults[0]
		}
		return err != nil
	})
	if !errors.Is(err, client.ErrSlowConsumer) || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("Fault(%v); want ErrSlowConsumer and how many were dropped", err)
	}
	dropped := func() uint64 {
		f, err := c.Facts(t.Context())
		if err != nil || len(f.Discarded) != 1 || !f.Discarded[0].Client {
			t.Fatalf("facts %+v, %v; want the client's count", f, err)
		}
		return f.Discarded[0].Messages
	}
	open := dropped()
	close(let)
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

func TestFlushAfterReconnectConfirmsNothingOld(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	c := open(t, s, map[string]string{"confirm": "flush", "reconnect-wait": "1ms"})
	done := make(trial.Fates, 1)
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
	p.link.Kill() // sent, from the client's point of view, and never read
	resume()
	if err := done.Next(t); !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("completed with %v; want ErrDisconnected", err)
	}
}

func TestExistingSubjectsAreUsedUnchanged(t *testing.T) {
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
	got := trial.NewLog()
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, got) }()
	got.WaitReady(t)
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.eu"}, Largest: 5}, make(trial.Fates, 1))
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(t.Context(), &driver.Message{Destination: "orders.eu", Payload: []byte("hello")})
	if m, err := there.NextMsg(time.Minute); err != nil || string(m.Data) != "hello" {
		t.Errorf("a subscriber of orders.eu: %v, %v", m, err)
	}
	got.Until(t, "hello at the consumer of orders.*", func() bool { return slices.Equal(got.Got, []string{"hello"}) })
	cancel()
	if err := errors.Join(<-ended, x.Close(t.Context()), p.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.*"}}, nil); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a producer of a wildcard: %v; want ErrUnsupported", err)
	}
	_, err = c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.eu"}, Largest: natsd.MaxPayload + 1}, nil)
	if !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a producer of messages larger than the server takes: %v; want ErrTooLarge", err)
	}
}

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
