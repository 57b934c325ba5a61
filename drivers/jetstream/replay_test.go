package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

// receive opens a consumer, receives n messages, and closes it. It calls meanwhile, if not nil,
// when the consumer is ready.
func receive(t *testing.T, c driver.Conn, spec driver.ConsumerSpec, n int, meanwhile func()) []string {
	t.Helper()
	x := must.Get(c.Consumer(t.Context(), spec))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := endingAt(n, cancel)
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, l) }()
	if meanwhile != nil {
		l.WaitReady(t)
		meanwhile()
	}
	must.Do(t, errors.Join(<-ended, x.Close(t.Context())))
	return l.Got
}

// endingAt returns a sink that calls end after n messages.
func endingAt(n int, end func()) *trial.Log {
	l := trial.NewLog()
	l.OnDeliver = func([]driver.Delivery) error {
		l.Lock()
		defer l.Unlock()
		if len(l.Got) >= n {
			end()
		}
		return nil
	}
	return l
}

// anyOrder compares messages left by an ended consumer: those that the server was still sending are
// redelivered before those received.
func anyOrder() cmp.Option {
	return cmpopts.SortSlices(func(a, b string) bool { return a < b })
}

// numbered returns the payloads of a range of numbered messages.
func numbered(from, to int) []string {
	var ps []string
	for i := from; i <= to; i++ {
		ps = append(ps, fmt.Sprint(i))
	}
	return ps
}

// fill publishes a range of numbered messages, in order.
func fill(t *testing.T, js jetstream.JetStream, subject string, from, to int) {
	t.Helper()
	for _, p := range numbered(from, to) {
		must.Get(js.Publish(t.Context(), subject, []byte(p)))(t)
	}
}

func TestSubscriptionBeginsAtGivenPosition(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	js := theirs(t, s, map[string][]string{"log": {"log.>"}})
	stream := must.Get(js.Stream(t.Context(), "log"))(t)
	fill(t, js, "log.a", 1, 10)
	third := must.Get(stream.GetMsg(t.Context(), 3))(t)
	last := must.Get(stream.GetMsg(t.Context(), 10))(t)
	offset := func(o string) driver.Position { return driver.Position{At: driver.AtOffset, Offset: o} }
	since := func(t time.Time) driver.Position { return driver.Position{At: driver.AtTime, Time: t} }
	here := 10 // last number used, which equals the sequence
	for i, c := range []struct {
		name  string
		from  driver.Position
		first int // expected first message; 0: the first one sent once the consumer is ready
		more  int // number sent then
	}{
		{"default", driver.Position{}, 1, 1},
		{"offset of the next message", offset("12"), 0, 2},
		{"offset beyond the end: what comes before it is passed over", offset("16"), 16, 4},
		{"time of a message", since(third.Time), 3, 1},
		{"time before all times", since(time.Time{}), 1, 1},
		{"time after the tenth", since(last.Time.Add(time.Nanosecond)), 11, 1},
		{"time in the future: the next message, however early", since(time.Now().Add(time.Hour)), 0, 2},
	} {
		if c.first == 0 {
			c.first = here + 1
		}
		conn := existing(t, s)
		spec := driver.ConsumerSpec{Subscription: fmt.Sprintf("r1-s%d", i), Destinations: []string{"log"}, From: c.from}
		want := numbered(c.first, here+c.more)
		got := receive(t, conn, spec, len(want), func() { fill(t, js, "log.a", here+1, here+c.more) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		here += c.more
	}
	// Remove some messages.
	must.Do(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(6)))
	spec := driver.ConsumerSpec{Subscription: "purged", Destinations: []string{"log"}, From: offset("2")}
	if diff := cmp.Diff(numbered(6, here), receive(t, existing(t, s), spec, here-5, nil)); diff != "" {
		t.Errorf("offset before the earliest (-want +got):\n%s", diff)
	}
	// Of one subject.
	fill(t, js, "log.b", 1, 3)
	fill(t, js, "log.a", here+1, here+1)
	spec = driver.ConsumerSpec{Subscription: "filtered", Destinations: []string{"log.b"}, From: offset("3")}
	if diff := cmp.Diff(numbered(1, 3), receive(t, existing(t, s), spec, 3, nil)); diff != "" {
		t.Errorf("offset of another subject (-want +got):\n%s", diff)
	}
}

func TestInvalidPositionIsRejected(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	js := theirs(t, s, nil)
	conn := existing(t, s)
	must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "jobs", Subjects: []string{"jobs"}, Retention: jetstream.WorkQueuePolicy}))(t)
	for _, offset := range []string{"", "0", "-1", "x", "1.5", "18446744073709551616"} {
		spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"jobs"}, From: driver.Position{At: driver.AtOffset, Offset: offset}}
		trial.NoConsumer(t, conn, spec, "offset "+offset, driver.ErrUnsupported, fmt.Sprintf("offset %q", offset))
	}
	// A work queue delivers everything, acknowledged.
	for _, spec := range []driver.ConsumerSpec{
		{Subscription: "s", Destinations: []string{"jobs"}, From: driver.Position{At: driver.AtLatest}},
		{Subscription: "s", Destinations: []string{"jobs"}, Settle: driver.SettleNone},
	} {
		_, err := conn.Consumer(t.Context(), spec)
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "stream jobs") {
			t.Errorf("%+v: %v; want ErrUnsupported that names the stream", spec, err)
		}
	}
}

