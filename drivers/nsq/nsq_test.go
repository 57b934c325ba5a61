package nsq

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// publish publishes one message to d, and returns its result.
func publish(t testing.TB, p driver.Producer, l *trial.Log, payload string) error {
	t.Helper()
	return l.Publish(t, p, "d", payload)
}

func TestPageGuaranteesMatchServers(t *testing.T) {
	served.Guarantees(t, Definition(), nil, "")
	for _, size := range []string{"0", "10000"} {
		t.Run("mem-queue-size "+size, func(t *testing.T) {
			s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"mem-queue-size": size}})
			f, err := open(t, driver.Run{ID: "page"}, s.Options).Facts(t.Context())
			if err != nil || f.Confirms != (driver.Confirms{Guarantee: driver.Received}) || f.Settings["mem_queue_size"] != size {
				t.Errorf("facts: %+v, %v", f, err)
			}
			if f.Settings["sync_timeout"] != "2s" || f.Settings["msg_timeout"] != "1m0s" || f.Version != "1.3.0" {
				t.Errorf("facts: %+v", f)
			}
		})
	}
}

// TestInFlightMessagesAreInMemory: with mem-queue-size 0, nsqd confirms a message after writing it
// to a file. It removes the message from there to send it, and loses it when killed. With
// sync-every 1, it records in the file that a message was removed before it removes the next.
func TestInFlightMessagesAreInMemory(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"mem-queue-size": "0", "sync-every": "1"}})
	c := open(t, driver.Run{ID: "flight"}, s.Options)
	l := trial.NewLog()
	p := producerOf(t, c, l)
	release := make(chan struct{})
	defer close(release)
	l.OnDeliver = func([]driver.Delivery) error { <-release; return errors.New("not settled") }
	l.Consume(t, c, driver.ConsumerSpec{Prefetch: 2})
	for range 2 {
		must.Do(t, publish(t, p, l, "message"))
	}
	inside := driver.Inside(c).(*conn)
	topic := must.Get(inside.topic("d"))(t)
	count := func(at *conn) (queued, flying uint64) {
		all, err := at.stats(t.Context(), at.nodes[0], topic, "")
		if err != nil || len(all.Topics) != 1 || len(all.Topics[0].Channels) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		ch := all.Topics[0].Channels[0]
		return all.Topics[0].Depth + ch.Depth, ch.InFlight
	}
	l.Until(t, "two messages in flight", func() bool { _, flying := count(inside); return flying == 2 })
	trial.Must(t, s.KillAndRestart)
	if queued, flying := count(driver.Inside(open(t, driver.Run{ID: "flight"}, s.Options)).(*conn)); queued+flying > 1 {
		t.Errorf("%d messages: nsqd keeps what is in flight, and the page may promise more", queued+flying)
	}
}

func TestNackedAndTimedOutMessagesAreRedelivered(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	s.Options["msg-timeout"] = []string{"5s"} // messages settled at once must be in time on a busy host
	c := open(t, driver.Run{ID: "again"}, s.Options)
	l := trial.NewLog()
	p := producerOf(t, c, l)
	refused, late := false, false
	l.OnDeliver = func(ds []driver.Delivery) error {
		switch payload := string(ds[0].Payload); {
		case payload == "refused" && !refused:
			refused = true
			return errors.New("not now")
		case payload == "late" && !late:
			late = true
			if !takenBack(t, driver.Inside(c).(*conn)) {
				return errors.New("nsqd did not take it back")
			}
		}
		return nil
	}
	l.Consume(t, c, driver.ConsumerSpec{})
	must.Do(t, publish(t, p, l, "refused"))
	l.Until(t, "the refused message", func() bool { return len(l.Got) == 2 && len(l.Again) == 1 })
	must.Do(t, publish(t, p, l, "late"))
	l.Until(t, "the late message", func() bool { return len(l.Got) == 4 && len(l.Again) == 2 })
	l.Until(t, "the settlement that came too late", func() bool {
		return slices.ContainsFunc(l.Faults, func(err error) bool { return strings.Contains(err.Error(), "E_FIN_FAILED FIN failed ID not in flight") })
	})
}

// takenBack waits until nsqd has requeued a message of the only channel.
func takenBack(t *testing.T, c *conn) bool {
	topic, err := c.topic("d")
	if err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(trial.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var s struct {
			Topics []struct {
				Channels []struct {
					Timeouts int `json:"timeout_count"`
				}
			}
		}
		if err := c.api.Get(t.Context(), c.nodes[0].api, "/stats", url.Values{"format": {"json"}, "topic": {topic}}, &s); err != nil {
			t.Error(err)
			return false
		}
		if s.Topics[0].Channels[0].Timeouts > 0 {
			return true
		}
	}
	return false
}

// TestAnOlderVersionRuns checks that weir can install, start and reach a recipe's other versions.
func TestAnOlderVersionRuns(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Recipe: "nsq@1.2.1"})
	f, err := open(t, driver.Run{ID: "older"}, s.Options).Facts(t.Context())
	if err != nil || f.Version != "1.2.1" {
		t.Errorf("the server's version is %q, %v; want 1.2.1", f.Version, err)
	}
}

