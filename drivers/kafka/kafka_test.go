//go:build unix

package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/kafkatest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// open connects with options and declares destinations.
func open(t testing.TB, address []string, run driver.Run, options map[string]string, ds ...driver.Destination) *conn {
	t.Helper()
	return driver.Inside(kafkatest.Open(t, Definition(), address, run, options, ds...)).(*conn)
}

// Names of package kafkatest, as used here.
type (
	fates  = kafkatest.Fates
	gather = trial.Log
)

func newGather() *gather { return trial.NewLog() }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	kafkatest.Eventually(t, what, ok)
}

func consume(t testing.TB, c *conn, spec driver.ConsumerSpec, g *gather) (stop func()) {
	t.Helper()
	return g.Consume(t, c, spec)
}

func publish(t testing.TB, c *conn, destination string, from, n int, key func(int) []byte) {
	t.Helper()
	kafkatest.Publish(t, c, destination, from, n, key)
}

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), shared, "") }

// TestOneBroker kills the broker last, because its tests share it.
func TestOneBroker(t *testing.T) {
	s := shared.Up(t, 1)
	t.Run("keys and partitioners decide partitions", func(t *testing.T) { keysAndPartitioners(t, s) })
	t.Run("a topic that exists is filled and read and stays", func(t *testing.T) { existing(t, s) })
	t.Run("a group begins where asked to", func(t *testing.T) { replays(t, s) })
	t.Run("a durable group continues where another process left it", func(t *testing.T) { durable(t, s) })
	t.Run("a name that is taken is refused", func(t *testing.T) { nameTaken(t, s) })
	t.Run("nothing is committed behind what was refused", func(t *testing.T) { refused(t, s) })
	t.Run("partitions change hands without duplicates", func(t *testing.T) { handedOver(t, s) })
	t.Run("what cannot be published to says why", func(t *testing.T) { unpublishable(t, s) })
	t.Run("deleted messages are counted", func(t *testing.T) { deleted(t, s) })
	t.Run("an aborted transaction is never seen", func(t *testing.T) { abortedUnseen(t, s) })
	t.Run("transactions hold as many messages as asked for", func(t *testing.T) { transactionSizes(t, s) })
	t.Run("what is not committed is waited for", func(t *testing.T) { openTransaction(t, s) })
	t.Run("a broker paused for too long aborts, or says that it may not have", func(t *testing.T) { transactionsThroughAPause(t, s) })
	t.Run("a killed broker leaves no doubt unsaid", func(t *testing.T) { transactionsThroughAKill(t, s) })
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
		partitions        int // with messages; 0: at most one per key
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
			eventually(t, "100 messages", func() bool { return g.All(func(g *gather) bool { return len(g.Deliveries) == 100 }) })
			of, used := map[string]map[int32]bool{}, map[int32]bool{}
			for _, d := range g.Deliveries {
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

func deleted(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "deleted"}, nil, driver.Destination{Name: "d", Partitions: 1})
	publish(t, c, "d", 0, 10, nil)
	topic := must.Get(kafkaconn.Topic(c.Run, "d"))(t)
	to := kadm.Offsets{}
	to.AddOffset(topic, 0, 4, -1)
	must.Get(kadm.NewClient(c.Link.Client).DeleteRecords(t.Context(), to))(t)
	f, err := c.Facts(t.Context())
	if err != nil || len(f.Discarded) != 1 || f.Discarded[0].Messages != 4 {
		t.Errorf("%+v, %v; want 4", f.Discarded, err)
	}
}

