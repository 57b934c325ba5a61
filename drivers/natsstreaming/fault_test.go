package natsstreaming

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// impatient returns options that let a test see quickly what otherwise takes minutes.
func impatient(s *served.System) map[string][]string {
	s.Options["session-ping-interval"] = []string{"1s"}
	s.Options["ack-wait"] = []string{"1s"}
	s.Options["ping-interval"] = []string{"1s"}
	return s.Options
}

// lossless publishes messages one by one until stop is called, and returns the confirmed ones.
func lossless(t *testing.T, p *producer, b *trial.Log, label string) (stop func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []string, 1)
	go func() {
		var sent []string
		for i := 0; ctx.Err() == nil; i++ {
			s := fmt.Sprintf("%s-%05d", label, i)
			p.Publish(context.Background(), &driver.Message{Destination: "d", Payload: []byte(s)})
			sent = append(sent, s)
			time.Sleep(2 * time.Millisecond)
		}
		done <- sent
	}()
	return func() []string {
		t.Helper()
		cancel()
		sent := <-done
		flush, end := context.WithTimeout(context.Background(), trial.Patience)
		defer end()
		if err := p.Flush(flush); err != nil {
			t.Fatalf("messages are not completed: %v", err)
		}
		b.Lock()
		defer b.Unlock()
		return slices.DeleteFunc(sent, func(s string) bool {
			err, completed := b.Done[s]
			if !completed {
				t.Errorf("message %s was never completed", s)
			}
			return err != nil
		})
	}
}

// all reports whether every payload was delivered.
func all(b *trial.Log, payloads []string) bool {
	got := map[string]bool{}
	for _, g := range b.Got {
		got[g] = true
	}
	return !slices.ContainsFunc(payloads, func(p string) bool { return !got[p] })
}

// confirmedSince waits for a confirmation after the call.
func confirmedSince(t *testing.T, b *trial.Log) {
	t.Helper()
	b.Lock()
	before := map[string]bool{}
	for p := range b.Done {
		before[p] = true
	}
	b.Unlock()
	b.Until(t, "a message confirmed again", func() bool {
		for p, err := range b.Done {
			if err == nil && !before[p] {
				return true
			}
		}
		return false
	})
}

