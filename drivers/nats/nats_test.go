package nats

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

func open(t testing.TB, s *natstest.Server, options map[string]string) driver.Conn {
	t.Helper()
	return trial.Opened(t, Definition(), driver.Run{ID: "t"}, trial.At(s.Address, options))
}

func TestClientDropsAreReported(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	c := open(t, s, map[string]string{"pending-bytes": "4KiB"})
	h := trial.Hold(t, c, "s", 0)
	trial.Publish(t, trial.Produce(t, c, make(trial.Fates, 100), "d"), 100, 1024)
	h.Until(t, "a fault", func() bool { return len(h.Faults) > 0 })
	if err := h.Faults[0]; !errors.Is(err, client.ErrSlowConsumer) || !strings.Contains(err.Error(), "dropped") {
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
	h.End()
	if n := dropped(); open == 0 || n < open {
		t.Errorf("dropped %d, and %d after the consumer's end", open, n)
	}
}

func TestFlushAfterReconnectConfirmsNothingOld(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	c := open(t, s, map[string]string{"confirm": "flush", "reconnect-wait": "1ms"})
	done := make(trial.Fates, 1)
	dp := trial.Produce(t, c, done, "d")
	p := dp.(*producer)
	defer func() { _ = p.Close(context.Background()) }()
	resume := trial.Stalled(t, s.Stall)
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
	p.link.Kill() // sent, from the client's point of view, and never read
	resume()
	if err := done.Next(t); !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("completed with %v; want ErrDisconnected", err)
	}
}

func TestExistingSubjectsAreUsedUnchanged(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	c := trial.Opened(t, Definition(), driver.Run{ID: "t", Existing: true}, trial.At(s.Address, nil))
	nc := must.Get(client.Connect(s.Address[0]))(t)
	defer nc.Close()
	there, err := nc.SubscribeSync("orders.eu")
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	got := trial.NewLog()
	stop := got.Consume(t, c, driver.ConsumerSpec{Subscription: "t-s0", Destinations: []string{"orders.*"}, Settle: driver.SettleNone})
	p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.eu"}, Largest: 5}, make(trial.Fates, 1)))(t)
	p.Publish(t.Context(), &driver.Message{Destination: "orders.eu", Payload: []byte("hello")})
	if m, err := there.NextMsg(time.Minute); err != nil || string(m.Data) != "hello" {
		t.Errorf("a subscriber of orders.eu: %v, %v", m, err)
	}
	got.Until(t, "hello at the consumer of orders.*", func() bool { return slices.Equal(got.Got, []string{"hello"}) })
	stop()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"orders.*"}}, "a producer of a wildcard", driver.ErrUnsupported, "")
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"orders.eu"}, Largest: natsd.MaxPayload + 1}, "a producer of messages larger than the server takes", driver.ErrTooLarge, "")
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
