package pulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// try opens a Conn with options, after those of a system.
func try(t *testing.T, run driver.Run, options map[string][]string, more ...string) (driver.Conn, error) {
	t.Helper()
	c, err := trial.Open(t, Definition(), run, options, append([]string{"nack-delay", "100ms", "send-timeout", "2s"}, more...)...)
	if err == nil {
		t.Cleanup(func() { _ = c.Close(context.Background()) })
	}
	return c, err
}

// open opens a Conn, with a topic d that has that many partitions.
func open(t *testing.T, partitions int, options map[string][]string, more ...string) driver.Conn {
	t.Helper()
	c := must.Get(try(t, driver.Run{}, options, more...))(t)
	trial.Declare(t, c, driver.Destination{Name: "d", Partitions: partitions, Replicas: 1})
	return c
}

// put sends n messages with one of four keys each, and returns how many are confirmed.
func put(t *testing.T, p driver.Producer, f trial.Fates, n int) (confirmed int) {
	t.Helper()
	for i := range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Key: fmt.Appendf(nil, "key-%d", i%4), Payload: fmt.Appendf(nil, "%06d", i)})
	}
	for range n {
		if err := f.Next(t); err == nil {
			confirmed++
		} else {
			t.Log(err)
		}
	}
	return confirmed
}

// A taker records what consumers received.
type taker struct {
	ready sync.WaitGroup
	mu    sync.Mutex
	total int
	by    map[string]map[int]bool // consumers that received a scope's messages
	last  map[string]string       // last payload of a scope
	mixed bool                    // a scope's messages arrived out of order
}

// A taking is a taker for one consumer. Scope groups messages.
type taking struct {
	*taker
	consumer int
	scope    func(d driver.Delivery) string
}

func (s taking) Ready() { s.ready.Done() }
func (s taking) Deliver(ds []driver.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		at := s.scope(d)
		if s.by[at] == nil {
			s.by[at] = map[int]bool{}
		}
		s.by[at][s.consumer] = true
		s.mixed = s.mixed || string(d.Payload) < s.last[at]
		s.last[at] = string(d.Payload)
		s.total++
	}
	return nil
}
func (s taking) Settled([]driver.Delivery, error) {}
func (s taking) Fault(error)                      {}

// TestSubscriptionTypesDivideMessages has two consumers of one subscription of each type, and
// checks which of them receive the messages of a key, or of a partition.
func TestSubscriptionTypesDivideMessages(t *testing.T) {
	s := servers.Up(t, 1)
	byKey := func(d driver.Delivery) string { return string(d.Key) }
	byPartition := func(d driver.Delivery) string { return fmt.Sprint(d.Partition) }
	for _, tc := range []struct {
		kind       string
		partitions int
		scope      func(d driver.Delivery) string
		alone      bool // one consumer receives all of a scope, in order
	}{
		{shared, 1, byPartition, false},
		{failover, 4, byPartition, true},
		{keyShared, 1, byKey, true},
		{keyShared, 4, byKey, true},
	} {
		t.Run(fmt.Sprint(tc.kind, tc.partitions), func(t *testing.T) {
			// A consumer receives whole batches, and one batch may contain all messages.
			c := open(t, tc.partitions, s.Options, "subscription-type", tc.kind, "batching", "no")
			got := &taker{by: map[string]map[int]bool{}, last: map[string]string{}}
			got.ready.Add(2)
			for i := range 2 {
				spec := driver.ConsumerSpec{Index: i, Subscription: "s", Destinations: []string{"d"}, Prefetch: 20}
				trial.Run(t, c, spec, taking{got, i, tc.scope})
			}
			got.ready.Wait()
			p, f := trial.Producer(t, c, "d")
			const n = 400
			if confirmed := put(t, p, f, n); confirmed != n {
				t.Fatalf("%d of %d confirmed", confirmed, n)
			}
			if !trial.Eventually(func() bool { got.mu.Lock(); defer got.mu.Unlock(); return got.total >= n }) {
				t.Fatalf("%d of %d delivered", got.total, n)
			}
			got.mu.Lock()
			defer got.mu.Unlock()
			for scope, consumers := range got.by {
				if (len(consumers) == 1) != tc.alone {
					t.Errorf("messages of %q came to %d consumers", scope, len(consumers))
				}
			}
			if tc.alone && got.mixed {
				t.Error("not in order")
			}
		})
	}
}

// TestExclusiveSubscriptionRejectsSecondConsumer checks the driver's error and the broker's.
func TestExclusiveSubscriptionRejectsSecondConsumer(t *testing.T) {
	c := open(t, 1, servers.Up(t, 1).Options, "subscription-type", exclusive)
	spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}
	x := must.Get(c.Consumer(t.Context(), spec))(t)
	defer func() { _ = x.Close(context.Background()) }()
	spec.Index = 1
	for _, c := range []driver.Conn{c, driver.Inside(c)} {
		if _, err := c.Consumer(t.Context(), spec); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%T: %v", c, err)
		}
	}
}

