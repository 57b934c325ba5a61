package nsq

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// patience bounds every wait.
const patience = time.Minute

// A log keeps what a consumer, a producer and a connection tell.
type log struct {
	mu        sync.Mutex
	got       []string
	repeated  int // of them, those that nsqd flagged
	faults    []error
	errs      []error
	events    []string
	ready     chan struct{}
	onDeliver func(payload string) error
}

func newLog() *log { return &log{ready: make(chan struct{})} }

func (l *log) Ready() { close(l.ready) }

func (l *log) Deliver(ds []driver.Delivery) error {
	var err error
	if l.onDeliver != nil {
		err = l.onDeliver(string(ds[0].Payload))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range ds {
		l.got = append(l.got, string(d.Payload))
		if d.Redelivered {
			l.repeated++
		}
	}
	return err
}

func (l *log) Settled([]driver.Delivery, error) {}

func (l *log) Fault(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, err)
}

func (l *log) Complete(_ *driver.Message, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *log) event(kind, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, kind+" "+text)
}

// until waits until ok, which is called with the log locked.
func (l *log) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		l.mu.Lock()
		done := ok()
		l.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Fatalf("%s: not within %v: got %d, faults %v, completed with %v, events %v", what, patience, len(l.got), l.faults, l.errs, l.events)
		}
	}
}

// consume runs a consumer of the destination d until the test ends, or stop is
// called.
func consume(t testing.TB, c driver.Conn, spec driver.ConsumerSpec, l *log) (stop func()) {
	t.Helper()
	if spec.Destinations == nil {
		spec.Destinations = []string{"d"}
	}
	if spec.Subscription == "" {
		spec.Subscription = "s"
	}
	x, err := c.Consumer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, l) }()
	select {
	case <-l.ready:
	case err := <-ended:
		cancel()
		t.Fatalf("Run: %v", err)
	case <-time.After(patience):
		cancel()
		t.Fatal("not ready")
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = x.Close(context.Background())
	})
	t.Cleanup(stop)
	return stop
}

// publish publishes one message and returns what it completed with.
func publish(t testing.TB, p driver.Producer, l *log, payload string) error {
	t.Helper()
	l.mu.Lock()
	n := len(l.errs)
	l.mu.Unlock()
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(payload)})
	l.until(t, "a completion", func() bool { return len(l.errs) > n })
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errs[n]
}

func TestThePageSaysWhatTheServerSays(t *testing.T) {
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

// TestWhatIsInFlightIsInMemory: with mem-queue-size 0 nsqd confirms a message when it has written it to
// a file. It takes it out of there to send it, and forgets it when it is killed. sync-every 1 has it
// note in the file that a message is out before it takes out the next.
func TestWhatIsInFlightIsInMemory(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"mem-queue-size": "0", "sync-every": "1"}})
	c := open(t, driver.Run{ID: "flight"}, s.Options)
	l := newLog()
	p := producerOf(t, c, l)
	release := make(chan struct{})
	defer close(release)
	l.onDeliver = func(string) error { <-release; return errors.New("not settled") }
	consume(t, c, driver.ConsumerSpec{Prefetch: 2}, l)
	for range 2 {
		if err := publish(t, p, l, "message"); err != nil {
			t.Fatal(err)
		}
	}
	inside := driver.Inside(c).(*conn)
	topic, err := inside.topic("d")
	if err != nil {
		t.Fatal(err)
	}
	count := func(at *conn) (queued, flying uint64) {
		all, err := at.stats(t.Context(), at.nodes[0], topic, "")
		if err != nil || len(all.Topics) != 1 || len(all.Topics[0].Channels) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		ch := all.Topics[0].Channels[0]
		return all.Topics[0].Depth + ch.Depth, ch.InFlight
	}
	l.until(t, "two messages in flight", func() bool { _, flying := count(inside); return flying == 2 })
	if err := s.KillAndRestart(); err != nil {
		t.Fatal(err)
	}
	if queued, flying := count(driver.Inside(open(t, driver.Run{ID: "flight"}, s.Options)).(*conn)); queued+flying > 1 {
		t.Errorf("%d messages: nsqd keeps what is in flight, and the page may promise more", queued+flying)
	}
}

