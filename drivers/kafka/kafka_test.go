//go:build unix

package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// open connects with options and declares destinations.
func open(t testing.TB, address []string, run driver.Run, options map[string]string, ds ...driver.Destination) *conn {
	t.Helper()
	cfg := newConfig()
	if err := driver.SetOption(cfg, "address", address...); err != nil {
		t.Fatal(err)
	}
	for k, v := range options {
		if err := driver.SetOption(cfg, k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	run.Log = slog.New(slog.DiscardHandler)
	c, err := cfg.Open(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(c.Delete(ctx, ds...), c.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	if err := c.Declare(t.Context(), ds...); err != nil {
		t.Fatal(err)
	}
	return c.(*conn)
}

// theGuarantees sets what each row of the page's table of guarantees says, and asks
// the running servers.
func theGuarantees(t *testing.T, s *served.System, nodes int) {
	for i, c := range Definition().Confirmations {
		t.Run(c.When, func(t *testing.T) {
			options := map[string]string{}
			d := driver.Destination{Name: "g" + strconv.Itoa(i), Partitions: 2, Replicas: 1}
			for setting := range strings.SplitSeq(c.When, ", ") {
				name, value, _ := strings.Cut(setting, ": ")
				if name != "replication" {
					options[name] = value
					continue
				}
				n, err := strconv.Atoi(value[:1])
				if err != nil {
					t.Fatal(err)
				}
				d.Replicas = n
			}
			if d.Replicas > nodes {
				t.Skipf("%d replicas, %d nodes: the run on three covers it", d.Replicas, nodes)
			}
			f, err := open(t, s.Address, driver.Run{ID: "facts"}, options, d).Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Confirms, f.Confirms); diff != "" {
				t.Errorf("confirms (-page +servers):\n%s", diff)
			}
			if f.Settings["replication.factor"] != strconv.Itoa(d.Replicas) || f.Nodes != nodes || f.Name != "kafka" || f.Version != "v4.3" {
				t.Errorf("facts %+v", f)
			}
		})
	}
}

// fates records completions.
type fates struct {
	mu   sync.Mutex
	errs map[*driver.Message][]error
}

func (f *fates) Complete(m *driver.Message, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.errs == nil {
		f.errs = map[*driver.Message][]error{}
	}
	f.errs[m] = append(f.errs[m], err)
}

// wrong returns the errors, and the messages that completed not once.
func (f *fates) wrong(want int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	if len(f.errs) != want {
		errs = append(errs, fmt.Errorf("%d messages completed; want %d", len(f.errs), want))
	}
	for m, es := range f.errs {
		if len(es) != 1 || es[0] != nil {
			errs = append(errs, fmt.Errorf("%.20s completed with %v", m.Payload, es))
		}
	}
	return errors.Join(errs...)
}

// gather is a sink that keeps what it is given.
type gather struct {
	mu     sync.Mutex
	got    []driver.Delivery
	texts  []string
	faults []error
	failed int // settlements refused
	settle int
	ready  chan struct{}
	refuse func(driver.Delivery) bool
}

func newGather() *gather { return &gather{ready: make(chan struct{})} }

func (g *gather) Ready() { close(g.ready) }

func (g *gather) Deliver(ds []driver.Delivery) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range ds {
		if g.refuse != nil && g.refuse(d) {
			return errors.New("refused")
		}
	}
	for _, d := range ds {
		g.got = append(g.got, driver.Delivery{Partition: d.Partition, Key: append([]byte{}, d.Key...)})
		g.texts = append(g.texts, string(d.Payload))
	}
	return nil
}

func (g *gather) Settled(ds []driver.Delivery, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.failed += len(ds)
		return
	}
	g.settle += len(ds)
}

func (g *gather) Fault(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, err)
}

func (g *gather) all(f func(*gather) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return f(g)
}

// eventually fails the test where ok does not become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: not within 30 s", what)
}

// consume runs a consumer until stop is called, or the test ends.
func consume(t *testing.T, c *conn, spec driver.ConsumerSpec, g *gather) (stop func()) {
	t.Helper()
	x, err := c.Consumer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, g) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, x.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	eventually(t, "ready", func() bool {
		select {
		case <-g.ready:
			return true
		case err := <-ended:
			t.Fatalf("Run ended: %v", err)
		default:
		}
		return false
	})
	return stop
}

// publish sends n messages, each with its number, and waits for the confirmations.
func publish(t *testing.T, c *conn, destination string, from, n int, key func(int) []byte) {
	t.Helper()
	f := &fates{}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{destination}, InFlight: n, Largest: 100}, f)
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < from+n; i++ {
		m := &driver.Message{Destination: destination, Payload: fmt.Appendf(nil, "%06d", i)}
		if key != nil {
			m.Key = key(i)
		}
		p.Publish(t.Context(), m)
	}
	if err := errors.Join(p.Flush(t.Context()), p.Close(t.Context()), f.wrong(n)); err != nil {
		t.Fatal(err)
	}
}

