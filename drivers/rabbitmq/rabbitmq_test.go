package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestTooLargeMessageFailsAlone(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"max-message-size": "10000"}})
	l := trial.NewLog()
	c := open(t, driver.Run{Event: l.Event}, options(s, "reconnect-wait", "5ms"))
	declared(t, c, 1)
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"d"}, Largest: 10_001}, "a producer of what is too large", driver.ErrTooLarge, "configured max size 10000")
	if x, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, Largest: 10_000}, l); err != nil {
		t.Error(err)
	} else {
		_ = x.Close(t.Context())
	}
	p := producerOf(t, c, l, "d")
	l.Consume(t, c, driver.ConsumerSpec{})
	if err := l.Publish(t, p, "d", strings.Repeat("x", 10_001)); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("what is too large completes with %v", err)
	}
	l.Until(t, "another channel", func() bool {
		return slices.ContainsFunc(l.Events, func(e string) bool { return strings.HasPrefix(e, "reconnect producer 0") })
	})
	if err := l.Publish(t, p, "d", strings.Repeat("x", 10_000)); err != nil {
		t.Errorf("what just fits completes with %v", err)
	}
	l.Until(t, "what just fits", func() bool { return len(l.Got) == 1 })
}

func TestFullQueueNacks(t *testing.T) {
	s := shared.Up(t, 1)
	l := trial.NewLog()
	c := open(t, driver.Run{}, options(s, "max-length", "3", "overflow", "reject-publish"))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	for i := range 3 {
		must.Do(t, l.Publish(t, p, "d", fmt.Sprint(i)))
	}
	// The server decides when the queue is full: it may accept a few more first.
	var err error
	for range 100 {
		if err = l.Publish(t, p, "d", "more"); err != nil {
			break
		}
	}
	if !errors.Is(err, driver.ErrOverloaded) {
		t.Errorf("a full queue: %v", err)
	}
}

func TestPrefetchBoundsClientWithoutAcks(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{}, s.Options)
	declared(t, c, 1)
	l := trial.NewLog()
	p := producerOf(t, c, l, "d")
	entered, let := make(chan struct{}, 10_000), make(chan struct{})
	l.OnDeliver = func([]driver.Delivery) error { entered <- struct{}{}; <-let; return nil }
	stop := l.Consume(t, c, driver.ConsumerSpec{Prefetch: 10, Settle: driver.SettleAuto})
	const n = 3000
	for i := range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(fmt.Sprint(i))})
	}
	<-entered
	l.Until(t, "all confirmed, and the consumer's room used up", func() bool { return len(l.Errs) == n && c.held("s") >= 10 })
	// The prefetch, plus one read of the client's buffer of 4 KiB.
	if now := c.held("s"); now > 10+4096/50 {
		t.Errorf("the client was let have %d messages", now)
	}
	close(let)
	l.Until(t, "all", func() bool { return len(l.Got) == n })
	stop()
	if len(l.Faults) > 0 {
		t.Errorf("faults: %v", l.Faults)
	}
}

func TestUnconfirmedPublishCompletesOnWrite(t *testing.T) {
	s := shared.Up(t, 1)
	l := trial.NewLog()
	c := open(t, driver.Run{Event: l.Event}, options(s, "confirm", "no"))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	l.Consume(t, c, driver.ConsumerSpec{})
	const n = 2000
	for i := range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(fmt.Sprint(i))})
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	l.Until(t, "all", func() bool { return len(l.Got) == n && len(l.Errs) == n })
	if i := slices.IndexFunc(l.Errs, func(err error) bool { return err != nil }); i >= 0 {
		t.Error(l.Errs[i])
	}
	// From here on, the sender gets no answer that its queues are gone.
	by(t, c, func(ch *client.Channel) error {
		at := mustPlace(t, c, "d")
		return errors.Join(ch.QueueUnbind(at.queue, "", at.rest, nil), ch.QueueUnbind(c.subscriptionQueue("s", "d", false), at.binding, at.exchange, nil))
	})
	if err := l.Publish(t, p, "d", "to nobody"); err != nil {
		t.Errorf("completed with %v", err)
	}
	l.Until(t, "an event", func() bool {
		return slices.ContainsFunc(l.Events, func(e string) bool { return strings.HasPrefix(e, "returned ") })
	})
}

func TestDeletedQueueEndsConsumerFailsProducer(t *testing.T) {
	s := shared.Up(t, 1)
	l := trial.NewLog()
	c := open(t, driver.Run{Event: l.Event}, options(s, "reconnect-wait", "5ms"))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
	ended := make(chan error, 1)
	go func() { ended <- x.Run(t.Context(), l) }()
	l.WaitReady(t)
	must.Do(t, c.Delete(t.Context(), driver.Destination{Name: "d"}))
	if err := <-ended; !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "404 NOT_FOUND") {
		t.Errorf("Run: %v", err)
	}
	if len(l.Faults) != 1 || !strings.Contains(l.Faults[0].Error(), "basic.cancel") {
		t.Errorf("faults: %v", l.Faults)
	}
	if err := l.Publish(t, p, "d", "to nowhere"); !errors.Is(err, driver.ErrDisconnected) || !strings.Contains(err.Error(), "404 NOT_FOUND") {
		t.Errorf("completed with %v", err)
	}
	l.Until(t, "a producer that gave up", func() bool {
		o := p.now.Now()
		o.mu.Lock()
		defer o.mu.Unlock()
		return errors.Is(o.final, driver.ErrUnsupported)
	})
	if err := l.Publish(t, p, "d", "to nowhere"); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("completed with %v", err)
	}
}

// TestStalledServerEndsProducer blocks writes until the server counts as gone.
func TestStalledServerEndsProducer(t *testing.T) {
	s := shared.Up(t, 1)
	l := trial.NewLog()
	c := open(t, driver.Run{}, options(s, "heartbeat", "1s"))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	trial.Stalled(t, s.Stall)
	const n = 1000
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 10_000)})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.Errs) != n {
		t.Fatalf("%d of %d completed", len(l.Errs), n)
	}
	for _, err := range l.Errs {
		if !errors.Is(err, driver.ErrClosed) && !errors.Is(err, driver.ErrDisconnected) {
			t.Fatalf("completed with %v", err)
		}
	}
	trial.Refuses(t, Definition(), s.Options, trial.Mistake{Name: "opening where nobody moves", Is: driver.ErrUnreachable})
}

// TestAMemoryAlarmIsAnAnswer opens a producer, and publishes, while the server blocks publishing
// connections.
func TestAMemoryAlarmIsAnAnswer(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"memory": "20MB"}})
	l := trial.NewLog()
	blocked := map[string]string{}
	run := driver.Run{Event: l.Event, Block: func(who, why string) {
		l.Lock()
		defer l.Unlock()
		blocked[who] = why
	}}
	c := open(t, run, options(s))
	declared(t, c, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := c.Producer(ctx, driver.ProducerSpec{Destinations: []string{"d"}, Largest: 100}, l)
	if !errors.Is(err, driver.ErrBlocked) || errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("a producer in a memory alarm: %v; want what the server says", err)
	}
	p := producerOf(t, c, l, "d")
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
	l.Until(t, "being blocked", func() bool { return strings.Contains(blocked["producer 0"], "memory") })
	if _, err := c.Facts(t.Context()); err != nil {
		t.Errorf("Facts in an alarm: %v", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.Errs) != 1 || !errors.Is(l.Errs[0], driver.ErrClosed) {
		t.Errorf("completed with %v", l.Errs)
	}
	l.Until(t, "the end of the connection", func() bool { return blocked["producer 0"] == "" })
}