func existing(t *testing.T, s *served.System) {
	theirs := open(t, s.Address, driver.Run{ID: "theirs"}, nil)
	must.Do(t, theirs.Link.CreateTopic(t.Context(), "orders.v1", driver.Destination{Partitions: 2}, map[string]string{"max.message.bytes": "2000"}))
	t.Cleanup(func() { _ = theirs.Link.DeleteTopic(context.Background(), "orders.v1") })
	ours := open(t, s.Address, driver.Run{ID: "r1", Existing: true}, nil)
	publish(t, ours, "orders.v1", 0, 50, nil)
	g := newGather()
	stop := consume(t, ours, driver.ConsumerSpec{Subscription: "r1-s0", Destinations: []string{"orders.v1"}}, g)
	eventually(t, "50 messages", func() bool {
		return g.All(func(g *gather) bool { return len(g.Deliveries) == 50 && g.Settlements == 50 })
	})
	stop()
	f, err := ours.Facts(t.Context())
	if err != nil || f.Settings["max.message.bytes"] != "2000" {
		t.Errorf("facts %+v, %v", f, err)
	}
	trial.NoProducer(t, ours, driver.ProducerSpec{Destinations: []string{"orders.v1"}, Largest: 2000}, "a producer of messages larger than the topic takes", driver.ErrTooLarge, "")
	if err := ours.Close(t.Context()); err != nil {
		t.Error(err)
	}
	left, err := theirs.Link.Committed(t.Context(), "weir.r1.s0", "orders.v1")
	if err != nil || len(left) != 0 {
		t.Errorf("after Close the group has committed %v, %v", left, err)
	}
	if n, err := theirs.Link.Partitions(t.Context(), "orders.v1"); err != nil || n != 2 {
		t.Errorf("the topic has %d partitions, %v", n, err)
	}
}

func refused(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "no"}, nil, driver.Destination{Name: "d"})
	spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}
	g := newGather()
	g.Refuse = func(d driver.Delivery) bool { return string(d.Payload) == "000003" }
	stop := consume(t, c, spec, g)
	publish(t, c, "d", 0, 3, nil)
	eventually(t, "3 messages", func() bool { return g.All(func(g *gather) bool { return g.Settlements == 3 }) })
	publish(t, c, "d", 3, 1, nil)
	publish(t, c, "d", 4, 5, nil)
	eventually(t, "what is behind", func() bool { return g.All(func(g *gather) bool { return len(g.Deliveries) >= 8 }) })
	stop()
	again := newGather()
	consume(t, c, spec, again)
	eventually(t, "what was refused", func() bool { return again.All(func(g *gather) bool { return len(g.Deliveries) >= 6 }) })
	if again.Got[0] != "000003" {
		t.Errorf("the group begins again at %s; want 000003", again.Got[0])
	}
}

func handedOver(t *testing.T, s *served.System) {
	events := make(chan string, 100)
	run := driver.Run{ID: "hands", Event: func(kind, text string) { events <- kind + ": " + text }}
	c := open(t, s.Address, run, map[string]string{"partitioner": "round-robin"}, driver.Destination{Name: "d", Partitions: 6})
	f := &fates{}
	p := trial.ProduceBy(t, c, driver.ProducerSpec{Destinations: []string{"d"}}, f)
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
	send(2000) // while the second consumer joins
	stop := <-joined
	send(500)
	eventually(t, "one for the second consumer", func() bool {
		second.Lock()
		defer second.Unlock()
		return len(second.Got) > 0
	})
	stop() // leaves the group
	send(500)
	must.Do(t, errors.Join(p.Flush(t.Context()), p.Close(t.Context()), f.Wrong(sent)))
	count := func() int {
		return len(first.Got) + len(second.Got)
	}
	eventually(t, "all", func() bool {
		first.Lock()
		defer first.Unlock()
		return count() >= sent
	})
	seen := map[string]int{}
	for _, text := range append(append([]string{}, first.Got...), second.Got...) {
		seen[text]++
	}
	if len(seen) != sent || count() != sent {
		t.Errorf("%d of %d messages came, in %d deliveries", len(seen), sent, count())
	}
	if len(events) == 0 {
		t.Error("no event reports the rebalance")
	}
}

func unpublishable(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "x", Existing: true}, nil)
	for _, w := range []struct {
		name, destination, want string
	}{
		{"no such topic", "nobody", "there is no topic nobody"},
		{"no name of a topic", "a b", "is not a topic"},
		{"a name too long", strings.Repeat("x", 250), "is longer than 249"},
	} {
		trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{w.destination}}, w.name, driver.ErrUnsupported, w.want)
	}
}