// TestARestartIsSurvived restarts the server during a run: messages confirmed later are delivered,
// and with a file store earlier ones too.
func TestARestartIsSurvived(t *testing.T) {
	for _, store := range []string{"file", "memory"} {
		t.Run(store, func(t *testing.T) {
			s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"store": store}})
			b := trial.NewLog()
			c := open(t, driver.Run{ID: "restart", Event: b.Event}, impatient(s), "d")
			stop := consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, b)
			p := produce(t, c, b, "d")
			before := lossless(t, p, b, "before")
			confirmedSince(t, b)
			if store == "memory" { // lost messages cannot be delivered
				sent := before()
				b.Until(t, "all before", func() bool { return all(b, sent) })
				before = lossless(t, p, b, "lost")
			}
			trial.Must(t, s.Restart)
			confirmedSince(t, b)
			sent := before()
			after := lossless(t, p, b, "after")
			time.Sleep(100 * time.Millisecond)
			sent = append(sent, after()...)
			if store == "memory" {
				sent = slices.DeleteFunc(sent, func(p string) bool { return strings.HasPrefix(p, "lost") })
			}
			b.Until(t, "all that was confirmed", func() bool { return all(b, sent) })
			if len(b.Faults) == 0 || !errors.Is(b.Faults[0], driver.ErrDisconnected) {
				t.Errorf("faults: %v", b.Faults)
			}
			for _, who := range []string{"producer 0", "consumer s 0"} {
				if !slices.ContainsFunc(b.Events, func(e string) bool { return strings.HasPrefix(e, "reconnect "+who) }) {
					t.Errorf("no event of %s in %q", who, b.Events)
				}
			}
			if store == "memory" && !slices.Contains(b.Events, "reconnect consumer s 0: a new session") {
				t.Errorf("the consumer had no new session: %q", b.Events)
			}
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// TestAPauseIsSurvived stops the server for longer than the client's timeout for it.
func TestAPauseIsSurvived(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	b := trial.NewLog()
	c := open(t, driver.Run{ID: "pause", Event: b.Event}, impatient(s), "d")
	stop := consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, b)
	p := produce(t, c, b, "d")
	sending := lossless(t, p, b, "m")
	confirmedSince(t, b)
	resume := trial.Stalled(t, s.Stall)
	b.Until(t, "the lost connection", func() bool { return len(b.Faults) > 0 })
	resume()
	confirmedSince(t, b)
	sent := sending()
	b.Until(t, "all that was confirmed", func() bool { return all(b, sent) })
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestNothingHangsWithoutAServer kills the server permanently.
func TestNothingHangsWithoutAServer(t *testing.T) {
	s := start(t)
	b := trial.NewLog()
	c := open(t, driver.Run{ID: "killed"}, s.options(), "d")
	stop := consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, b)
	p := produce(t, c, b, "d")
	b.Send(t, p, "d", "before")
	trial.Must(t, s.Kill)
	b.Until(t, "the fault", func() bool { return len(b.Faults) > 0 })
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("after")})
	b.Until(t, "the message's end", func() bool { return b.Done["after"] != nil })
	if err := b.Done["after"]; !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("a message without a server: %v", err)
	}
	if _, err := c.Facts(t.Context()); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("facts: %v", err)
	}
	if _, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"}); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("backlog: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), trial.Patience)
	defer cancel()
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	_ = p.Close(ctx)
	if ctx.Err() != nil {
		t.Error("Close of the producer does not return")
	}
}

// TestAClosedProducerLeavesNothingOpen closes a producer whose server is stopped.
func TestAClosedProducerLeavesNothingOpen(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	b := trial.NewLog()
	c := open(t, driver.Run{ID: "close"}, s.Options, "d")
	p := produce(t, c, b, "d")
	trial.Stalled(t, s.Stall)
	ms := trial.Numbered("m", 50)
	for _, m := range ms {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(m)})
	}
	_ = p.Close(t.Context())
	for _, m := range ms {
		if err := b.Done[m]; !errors.Is(err, driver.ErrClosed) {
			t.Fatalf("message %s, under way at Close: %v", m, err)
		}
	}
}

// TestLeaderLossSurvived kills the leader of three: confirmed messages are available
// through any remaining node.
func TestLeaderLossSurvived(t *testing.T) {
	s := served.Up(t, Definition(), 3)
	b := trial.NewLog()
	impatient(s)["ack-timeout"] = []string{"5s"} // for messages without a leader
	c := open(t, driver.Run{ID: "leader", Event: b.Event}, s.Options)
	trial.Declare(t, c, driver.Destination{Name: "d", Partitions: 1, Replicas: 3})
	stops := []func() error{
		consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, b),
		consume(t, c, driver.ConsumerSpec{Subscription: "s", Index: 1, Destinations: []string{"d"}}, b),
	}
	p := produce(t, c, b, "d")
	sending := lossless(t, p, b, "m")
	confirmedSince(t, b)
	leader := must.Get(inside(c).monitors.serving(t.Context()))(t)
	pid := s.Pids[slices.Index(s.Options["monitor"], leader)]
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	b.Until(t, "another leader", func() bool {
		address, err := inside(c).monitors.serving(t.Context())
		return err == nil && address != leader
	})
	confirmedSince(t, b)
	sent := sending()
	b.Until(t, "all that was confirmed", func() bool { return all(b, sent) })
	f, err := c.Facts(t.Context())
	if err != nil || f.Nodes != 2 || f.Confirms.Guarantee != driver.Replicated {
		t.Errorf("facts with two of three: %+v, %v", f, err)
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}
