package jetstream

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

// theirs connects as the user, and creates streams by name and subjects.
func theirs(t *testing.T, s *natstest.Server, streams map[string][]string) jetstream.JetStream {
	t.Helper()
	nc := must.Get(nats.Connect(s.Address[0]))(t)
	t.Cleanup(nc.Close)
	js := must.Get(jetstream.New(nc))(t)
	for name, subjects := range streams {
		must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: subjects, MaxMsgSize: 1000}))(t)
	}
	return js
}

// A backlogger is the type returned by Open.
type backlogger interface {
	driver.Conn
	driver.Backlogger
}

// existing connects with options, for a run with existing destinations.
func existing(t *testing.T, s *natstest.Server, options ...map[string]string) backlogger {
	t.Helper()
	all := map[string]string{}
	for _, o := range options {
		maps.Copy(all, o)
	}
	return trial.Opened(t, Definition(), driver.Run{ID: "r1", Existing: true}, trial.At(s.Address, all)).(backlogger)
}

// within fails the test if c is not closed in time.
func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing for a minute", what)
	}
}

// drained waits until the backlog is 0: the server counts acknowledgements with a short delay.
func drained(t *testing.T, b driver.Backlogger, spec driver.ConsumerSpec) {
	t.Helper()
	drainedTo(t, b, spec, 0)
}

// drainedTo waits until the backlog is at most want.
func drainedTo(t *testing.T, b driver.Backlogger, spec driver.ConsumerSpec, want uint64) {
	t.Helper()
	var left uint64
	for range 12_000 {
		left = must.Get(b.Backlog(t.Context(), spec.Subscription, spec.Destinations))(t)
		if left == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("backlog %d after all was received; want %d", left, want)
}

func TestExistingStreamIsUsedAndPreserved(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	const n = 1000
	for _, c := range []struct {
		name, stream, destination string
		subjects                  []string
		settle                    driver.Settle
	}{
		{"by its name", "ext", "ext", []string{"ext"}, driver.SettleEach},
		{"by its name, another subject", "one", "one", []string{"events"}, driver.SettleBatch},
		{"by one of its subjects", "many", "many.b", []string{"many.a", "many.b"}, driver.SettleNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			js := theirs(t, s, map[string][]string{c.stream: c.subjects})
			conn := existing(t, s)
			f := make(trial.Fates, n)
			p := must.Get(conn.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{c.destination}, InFlight: 64, Largest: 100}, f))(t)
			if c.stream == "many" { // the other subject is not requested
				must.Get(js.Publish(t.Context(), "many.a", nil))(t)
			}
			for range n {
				p.Publish(t.Context(), &driver.Message{Destination: c.destination, Payload: []byte("x")})
			}
			must.Do(t, errors.Join(p.Flush(t.Context()), p.Close(t.Context())))
			for range n {
				must.Do(t, f.Next(t))
			}
			facts, err := conn.Facts(t.Context())
			if err != nil || facts.Settings["storage"] != "file" || facts.Confirms.Guarantee != driver.Received {
				t.Errorf("facts %+v, %v", facts, err)
			}
			spec := driver.ConsumerSpec{Subscription: "r1-s0", Destinations: []string{c.destination}, Settle: c.settle}
			x := must.Get(conn.Consumer(t.Context(), spec))(t)
			if left, err := conn.Backlog(t.Context(), "r1-s0", spec.Destinations); err != nil || left != n {
				t.Errorf("backlog %d, %v; want %d", left, err, n)
			}
			l := trial.NewLog()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- x.Run(ctx, l) }()
			l.Until(t, "all messages", func() bool { return len(l.Got) >= n })
			cancel()
			if err := errors.Join(<-ended, x.Close(t.Context())); err != nil {
				t.Error(err)
			}
			drained(t, conn, spec)
			if len(l.Got) != n {
				t.Errorf("%d received; want %d", len(l.Got), n)
			}
			stream := must.Get(js.Stream(t.Context(), c.stream))(t)
			for name := range stream.ConsumerNames(t.Context()).Name() {
				if !strings.HasPrefix(name, "weir-r1-s0") {
					t.Errorf("durable %q; want weir-r1-s0", name)
				}
			}
			if err := errors.Join(conn.Close(t.Context()), conn.Close(t.Context())); err != nil {
				t.Error(err)
			}
			info, err := stream.Info(t.Context())
			if err != nil || info.State.Msgs < n || info.State.Consumers != 0 {
				t.Errorf("afterwards %+v, %v; want %d messages and no consumer", info.State, err, n)
			}
		})
	}
}

