package natsstreaming

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// theirs connects as the user.
func theirs(t testing.TB, s *served.System) stan.Conn {
	t.Helper()
	sc := must.Get(stan.Connect("weir", "ann", stan.NatsURL(s.Address[0])))(t)
	t.Cleanup(func() { _ = sc.Close() })
	return sc
}

// groups returns the queue groups on a channel.
func groups(t testing.TB, s *served.System, name string) []string {
	t.Helper()
	m := monitorsAt(t, s.Options["monitor"]...)
	address := must.Get(m.serving(t.Context()))(t)
	ch := must.Get(m.channel(t.Context(), address, name, true))(t)
	var names []string
	for _, x := range ch.Subscriptions {
		names = append(names, x.Queue)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestExistingChannelReadFromGivenPosition begins where the suite does not: nothing is there yet.
func TestExistingChannelReadFromGivenPosition(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	must.Do(t, theirs(t, s).Publish("ann.orders", []byte("older")))
	c := open(t, driver.Run{ID: "r1", Existing: true}, s.Options)
	for name, from := range map[string]driver.Position{
		"default": {}, "beyond": {At: driver.AtOffset, Offset: "1000"}, "to come": {At: driver.AtTime, Time: time.Now().Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			b := trial.NewLog()
			stop := consume(t, c, driver.ConsumerSpec{Subscription: name, Destinations: []string{"ann.orders"}, From: from}, b)
			b.Send(t, produce(t, c, b, "ann.orders"), "ann.orders", name)
			b.Until(t, "the message sent last", func() bool { return has(b, name) })
			if err := stop(); err != nil || len(b.Faults) > 0 || len(b.Got) != 1 {
				t.Errorf("Run: %v, faults %v, got %q", err, b.Faults, b.Got)
			}
		})
	}
	for _, offset := range []string{"0", "-1", "x", "1-0", ""} {
		_, err := c.Consumer(t.Context(), driver.ConsumerSpec{
			Subscription: "bad", Destinations: []string{"ann.orders"}, From: driver.Position{At: driver.AtOffset, Offset: offset},
		})
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), `offset "`+offset+`"`) {
			t.Errorf("offset %q: %v", offset, err)
		}
	}
	must.Do(t, c.Close(t.Context()))
	if left := groups(t, s, "ann.orders"); len(left) > 0 {
		t.Errorf("groups left on the user's channel: %q", left)
	}
}

func TestDurableResumes(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	sc := theirs(t, s)
	// A user's group that has taken the first message.
	first := make(chan struct{})
	sub := must.Get(sc.QueueSubscribe("ann.orders", "team", func(*stan.Msg) { close(first) }, stan.DurableName("billing"), stan.DeliverAllAvailable()))(t)
	must.Do(t, sc.Publish("ann.orders", []byte("one")))
	<-first
	must.Do(t, sub.Close())
	must.Do(t, sc.Publish("ann.orders", []byte("two")))
	for i, tc := range []struct{ name, group string }{{"billing:team", "billing:team"}, {"new", "new:new"}, {"new", "new:new"}} {
		c := open(t, driver.Run{ID: "r" + string(rune('a'+i)), Existing: true}, s.Options)
		spec := driver.ConsumerSpec{Subscription: tc.name, Destinations: []string{"ann.orders"}, Durable: true}
		if i == 1 {
			spec.From.At = driver.AtEarliest
		}
		b := trial.NewLog()
		p := produce(t, c, b, "ann.orders")
		if i == 2 { // sent while no consumer is there
			b.Send(t, p, "ann.orders", "three")
		}
		stop := consume(t, c, spec, b)
		switch i {
		case 0:
			b.Until(t, "what the user's group had not had", func() bool { return has(b, "two") })
		case 1:
			b.Until(t, "all", func() bool { return has(b, "one") && has(b, "two") })
		case 2:
			b.Until(t, "what came meanwhile", func() bool { return has(b, "three") })
		}
		b.Until(t, "no backlog", func() bool {
			n, err := c.(driver.Backlogger).Backlog(t.Context(), tc.name, []string{"ann.orders"})
			return n == 0 && err == nil
		})
		if err := errors.Join(stop(), p.Close(t.Context()), c.Close(t.Context())); err != nil || len(b.Faults) > 0 {
			t.Errorf("%s: %v, faults %v", tc.name, err, b.Faults)
		}
		if want := []int{1, 2, 1}[i]; len(b.Got) != want {
			t.Errorf("%s, time %d: got %q, want %d messages", tc.name, i, b.Got, want)
		}
		if !slices.Contains(groups(t, s, "ann.orders"), tc.group) {
			t.Errorf("the group %s is gone", tc.group)
		}
	}
	c := open(t, driver.Run{ID: "rz", Existing: true}, s.Options)
	for _, name := range []string{":", "a:", ":b", ""} {
		spec := driver.ConsumerSpec{Subscription: name, Destinations: []string{"ann.orders"}, Durable: true}
		trial.NoConsumer(t, c, spec, "durable "+name, driver.ErrUnsupported, "")
	}
}

func TestInvalidChannelIsRejected(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	sc := theirs(t, s)
	must.Do(t, sc.Publish("there", []byte("x")))
	c := open(t, driver.Run{ID: "r1", Existing: true}, s.Options)
	for name, want := range map[string]string{
		"not.there": "there is no such channel", "a.*": "is not a channel", "a.>": "is not a channel", "a/b": "is not a channel",
		"a b": "is not a subject", ".a": "is not a subject",
	} {
		trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{name}}, "producer to "+name, driver.ErrUnsupported, want)
		trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"there", name}}, "consumer of "+name, driver.ErrUnsupported, want)
	}
	b := trial.NewLog()
	b.Send(t, produce(t, c, b, "there"), "there", "there it is")
}

// Without a monitor, the server is still asked, so that a stalled server does not count as drained.
func TestBacklogWithoutMonitor(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	delete(s.Options, "monitor")
	b := open(t, driver.Run{ID: "blind"}, s.Options).(driver.Backlogger)
	ask := func() (uint64, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return b.Backlog(ctx, "s", []string{"d"})
	}
	if n, err := ask(); n != 0 || err != nil {
		t.Errorf("Backlog: %d, %v", n, err)
	}
	trial.Stalled(t, s.Stall)
	if _, err := ask(); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("Backlog of a server that stands still: %v; want ErrUnreachable", err)
	}
}

// TestServerRemovesInactiveChannels uses a server that removes unused channels: Delete must leave
// no subscription that would keep one.
func TestServerRemovesInactiveChannels(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"max-inactivity": "1s"}})
	c, b := open(t, driver.Run{ID: "gone"}, s.Options, "d"), trial.NewLog()
	stop := consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, b)
	p := produce(t, c, b, "d")
	b.Send(t, p, "d", "x")
	b.Until(t, "the message", func() bool { return has(b, "x") })
	must.Do(t, errors.Join(stop(), p.Close(t.Context())))
	name := must.Get(inside(c).channel(t.Context(), "d"))(t)
	there := func() bool {
		_, err := inside(c).monitors.channel(context.Background(), s.Options["monitor"][0], name, false)
		if err != nil && !errors.Is(err, errNoChannel) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !there() {
		t.Fatal("the channel is gone before Delete: its group should keep it")
	}
	must.Do(t, c.Delete(t.Context(), trial.Plain("d")))
	if !trial.Eventually(func() bool { return !there() }) {
		t.Fatal("the channel is not removed")
	}
}