func TestARefusedMessageAndOneNotSettledInTimeComeAgainAndAreFlagged(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	s.Options["msg-timeout"] = []string{"5s"} // what is settled at once must be in time on a crowded host
	c := open(t, driver.Run{ID: "again"}, s.Options)
	l := newLog()
	p := producerOf(t, c, l)
	refused, late := false, false
	l.onDeliver = func(payload string) error {
		switch {
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
	consume(t, c, driver.ConsumerSpec{}, l)
	if err := publish(t, p, l, "refused"); err != nil {
		t.Fatal(err)
	}
	l.until(t, "the refused message", func() bool { return len(l.got) == 2 && l.repeated == 1 })
	if err := publish(t, p, l, "late"); err != nil {
		t.Fatal(err)
	}
	l.until(t, "the late message", func() bool { return len(l.got) == 4 && l.repeated == 2 })
	l.until(t, "the settlement that came too late", func() bool {
		return slices.ContainsFunc(l.faults, func(err error) bool { return strings.Contains(err.Error(), "E_FIN_FAILED FIN failed ID not in flight") })
	})
}

// takenBack waits until nsqd has taken back a message of the one channel.
func takenBack(t *testing.T, c *conn) bool {
	topic, err := c.topic("d")
	if err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
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

// TestAnOlderVersionRuns shows that weir installs, starts and reaches a recipe's other
// versions like its own.
func TestAnOlderVersionRuns(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Recipe: "nsq@1.2.1"})
	f, err := open(t, driver.Run{ID: "older"}, s.Options).Facts(t.Context())
	if err != nil || f.Version != "1.2.1" {
		t.Errorf("the server's version is %q, %v; want 1.2.1", f.Version, err)
	}
}

func TestBacklogCountsWhatIsNotSettled(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, driver.Run{ID: "backlog"}, s.Options)
	l := newLog()
	p := producerOf(t, c, l)
	ask := func() uint64 {
		n, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	let := make(chan struct{})
	l.onDeliver = func(string) error { <-let; return nil }
	stop := consume(t, c, driver.ConsumerSpec{Prefetch: 2}, l)
	for i := range 5 {
		if err := publish(t, p, l, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	l.until(t, "a backlog of 5", func() bool { return ask() == 5 })
	close(let)
	l.until(t, "no backlog", func() bool { return ask() == 0 })
	stop()
	if len(l.got) != 5 {
		t.Errorf("%d messages came", len(l.got))
	}
}

func TestAKilledServerFailsMessagesAndBothSidesGoOnWithTheNext(t *testing.T) {
	s := startServer(t, "nsqd")
	l := newLog()
	c := open(t, driver.Run{ID: "killed", Event: l.event}, map[string][]string{"address": {s.tcp}, "reconnect-wait": {"5ms"}})
	p := producerOf(t, c, l)
	consume(t, c, driver.ConsumerSpec{}, l)
	if err := publish(t, p, l, "before"); err != nil {
		t.Fatal(err)
	}
	l.until(t, "the first message", func() bool { return len(l.got) == 1 })
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	l.until(t, "a fault", func() bool { return len(l.faults) > 0 })
	if err := publish(t, p, l, "while it is gone"); !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("completed with %v", err)
	}
	if _, err := c.Facts(t.Context()); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("facts of nobody: %v", err)
	}
	if _, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"}); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("backlog of nobody: %v", err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	l.until(t, "two connections", func() bool { return len(l.events) == 2 })
	if err := publish(t, p, l, "after"); err != nil {
		t.Error(err)
	}
	l.until(t, "the last message", func() bool { return slices.Contains(l.got, "after") })
	for _, err := range l.faults {
		if !errors.Is(err, driver.ErrDisconnected) {
			t.Errorf("fault: %v", err)
		}
	}
}

func TestCloseOfAProducerWhoseServerStandsStillEnds(t *testing.T) {
	s := startServer(t, "nsqd")
	c := open(t, driver.Run{ID: "still"}, map[string][]string{"address": {s.tcp}})
	l := newLog()
	p := producerOf(t, c, l)
	resume, err := s.Stall()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	const n = 100
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.errs) != n {
		t.Fatalf("%d of %d completed", len(l.errs), n)
	}
	for _, err := range l.errs {
		if !errors.Is(err, driver.ErrClosed) {
			t.Fatalf("completed with %v", err)
		}
	}
}