// TestOneBroker shares one server: a start takes seconds.
func TestOneBroker(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	t.Run("the page says what the server says", func(t *testing.T) { theGuarantees(t, s, 1) })
	t.Run("keys and partitioners decide partitions", func(t *testing.T) { keysAndPartitioners(t, s) })
	t.Run("a topic that exists is filled and read and stays", func(t *testing.T) { existing(t, s) })
	t.Run("the backlog is what is not committed", func(t *testing.T) { backlog(t, s) })
	t.Run("a group begins where asked to", func(t *testing.T) { replays(t, s) })
	t.Run("a group continues at what is not settled", func(t *testing.T) { resumes(t, s) })
	t.Run("a durable group continues where another process left it", func(t *testing.T) { durable(t, s) })
	t.Run("a name that is taken is refused", func(t *testing.T) { nameTaken(t, s) })
	t.Run("nothing is committed behind what was refused", func(t *testing.T) { refused(t, s) })
	t.Run("partitions change hands without duplicates", func(t *testing.T) { handedOver(t, s) })
	t.Run("what cannot be published to says why", func(t *testing.T) { unpublishable(t, s) })
	t.Run("the server's own setting makes it persisted", func(t *testing.T) {
		s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"flush-messages": "1"}})
		f, err := open(t, s.Address, driver.Run{ID: "sync"}, nil, driver.Destination{Name: "d"}).Facts(t.Context())
		if err != nil || f.Confirms.Guarantee != driver.Persisted || f.Settings["flush.messages"] != "1" {
			t.Errorf("facts %+v, %v; want persisted", f, err)
		}
	})
}

func keysAndPartitioners(t *testing.T, s *served.System) {
	key := func(i int) []byte { return fmt.Appendf(nil, "key-%d", i%5) }
	for _, c := range []struct {
		name, partitioner string
		key               func(int) []byte
		partitions        int // that have messages; 0: one for each key at most
	}{
		{"round robin", "round-robin", nil, 4},
		{"round robin with keys", "round-robin", key, 0},
		{"sticky with keys", "sticky", key, 0},
		{"producer", "producer", key, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := driver.Run{ID: "keys"}
			conn := open(t, s.Address, run, map[string]string{"partitioner": c.partitioner}, driver.Destination{Name: "d", Partitions: 4})
			g := newGather()
			consume(t, conn, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, g)
			publish(t, conn, "d", 0, 100, c.key)
			eventually(t, "100 messages", func() bool { return g.all(func(g *gather) bool { return len(g.got) == 100 }) })
			of, used := map[string]map[int32]bool{}, map[int32]bool{}
			for _, d := range g.got {
				if of[string(d.Key)] == nil {
					of[string(d.Key)] = map[int32]bool{}
				}
				of[string(d.Key)][d.Partition], used[d.Partition] = true, true
			}
			if c.partitions > 0 && len(used) != c.partitions {
				t.Errorf("partitions %v; want %d", used, c.partitions)
			}
			if c.key == nil {
				return
			}
			for k, ps := range of {
				if len(ps) != 1 {
					t.Errorf("key %s is in partitions %v", k, ps)
				}
			}
		})
	}
}

func existing(t *testing.T, s *served.System) {
	theirs := open(t, s.Address, driver.Run{ID: "theirs"}, nil)
	if err := theirs.Link.CreateTopic(t.Context(), "orders.v1", driver.Destination{Partitions: 2}, map[string]string{"max.message.bytes": "2000"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Link.DeleteTopic(context.Background(), "orders.v1") })
	ours := open(t, s.Address, driver.Run{ID: "r1", Existing: true}, nil)
	publish(t, ours, "orders.v1", 0, 50, nil)
	g := newGather()
	stop := consume(t, ours, driver.ConsumerSpec{Subscription: "r1-s0", Destinations: []string{"orders.v1"}}, g)
	eventually(t, "50 messages", func() bool { return g.all(func(g *gather) bool { return len(g.got) == 50 && g.settle == 50 }) })
	stop()
	f, err := ours.Facts(t.Context())
	if err != nil || f.Settings["max.message.bytes"] != "2000" {
		t.Errorf("facts %+v, %v", f, err)
	}
	if _, err := ours.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"orders.v1"}, Largest: 2000}, &fates{}); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a producer of messages larger than the topic takes: %v", err)
	}
	if err := ours.Close(t.Context()); err != nil {
		t.Error(err)
	}
	left, err := theirs.Link.Committed(t.Context(), "weir.r1.s0", "orders.v1", 2)
	if err != nil || len(left) != 0 {
		t.Errorf("after Close the group has committed %v, %v", left, err)
	}
	if n, err := theirs.Link.Partitions(t.Context(), "orders.v1"); err != nil || n != 2 {
		t.Errorf("the topic has %d partitions, %v", n, err)
	}
}

