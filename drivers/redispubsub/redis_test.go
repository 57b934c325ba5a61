package redispubsub

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// open opens a run whose events go to l; options alternates names and values.
func open(t testing.TB, address string, l *trial.Log, options ...string) driver.Conn {
	t.Helper()
	return trial.Opened(t, Definition(), driver.Run{Event: l.Event}, map[string][]string{"address": {address}}, options...)
}

func subscribe(t *testing.T, c driver.Conn, l *trial.Log) {
	t.Helper()
	l.Consume(t, c, driver.ConsumerSpec{Settle: driver.SettleNone})
}

// until publishes numbered messages until one arrives.
func until(t *testing.T, p driver.Producer, f trial.Fates, l *trial.Log, label string) {
	t.Helper()
	i := 0
	if !trial.Eventually(func() bool {
		text := fmt.Sprintf("%s-%d", label, i)
		i++
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(text)})
		_ = f.Next(t)
		time.Sleep(20 * time.Millisecond)
		l.Lock()
		defer l.Unlock()
		return slices.Contains(l.Got, text)
	}) {
		t.Fatalf("no message arrives %s", label)
	}
}

func TestASubscriberOutlivesItsServer(t *testing.T) {
	s, l := redistest.Start(t), trial.NewLog()
	c := open(t, s.Address, l)
	subscribe(t, c, l)
	p, f := trial.Producer(t, c, "d")
	until(t, p, f, l, "before")
	trial.Must(t, s.Restart)
	until(t, p, f, l, "after")
	l.Until(t, "the fault and the reconnect", func() bool {
		return errors.Is(errors.Join(l.Faults...), driver.ErrDisconnected) && slices.Contains(l.Events, "reconnect consumer s 0")
	})
}

func TestTooSlowSubscriberIsReported(t *testing.T) {
	s, l := redistest.Start(t, "--client-output-buffer-limit", "pubsub", "1mb", "1mb", "1"), trial.NewLog()
	c := open(t, s.Address, l)
	hold := make(chan struct{})
	l.OnDeliver = func([]driver.Delivery) error { <-hold; return nil }
	subscribe(t, c, l)
	p, f := trial.Producer(t, c, "d")
	for range 300 {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 100<<10)})
	}
	for range 300 {
		_ = f.Next(t)
	}
	close(hold)
	l.Until(t, "the loss", func() bool { return errors.Is(errors.Join(l.Faults...), driver.ErrDisconnected) })
	until(t, p, f, l, "after")
}

func TestSilentServerIsAbandoned(t *testing.T) {
	s, l := redistest.Start(t), trial.NewLog()
	c := open(t, s.Address, l, "ping-interval", "1s") // a busy host does not answer at once
	subscribe(t, c, l)
	time.Sleep(3 * time.Second)
	l.Lock()
	early := errors.Join(l.Faults...)
	l.Unlock()
	if early != nil {
		t.Fatalf("a server that answers was given up: %v", early)
	}
	resume := trial.Stalled(t, s.Stall)
	l.Until(t, "the silence", func() bool { return len(l.Faults) > 0 })
	resume()
	p, f := trial.Producer(t, c, "d")
	until(t, p, f, l, "after")
}

func TestAPublishWithoutSubscribersIsConfirmed(t *testing.T) {
	l := trial.NewLog()
	c := open(t, redistest.Start(t).Address, l)
	facts, err := c.Facts(t.Context())
	if err != nil || facts.Confirms != (driver.Confirms{Guarantee: driver.Received}) || !strings.Contains(facts.Settings["client-output-buffer-limit"], "pubsub") {
		t.Errorf("facts: %+v, %v", facts, err)
	}
	p, f := trial.Producer(t, c, "d")
	if n := f.Confirmed(t, p, 1); n != 1 {
		t.Errorf("%d of 1 confirmed", n)
	}
}