func TestUnpublishableDestinationsAreExplained(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	js := theirs(t, s, map[string][]string{"two": {"two.a", "two.b"}, "wild": {"wild.*"}, "fits": {"fits"}})
	must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "mute", Subjects: []string{"mute"}, NoAck: true}))(t)
	conn := existing(t, s)
	for _, c := range []struct {
		name, destination, want string
		largest                 int
		is                      error
	}{
		{"two subjects", "two", "stream two has 2 subjects", 0, driver.ErrUnsupported},
		{"a wildcard", "wild", "stream wild takes the subjects wild.*", 0, driver.ErrUnsupported},
		{"a wildcard as a subject", "wild.>", "nothing is published at a wildcard", 0, driver.ErrUnsupported},
		{"several streams", "*.a", "several streams take this subject", 0, driver.ErrUnsupported},
		{"no acknowledgements", "mute", "acknowledges nothing", 0, driver.ErrUnsupported},
		{"nothing of the name", "nobody.here", "there is no stream", 0, driver.ErrUnsupported},
		{"no subject", "a b", "is not a subject", 0, driver.ErrUnsupported},
		{"more than the stream takes", "fits", "1001B, max_msg_size of stream fits is 1KB", 1001, driver.ErrTooLarge},
	} {
		trial.NoProducer(t, conn, driver.ProducerSpec{Destinations: []string{c.destination}, Largest: c.largest}, c.name, c.is, c.want)
	}
	d := trial.Plain("d")
	own := open(t, s, nil, d)
	trial.NoProducer(t, own, driver.ProducerSpec{Destinations: []string{"d"}, Largest: natsd.MaxPayload + 1}, "more than the server takes", driver.ErrTooLarge, driver.FormatSize(natsd.MaxPayload))
}

// TestDeletedStreamHasNoBacklog: a server with streams in memory was restarted, and reports that
// there is none.
func TestDeletedStreamHasNoBacklog(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	d := trial.Plain("a")
	conn := open(t, s, nil, d)
	spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"a"}, Prefetch: 8}
	x := must.Get(conn.Consumer(t.Context(), spec))(t)
	must.Do(t, errors.Join(x.Close(t.Context()), conn.Delete(t.Context(), d)))
	if n, err := conn.(driver.Backlogger).Backlog(t.Context(), "s", spec.Destinations); n != 0 || err != nil {
		t.Errorf("backlog: %d, %v; want 0", n, err)
	}
}

func TestReconnectIsAnEvent(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	events := make(chan string, 100)
	run := driver.Run{ID: "t", Event: func(kind, text string) { events <- kind + ": " + text }}
	c := trial.Opened(t, Definition(), run, trial.At(s.Address, map[string]string{"reconnect-wait": "10ms"}))
	trial.Declare(t, c, trial.Plain("d"))
	p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Index: 3, Destinations: []string{"d"}}, make(trial.Fates, 1)))(t)
	x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Index: 1, Destinations: []string{"d"}}))(t)
	trial.Must(t, s.Restart)
	want := map[string]bool{"reconnect: producer 3": true, "reconnect: consumer s 1": true, "reconnect: control": true}
	limit := time.After(time.Minute)
	for len(want) > 0 {
		select {
		case e := <-events:
			delete(want, e)
		case <-limit:
			t.Fatalf("missing %v", want)
		}
	}
	if err := errors.Join(p.Close(t.Context()), x.Close(t.Context()), c.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