func backlog(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "lag"}, nil, driver.Destination{Name: "a", Partitions: 3}, driver.Destination{Name: "b"})
	spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"a", "b"}}
	publish(t, c, "a", 0, 30, nil)
	publish(t, c, "b", 0, 12, nil)
	if n, err := c.Backlog(t.Context(), "s", spec.Destinations); err != nil || n != 42 {
		t.Errorf("backlog of nobody %d, %v; want 42", n, err)
	}
	for _, settle := range []driver.Settle{driver.SettleBatch, driver.SettleEach, driver.SettleAuto} {
		spec.Subscription, spec.Settle = settle.String(), settle
		g := newGather()
		stop := consume(t, c, spec, g)
		eventually(t, "42 messages", func() bool { return g.all(func(g *gather) bool { return len(g.got) == 42 }) })
		stop()
		if n, err := c.Backlog(t.Context(), spec.Subscription, spec.Destinations); err != nil || n != 0 {
			t.Errorf("settle %v: backlog %d, %v; want 0", settle, n, err)
		}
	}
}

func refused(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "no"}, nil, driver.Destination{Name: "d"})
	spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}
	g := newGather()
	g.refuse = func(d driver.Delivery) bool { return string(d.Payload) == "000003" }
	stop := consume(t, c, spec, g)
	publish(t, c, "d", 0, 3, nil)
	eventually(t, "3 messages", func() bool { return g.all(func(g *gather) bool { return g.settle == 3 }) })
	publish(t, c, "d", 3, 1, nil)
	publish(t, c, "d", 4, 5, nil)
	eventually(t, "what is behind", func() bool { return g.all(func(g *gather) bool { return len(g.got) >= 8 }) })
	stop()
	again := newGather()
	consume(t, c, spec, again)
	eventually(t, "what was refused", func() bool { return again.all(func(g *gather) bool { return len(g.got) >= 6 }) })
	if again.texts[0] != "000003" {
		t.Errorf("the group begins again at %s; want 000003", again.texts[0])
	}
}

func handedOver(t *testing.T, s *served.System) {
	events := make(chan string, 100)
	run := driver.Run{ID: "hands", Event: func(kind, text string) { events <- kind + ": " + text }}
	c := open(t, s.Address, run, map[string]string{"partitioner": "round-robin"}, driver.Destination{Name: "d", Partitions: 6})
	f := &fates{}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}}, f)
	if err != nil {
		t.Fatal(err)
	}
	spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}
	first, second := newGather(), newGather()
	consume(t, c, spec, first)
	sent := 0
	send := func(n int) {
		for range n {
			p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: fmt.Appendf(nil, "%06d", sent)})
			if sent++; sent%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	send(500)
	spec.Index = 1
	joined := make(chan func(), 1)
	go func() { joined <- consume(t, c, spec, second) }()
	send(2000) // while the second joins
	stop := <-joined
	send(500)
	stop() // and leaves
	send(500)
	if err := errors.Join(p.Flush(t.Context()), p.Close(t.Context()), f.wrong(sent)); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		return len(first.texts) + len(second.texts)
	}
	eventually(t, "all", func() bool {
		first.mu.Lock()
		defer first.mu.Unlock()
		return count() >= sent
	})
	seen := map[string]int{}
	for _, text := range append(append([]string{}, first.texts...), second.texts...) {
		seen[text]++
	}
	if len(seen) != sent || count() != sent {
		t.Errorf("%d of %d messages came, in %d deliveries", len(seen), sent, count())
	}
	if len(second.texts) == 0 {
		t.Error("the second consumer was given nothing")
	}
	if len(events) == 0 {
		t.Error("no event tells of the rebalance")
	}
}

func unpublishable(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "x", Existing: true}, nil)
	for _, w := range []struct {
		name, destination, want string
	}{
		{"no such topic", "nobody", "there is no topic nobody"},
		{"no name of a topic", "a b", "is no topic"},
		{"a name too long", strings.Repeat("x", 250), "is longer than 249"},
	} {
		_, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{w.destination}}, &fates{})
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), w.want) {
			t.Errorf("%s: %v; want ErrUnsupported with %q", w.name, err, w.want)
		}
	}
}