func TestQuorums(t *testing.T) {
	for _, tc := range []struct {
		q      quorums
		synced bool
		want   driver.Confirms
	}{
		{quorums{3, 3, 2}, true, driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}},
		{quorums{3, 3, 2}, false, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS}},
		{quorums{3, 2, 2}, true, driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesAll, Stable: driver.StableFsync}},
		{quorums{3, 3, 1}, true, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableFsync}},
		{quorums{3, 2, 1}, false, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{quorums{}, true, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableFsync}},
	} {
		cfg := &Config{JournalSync: map[bool]string{true: "yes", false: "no"}[tc.synced]}
		if got := page.Confirmations.Of(cfg.known(tc.q)); got != tc.want {
			t.Errorf("%+v, synced %v: %+v, want %+v", tc.q, tc.synced, got, tc.want)
		}
	}
}

// TestExistingTopic uses another run's topics by name, and leaves no subscription on them.
func TestExistingTopic(t *testing.T) {
	s := servers.Up(t, 1)
	owner := open(t, 3, s.Options)
	name := driver.Inside(owner).(*conn).topics.All()["d"].name
	for _, name := range []string{name, strings.TrimPrefix(name, "persistent://public/default/")} {
		c := must.Get(try(t, driver.Run{Existing: true}, s.Options))(t)
		x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{name}}))(t)
		f := make(trial.Fates, 1)
		p := trial.Produce(t, c, f, name)
		p.Publish(t.Context(), &driver.Message{Destination: name, Payload: []byte("m")})
		if err := errors.Join(f.Next(t), p.Close(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		if n, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{name}); n != 1 || err != nil {
			t.Errorf("a backlog of %d, %v", n, err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	inside := driver.Inside(owner).(*conn)
	if left, err := inside.admin.subscriptions(t.Context(), inside.topics.All()["d"]); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	c := must.Get(try(t, driver.Run{Existing: true}, s.Options))(t)
	for _, name := range []string{"missing", "non-persistent://public/default/x", "persistent://public"} {
		trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{name}}, name, driver.ErrUnsupported, "")
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	trial.Refuses(t, Definition(), servers.Up(t, 1).Options,
		trial.Mistake{Name: "a web service by the broker's scheme", Set: []string{"admin", "pulsar://127.0.0.1:1"}, Option: "admin"},
		trial.Mistake{Name: "a namespace without a tenant", Set: []string{"namespace", "public"}, Option: "namespace"},
		trial.Mistake{Name: "a password without a user", Set: []string{"password", "wr0ng"}, Option: "password"},
		trial.Mistake{Name: "a token and a user", Set: []string{"user", "ann", "password", "wr0ng", "token", "wr0ng"}, Option: "token"},
		trial.Mistake{Name: "more acknowledgements than copies", Set: []string{"server.ack-quorum", "4"}, Option: "server.ack-quorum"},
		trial.Mistake{Name: "a namespace that is missing", Set: []string{"namespace", "public/missing"}, Is: driver.ErrUnsupported},
		trial.Mistake{Name: "TLS with a server that has none", Set: []string{"tls.insecure", "yes", "timeout", "1s"}, Is: driver.ErrUnreachable},
	)
}

// outlivesABookie kills one of a cluster's bookies: another replaces it.
func outlivesABookie(t *testing.T, s *served.System) {
	c := open(t, 4, s.Options, "send-timeout", "50s")
	f, err := c.Facts(t.Context())
	want := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesAll, Stable: driver.StableFsync}
	if err != nil || f.Confirms != want || f.Nodes != 3 || f.Settings["brokers"] != "2" {
		t.Errorf("%+v, %v; want %+v", f, err, want)
	}
	got := &taker{by: map[string]map[int]bool{}, last: map[string]string{}}
	got.ready.Add(1)
	trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, taking{got, 0, func(d driver.Delivery) string { return string(d.Payload) }})
	p, fates := trial.Producer(t, c, "d")
	if n := put(t, p, fates, 100); n != 100 {
		t.Fatalf("%d of 100 confirmed", n)
	}
	// Order: ZooKeeper, three bookies, two brokers.
	must.Do(t, syscall.Kill(s.Pids[3], syscall.SIGKILL))
	if n := put(t, p, fates, 200); n != 200 {
		t.Errorf("%d of 200 confirmed without a bookie", n)
	}
	if !trial.Eventually(func() bool { got.mu.Lock(); defer got.mu.Unlock(); return len(got.by) >= 200 }) {
		t.Errorf("%d of 200 payloads delivered", len(got.by))
	}
}

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), servers, "") }