func TestSlowConsumerStaysConnected(t *testing.T) {
	s := startServer(t, "nsqd")
	c := open(t, driver.Run{ID: "slow"}, map[string][]string{"address": {s.tcp}, "heartbeat": {"2s"}})
	l := trial.NewLog()
	p := producerOf(t, c, l)
	entered := make(chan struct{}, 10)
	l.OnDeliver = func([]driver.Delivery) error {
		entered <- struct{}{}
		time.Sleep(5 * time.Second) // nsqd gives up a client after two silent intervals
		return nil
	}
	stop := l.Consume(t, c, driver.ConsumerSpec{})
	must.Do(t, publish(t, p, l, "x"))
	<-entered
	stop()
	if len(l.Got) != 1 || len(l.Faults) > 0 {
		t.Errorf("got %q, faults %v", l.Got, l.Faults)
	}
}

func TestTooLargeMessageKeepsConnection(t *testing.T) {
	s := startServer(t, "nsqd", "-max-msg-size=1000", "-max-body-size=2500")
	c := open(t, driver.Run{ID: "large"}, map[string][]string{"address": {s.tcp}})
	l := trial.NewLog()
	p := producerOf(t, c, l)
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"d"}, Largest: 1001}, "a producer of larger messages", driver.ErrTooLarge, "the server's max-msg-size is 1KB")
	batch := func(n, size int) {
		ms := make([]*driver.Message, n)
		for i := range ms {
			ms[i] = &driver.Message{Destination: "d", Payload: make([]byte, size)}
		}
		p.PublishBatch(t.Context(), ms)
	}
	batch(1, 1001)
	batch(3, 900)
	batch(2, 900)
	l.Until(t, "6 completions", func() bool { return len(l.Errs) == 6 })
	for i, err := range l.Errs {
		if (i < 4) != errors.Is(err, driver.ErrTooLarge) || i >= 4 && err != nil {
			t.Errorf("message %d completed with %v", i, err)
		}
	}
}

func TestExistingTopicsAreFoundAndPreserved(t *testing.T) {
	s := startServer(t, "nsqd")
	own := driver.Inside(open(t, driver.Run{ID: "own"}, map[string][]string{"address": {s.tcp}})).(*conn)
	must.Do(t, own.api.Post(t.Context(), own.nodes[0].api, "/topic/create", map[string][]string{"topic": {"orders"}}))
	c := open(t, driver.Run{ID: "run", Existing: true}, map[string][]string{"address": {s.tcp}})
	l := trial.NewLog()
	trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "run-s", Destinations: []string{"nosuch"}}, "a consumer of no topic", driver.ErrUnsupported, "")
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"nosuch"}}, "a producer to no topic", driver.ErrUnsupported, "")
	stop := l.Consume(t, c, driver.ConsumerSpec{Subscription: "run-s", Destinations: []string{"orders"}})
	p := trial.Produce(t, c, l, "orders")
	p.Publish(t.Context(), &driver.Message{Destination: "orders", Payload: []byte("x")})
	l.Until(t, "the message", func() bool { return len(l.Got) == 1 })
	channels := func() int {
		st, err := own.stats(t.Context(), own.nodes[0], "orders", "")
		if err != nil || len(st.Topics) != 1 {
			t.Fatalf("the topic: %+v, %v", st, err)
		}
		return len(st.Topics[0].Channels)
	}
	if n := channels(); n != 1 {
		t.Errorf("%d channels while running", n)
	}
	stop()
	if err := errors.Join(p.Close(t.Context()), c.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if n := channels(); n != 0 {
		t.Errorf("%d channels are left", n)
	}
}

func TestLateServerIsFoundThroughLookupd(t *testing.T) {
	k := startServer(t, "nsqlookupd")
	first := startServer(t, "nsqd", "-lookupd-tcp-address="+k.tcp)
	options := map[string][]string{"lookupd": {k.http}, "lookupd-poll": {"20ms"}, "reconnect-wait": {"5ms"}}
	// It must be listed before it can be found.
	for end := time.Now().Add(trial.Patience); ; time.Sleep(10 * time.Millisecond) {
		x, err := trial.Open(t, Definition(), driver.Run{ID: "probe"}, options)
		if err == nil {
			_ = x.Close(t.Context())
			break
		}
		if !strings.Contains(err.Error(), "lookupd lists no nsqd") || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	l := trial.NewLog()
	c := open(t, driver.Run{ID: "later", Event: l.Event}, options)
	p := producerOf(t, c, l)
	if p.node.address != first.tcp {
		t.Errorf("the producer is at %s, the one server at %s", p.node.address, first.tcp)
	}
	l.Consume(t, c, driver.ConsumerSpec{})
	must.Do(t, publish(t, p, l, "first"))
	second := startServer(t, "nsqd", "-lookupd-tcp-address="+k.tcp, "-node-id=7")
	there := open(t, driver.Run{ID: "later"}, map[string][]string{"address": {second.tcp}})
	at := trial.NewLog()
	q := producerOf(t, there, at)
	must.Do(t, publish(t, q, at, "second"))
	l.Until(t, "the messages of both", func() bool { return slices.Contains(l.Got, "first") && slices.Contains(l.Got, "second") })
	l.Until(t, "an event", func() bool {
		return slices.ContainsFunc(l.Events, func(e string) bool { return strings.HasPrefix(e, "rebalance") && strings.HasSuffix(e, second.tcp) })
	})
}