func TestDurableResumesAtFirstUnacked(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	for _, c := range []struct {
		settle  driver.Settle
		confirm string
	}{
		{driver.SettleEach, "false"},
		{driver.SettleEach, "true"},
		{driver.SettleBatch, "false"},
		{driver.SettleBatch, "true"},
	} {
		name := fmt.Sprint(c.settle, "_", c.confirm)
		js := theirs(t, s, map[string][]string{name: {name}})
		fill(t, js, name, 1, 20)
		// Redelivery through ack-wait would exceed the test's duration.
		options := map[string]string{"ack-wait": "1h", "ack-confirm": c.confirm}
		spec := driver.ConsumerSpec{Subscription: "billing", Durable: true, Destinations: []string{name}, Settle: c.settle, Prefetch: 5}
		first := existing(t, s, options)
		if diff := cmp.Diff(numbered(1, 5), receive(t, first, spec, 5, nil)); diff != "" {
			t.Errorf("%s: a durable that is new (-want +got):\n%s", name, diff)
		}
		must.Do(t, first.Close(t.Context()))
		// Like another process that requests a different start, without effect.
		spec.From.At, spec.Prefetch = driver.AtLatest, 0
		second := existing(t, s, options)
		// With settle batch, one client call may yield more than seven.
		got := receive(t, second, spec, 7, nil)
		next := 6 + len(got)
		if diff := cmp.Diff(numbered(6, next-1), got, anyOrder()); diff != "" || len(got) < 7 {
			t.Errorf("%s: a durable that is continued (-want +got):\n%s", name, diff)
		}
		drainedTo(t, second, spec, uint64(21-next))
		if next > 20 {
			continue
		}
		spec.Index = 1
		if diff := cmp.Diff(numbered(next, 20), receive(t, second, spec, 21-next, nil), anyOrder()); diff != "" {
			t.Errorf("%s: what the consumer had received and left (-want +got):\n%s", name, diff)
		}
	}
}

func TestRunEndsWhenServerIsSilent(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	d := trial.Plain("d")
	c := open(t, s, nil, d)
	fill(t, theirs(t, s, nil), "weir.t.d", 1, 10)
	for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch} {
		x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: settle.String(), Destinations: []string{"d"}, Settle: settle}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := trial.NewLog()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := x.Run(ctx, l); err != nil {
				t.Error(err)
			}
		}()
		l.Until(t, "10 messages", func() bool { return len(l.Got) >= 10 })
		resume := trial.Stalled(t, s.Stall)
		cancel()
		within(t, "the end of Run", ended)
		resume()
		if err := x.Close(t.Context()); err != nil {
			t.Logf("Close: %v", err) // the connection may have been closed
		}
	}
}
