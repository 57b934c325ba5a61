package redispubsub

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
)

// patience bounds every wait, which ends as soon as it is over.
const patience = time.Minute

// taken is a sink that takes all, when hold lets it.
type taken struct {
	ready chan struct{}
	hold  chan struct{} // nil: nothing is held

	mu     sync.Mutex
	texts  []string
	faults []error
}

func (s *taken) Ready() { close(s.ready) }

func (s *taken) Deliver(ds []driver.Delivery) error {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		s.texts = append(s.texts, string(d.Payload[:min(len(d.Payload), 20)]))
	}
	return nil
}

func (s *taken) Settled([]driver.Delivery, error) {}

func (s *taken) Fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, err)
}

func (s *taken) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.faults...)
}

func (s *taken) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.texts, text)
}

// A free list of messages, which Complete fills.
type free chan *driver.Message

func (f free) Complete(m *driver.Message, _ error) { f <- m }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a run.
func open(t testing.TB, run driver.Run, cfg *Config) driver.Conn {
	t.Helper()
	if err := driver.Check(cfg); err != nil {
		t.Fatal(err)
	}
	c, err := driver.Open(within(t), Definition(), cfg, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func config(address string) *Config {
	cfg := Definition().New().(*Config)
	cfg.Address = []string{address}
	return cfg
}

// subscribe runs a consumer until the test ends it.
func subscribe(t *testing.T, c driver.Conn, s *taken) {
	t.Helper()
	x, err := c.Consumer(within(t), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleNone})
	if err != nil {
		t.Fatal(err)
	}
	s.ready = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = x.Close(context.Background())
	})
	select {
	case <-s.ready:
	case <-time.After(patience):
		t.Fatal("not ready")
	}
}

// publisher opens a producer of so many messages of a size.
func publisher(t testing.TB, c driver.Conn, n, size int) (driver.Producer, free) {
	t.Helper()
	f := make(free, n)
	for range n {
		f <- &driver.Message{Destination: "d", Payload: make([]byte, size)}
	}
	p, err := c.Producer(within(t), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: n}, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p, f
}

// until publishes numbered messages until one of them arrives.
func until(t *testing.T, p driver.Producer, f free, s *taken, label string) {
	t.Helper()
	i := 0
	eventually(t, "messages arrive "+label, func() bool {
		text := fmt.Sprintf("%s-%d", label, i)
		i++
		m := <-f
		m.Payload = []byte(text)
		p.Publish(context.Background(), m)
		_ = p.Flush(within(t))
		time.Sleep(20 * time.Millisecond)
		return s.has(text)
	})
}

func TestASubscriberOutlivesItsServer(t *testing.T) {
	s := redistest.Start(t)
	events := make(chan string, 100)
	c := open(t, driver.Run{ID: "r", Event: func(kind, text string) { events <- kind + " " + text }}, config(s.Address))
	sink := &taken{}
	subscribe(t, c, sink)
	p, f := publisher(t, c, 10, 20)
	until(t, p, f, sink, "before")
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, p, f, sink, "after")
	if err := sink.fault(); !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("the fault is: %v", err)
	}
	eventually(t, "the reconnect is told", func() bool {
		select {
		case e := <-events:
			return e == "reconnect consumer s 0"
		default:
			return false
		}
	})
}

func TestASubscriberTooSlowIsToldSo(t *testing.T) {
	s := redistest.Start(t, "--client-output-buffer-limit", "pubsub", "1mb", "1mb", "1")
	c := open(t, driver.Run{ID: "r"}, config(s.Address))
	sink := &taken{hold: make(chan struct{})}
	subscribe(t, c, sink)
	p, f := publisher(t, c, 100, 100<<10)
	for range 300 {
		p.Publish(within(t), <-f)
	}
	if err := p.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	close(sink.hold)
	eventually(t, "the loss is told", func() bool { return errors.Is(sink.fault(), driver.ErrDisconnected) })
	until(t, p, f, sink, "after")
}

func TestAServerThatFallsSilentIsGivenUp(t *testing.T) {
	s := redistest.Start(t)
	cfg := config(s.Address)
	cfg.PingInterval = time.Second // a crowded host does not answer at once
	c := open(t, driver.Run{ID: "r"}, cfg)
	sink := &taken{}
	subscribe(t, c, sink)
	time.Sleep(3 * cfg.PingInterval)
	if err := sink.fault(); err != nil {
		t.Fatalf("a server that answers was given up: %v", err)
	}
	resume, err := s.Stall()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	eventually(t, "the silence is told", func() bool { return sink.fault() != nil })
	resume()
	p, f := publisher(t, c, 10, 20)
	until(t, p, f, sink, "after")
}

func TestAPublishWithoutSubscribersIsConfirmed(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, config(s.Address))
	f, err := c.Facts(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if f.Confirms != (driver.Confirms{Guarantee: driver.Received}) || !strings.Contains(f.Settings["client-output-buffer-limit"], "pubsub") {
		t.Errorf("facts: %+v", f)
	}
	done := &confirmed{}
	p, err := c.Producer(within(t), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1}, done)
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(within(t), &driver.Message{Destination: "d", Payload: []byte("x")})
	if err := p.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	if done.err != nil || done.n != 1 {
		t.Errorf("%d completions, %v", done.n, done.err)
	}
	_ = p.Close(within(t))
}

type confirmed struct {
	n   int
	err error
}

func (c *confirmed) Complete(_ *driver.Message, err error) { c.n, c.err = c.n+1, err }

// perMessage is how many allocations one message may take: the client's for its
// command and the wait for the answer.
const perMessage = 3

func TestAPublishedMessageTakesFewAllocations(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, config(s.Address))
	p, f := publisher(t, c, 100, 1<<10)
	publish := func(n int) {
		for range n {
			p.Publish(context.Background(), <-f)
		}
		if err := p.Flush(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	publish(1000)
	const n = 5000
	per := math.Inf(1)
	// The least of a few: what a host that held the server up adds is not the path's.
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		publish(n)
		runtime.ReadMemStats(&after)
		per = min(per, float64(after.Mallocs-before.Mallocs)/n)
	}
	t.Logf("%.2f allocations a message", per)
	if per > perMessage+0.5 {
		t.Errorf("more than %d", perMessage)
	}
}

func TestAPingIntervalMustBePositive(t *testing.T) {
	cfg := config("127.0.0.1:1")
	cfg.PingInterval = 0
	if err := driver.Check(cfg); err == nil {
		t.Error("0 is taken")
	}
}