func TestAConsumerThatIsSlowStaysConnected(t *testing.T) {
	s := startServer(t, "nsqd")
	c := open(t, driver.Run{ID: "slow"}, map[string][]string{"address": {s.tcp}, "heartbeat": {"2s"}})
	l := newLog()
	p := producerOf(t, c, l)
	entered := make(chan struct{}, 10)
	l.onDeliver = func(string) error {
		entered <- struct{}{}
		time.Sleep(5 * time.Second) // nsqd gives up a client after two silences
		return nil
	}
	stop := consume(t, c, driver.ConsumerSpec{}, l)
	if err := publish(t, p, l, "x"); err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	if len(l.got) != 1 || len(l.faults) > 0 {
		t.Errorf("got %q, faults %v", l.got, l.faults)
	}
}

func TestWhatIsTooLargeIsRefusedAndTheConnectionStays(t *testing.T) {
	s := startServer(t, "nsqd", "-max-msg-size=1000", "-max-body-size=2500")
	c := open(t, driver.Run{ID: "large"}, map[string][]string{"address": {s.tcp}})
	l := newLog()
	p := producerOf(t, c, l)
	_, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, Largest: 1001}, l)
	if !errors.Is(err, driver.ErrTooLarge) || !strings.Contains(err.Error(), "the server's max-msg-size is 1KB") {
		t.Errorf("a producer of larger messages: %v", err)
	}
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
	l.until(t, "6 completions", func() bool { return len(l.errs) == 6 })
	for i, err := range l.errs {
		if (i < 4) != errors.Is(err, driver.ErrTooLarge) || i >= 4 && err != nil {
			t.Errorf("message %d completed with %v", i, err)
		}
	}
}

func TestExistingTopicsAreFoundAndLeftAsTheyWere(t *testing.T) {
	s := startServer(t, "nsqd")
	own := driver.Inside(open(t, driver.Run{ID: "own"}, map[string][]string{"address": {s.tcp}})).(*conn)
	if err := own.api.Post(t.Context(), own.nodes[0].api, "/topic/create", map[string][]string{"topic": {"orders"}}); err != nil {
		t.Fatal(err)
	}
	c := open(t, driver.Run{ID: "run", Existing: true}, map[string][]string{"address": {s.tcp}})
	l := newLog()
	if _, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "run-s", Destinations: []string{"nosuch"}}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a consumer of no topic: %v", err)
	}
	if _, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"nosuch"}}, l); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a producer to no topic: %v", err)
	}
	stop := consume(t, c, driver.ConsumerSpec{Subscription: "run-s", Destinations: []string{"orders"}}, l)
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders"}}, l)
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(t.Context(), &driver.Message{Destination: "orders", Payload: []byte("x")})
	l.until(t, "the message", func() bool { return len(l.got) == 1 })
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

func TestAServerThatComesLaterIsFoundThroughLookupd(t *testing.T) {
	k := startServer(t, "nsqlookupd")
	first := startServer(t, "nsqd", "-lookupd-tcp-address="+k.tcp)
	options := map[string][]string{"lookupd": {k.http}, "lookupd-poll": {"20ms"}, "reconnect-wait": {"5ms"}}
	// It has to be listed before it can be found.
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		x, err := tryOpen(t, driver.Run{ID: "probe"}, options)
		if err == nil {
			_ = x.Close(t.Context())
			break
		}
		if !strings.Contains(err.Error(), "lookupd lists no nsqd") || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	l := newLog()
	c := open(t, driver.Run{ID: "later", Event: l.event}, options)
	p := producerOf(t, c, l)
	if p.node.address != first.tcp {
		t.Errorf("the producer is at %s, the one server at %s", p.node.address, first.tcp)
	}
	consume(t, c, driver.ConsumerSpec{}, l)
	if err := publish(t, p, l, "first"); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, "nsqd", "-lookupd-tcp-address="+k.tcp, "-node-id=7")
	there := open(t, driver.Run{ID: "later"}, map[string][]string{"address": {second.tcp}})
	at := newLog()
	q := producerOf(t, there, at)
	if err := publish(t, q, at, "second"); err != nil {
		t.Fatal(err)
	}
	l.until(t, "the messages of both", func() bool { return slices.Contains(l.got, "first") && slices.Contains(l.got, "second") })
	l.until(t, "an event", func() bool {
		return slices.ContainsFunc(l.events, func(e string) bool { return strings.HasPrefix(e, "rebalance") && strings.HasSuffix(e, second.tcp) })
	})
}
