//go:build unix

package kmq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/kafkatest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), shared, "") }

// TestOneBroker kills the broker last, because its tests share it.
func TestOneBroker(t *testing.T) {
	s := shared.Up(t, 1)
	comesAgain(t, s, 1)
	t.Run("refused, as large as may be", func(t *testing.T) { theLarge(t, s) })
	t.Run("markers are written as KMQ writes them", func(t *testing.T) { theMarkers(t, s) })
	t.Run("what is slower than the time for it comes twice", func(t *testing.T) { tooSlow(t, s) })
	t.Run("a topic that exists is filled and read and stays", func(t *testing.T) { existing(t, s) })
	t.Run("what another process left comes again to a durable subscription", func(t *testing.T) { durable(t, s) })
	t.Run("what was removed meanwhile is reported", func(t *testing.T) { removed(t, s) })
	t.Run("what cannot be consumed says why", func(t *testing.T) { unconsumable(t, s) })
	t.Run("a paused broker holds all up and loses nothing", func(t *testing.T) { paused(t, s) })
	t.Run("a killed broker loses nothing", func(t *testing.T) { killed(t, s) })
}

func scanAll(t *testing.T, c *conn, topic string) (rs []*kgo.Record) {
	t.Helper()
	ends := must.Get(c.Link.Offsets(t.Context(), topic, kafkaconn.Latest))(t)
	if ends[0] == 0 {
		return nil
	}
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	must.Do(t, c.scan(t.Context(), from, func(r *kgo.Record) bool {
		rs = append(rs, r)
		return r.Offset+1 < ends[0]
	}))
	return rs
}

func theMarkers(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "marks"}, map[string]string{"redeliver-after": "5s"}, driver.Destination{Name: "d"})
	g := trial.NewLog()
	first := true
	g.Refuse = func(driver.Delivery) bool {
		refuse := first
		first = false
		return refuse
	}
	stop := g.Consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}})
	kafkatest.Publish(t, c, "d", 7, 1, func(int) []byte { return []byte("key") })
	kafkatest.Eventually(t, "the message", func() bool { return g.All(func(g *trial.Log) bool { return g.Settlements == 1 }) })
	stop()
	rs := scanAll(t, c, "weir.marks.d")
	if len(rs) != 2 {
		t.Fatalf("the topic holds %d messages; want the message twice", len(rs))
	}
	if r := rs[1]; string(r.Key) != "key" || string(r.Value) != "000007" || len(r.Headers) != 1 || r.Headers[0].Key != "kmq-redelivery-count" || string(r.Headers[0].Value) != "\x01" {
		t.Errorf("sent again: %q %q %v", r.Key, r.Value, r.Headers)
	}
	var got []string
	for _, r := range scanAll(t, c, "weir.marks.d.markers") {
		if len(r.Key) != 12 || binary.BigEndian.Uint32(r.Key) != 0 {
			t.Errorf("key % x", r.Key)
		}
		got = append(got, fmt.Sprintf("%d: % x", binary.BigEndian.Uint64(r.Key[4:]), r.Value))
	}
	// The first is ended by its redelivery, perhaps after the second's start.
	start := "01 00 00 00 00 00 00 13 88"
	if len(got) != 4 || got[0] != "0: "+start || !slices.Contains(got, "0: 00") || !slices.Contains(got, "1: "+start) || got[3] != "1: 00" && got[2] != "1: 00" {
		t.Errorf("markers %q", got)
	}
}

func tooSlow(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "slow"}, map[string]string{"redeliver-after": "1s"}, driver.Destination{Name: "d"})
	g := trial.NewLog()
	release := make(chan struct{})
	holding := true
	g.Refuse = func(driver.Delivery) bool {
		if holding {
			holding = false
			<-release
		}
		return false
	}
	g.Consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}})
	kafkatest.Publish(t, c, "d", 0, 1, nil)
	kafkatest.Eventually(t, "the message again", func() bool { return len(scanAll(t, c, "weir.slow.d")) == 2 })
	close(release)
	kafkatest.Eventually(t, "both", func() bool { return g.All(func(g *trial.Log) bool { return g.Settlements == 2 }) })
	if g.Deliveries[0].Redelivered || !g.Deliveries[1].Redelivered {
		t.Errorf("flags %v", g.Deliveries)
	}
}

func existing(t *testing.T, s *served.System) {
	theirs := open(t, s.Address, driver.Run{ID: "theirs"}, nil)
	must.Do(t, theirs.Link.CreateTopic(t.Context(), "orders.v1", driver.Destination{Partitions: 2}, nil))
	t.Cleanup(func() { _ = theirs.Link.DeleteTopic(context.Background(), "orders.v1") })
	ours := open(t, s.Address, driver.Run{ID: "r1", Existing: true}, nil)
	kafkatest.Publish(t, ours, "orders.v1", 0, 50, nil)
	g := trial.NewLog()
	stop := g.Consume(t, ours, driver.ConsumerSpec{Subscription: "r1-s0", Destinations: []string{"orders.v1"}})
	kafkatest.Eventually(t, "50 messages", func() bool {
		return g.All(func(g *trial.Log) bool { return len(g.Deliveries) == 50 && g.Settlements == 50 })
	})
	stop()
	const markers = "weir.r1.orders_2ev1.markers"
	if n, err := theirs.Link.Partitions(t.Context(), markers); err != nil || n != 2 {
		t.Errorf("%s has %d partitions, %v", markers, n, err)
	}
	if err := ours.Close(t.Context()); err != nil {
		t.Error(err)
	}
	left, err := theirs.Link.Committed(t.Context(), "weir.r1.s0", "orders.v1")
	if err != nil || len(left) != 0 {
		t.Errorf("after Close the group has committed %v, %v", left, err)
	}
	if _, err := theirs.Link.Partitions(t.Context(), markers); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("after Close the markers are there: %v", err)
	}
	if n, err := theirs.Link.Partitions(t.Context(), "orders.v1"); err != nil || n != 2 {
		t.Errorf("the topic has %d partitions, %v", n, err)
	}
}

// durable lets one process accept some messages and leave the rest, and another take over.
func durable(t *testing.T, s *served.System) {
	theirs := open(t, s.Address, driver.Run{ID: "theirs"}, nil)
	must.Do(t, theirs.Link.CreateTopic(t.Context(), "kept", driver.Destination{Partitions: 1}, nil))
	const group, markers = "nightly", "kept.nightly.markers"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(theirs.Link.DeleteGroups(ctx, group, markers+".redelivery"), theirs.Link.DeleteTopic(ctx, "kept"), theirs.Link.DeleteTopic(ctx, markers)); err != nil {
			t.Error(err)
		}
	})
	spec := driver.ConsumerSpec{Subscription: group, Durable: true, Destinations: []string{"kept"}, Prefetch: 1}
	after := map[string]string{"redeliver-after": "5s"}
	one := open(t, s.Address, driver.Run{ID: "one", Existing: true}, after)
	g := trial.NewLog()
	refused := 0
	g.Refuse = func(d driver.Delivery) bool {
		refuse := string(d.Payload) < "000004"
		if refuse {
			refused++
		}
		return refuse
	}
	stop := g.Consume(t, one, spec)
	kafkatest.Publish(t, one, "kept", 0, 10, nil)
	kafkatest.Eventually(t, "6 accepted", func() bool { return g.All(func(g *trial.Log) bool { return g.Settlements >= 6 && refused >= 4 }) })
	stop()
	n, err := one.Backlog(t.Context(), group, spec.Destinations)
	if err != nil || n < 4 {
		t.Errorf("backlog %d, %v; want the 4 that were refused", n, err)
	}
	if err := one.Close(t.Context()); err != nil {
		t.Error(err)
	}
	two := open(t, s.Address, driver.Run{ID: "two", Existing: true}, after)
	rest := trial.NewLog()
	stop = rest.Consume(t, two, spec)
	kafkatest.Eventually(t, "the 4 that were left", func() bool { return rest.All(func(g *trial.Log) bool { return g.Settlements >= 4 }) })
	stop()
	seen := map[string]bool{}
	for _, text := range rest.Got {
		if seen[text] = true; text >= "000004" {
			t.Errorf("%s came, which was settled", text)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%v came; want the 4 that were refused", rest.Got)
	}
	if n, err := two.Backlog(t.Context(), group, spec.Destinations); err != nil || n != 0 {
		t.Errorf("backlog %d, %v; want 0", n, err)
	}
}

// removed removes a rejected message from the log.
func removed(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "gone"}, map[string]string{"redeliver-after": "5s"}, driver.Destination{Name: "d"})
	g := trial.NewLog()
	g.Refuse = func(d driver.Delivery) bool { return string(d.Payload) == "000000" }
	g.Consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}})
	kafkatest.Publish(t, c, "d", 0, 1, nil)
	kafkatest.Eventually(t, "its start marker", func() bool { return len(scanAll(t, c, "weir.gone.d.markers")) > 0 })
	kafkatest.Publish(t, c, "d", 1, 1, nil)
	req := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = "weir.gone.d"
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = 1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	must.Get(req.RequestWith(t.Context(), c.Link))(t)
	kafkatest.Eventually(t, "the report", func() bool {
		return g.All(func(g *trial.Log) bool {
			return len(g.Faults) > 0 && strings.Contains(g.Faults[0].Error(), "removed before it could be sent again")
		})
	})
	trial.Drained(t, c, "s", "d")
}

func unconsumable(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "x", Existing: true}, nil)
	must.Do(t, c.Link.CreateTopic(t.Context(), "queue", driver.Destination{Partitions: 2}, nil))
	must.Do(t, c.Link.CreateTopic(t.Context(), "queue.taken.markers", driver.Destination{Partitions: 3}, nil))
	t.Cleanup(func() {
		for _, topic := range []string{"queue", "queue.taken.markers"} {
			_ = c.Link.DeleteTopic(context.Background(), topic)
		}
	})
	for _, w := range []struct {
		name string
		spec driver.ConsumerSpec
		want string
	}{
		{"no such topic", driver.ConsumerSpec{Subscription: "s", Destinations: []string{"nobody"}}, "there is no topic nobody"},
		{"no name of a topic", driver.ConsumerSpec{Subscription: "s", Destinations: []string{"a b"}}, "is not a topic"},
		{"markers that are something else", driver.ConsumerSpec{Subscription: "taken", Durable: true, Destinations: []string{"queue"}}, "queue.taken.markers of its markers 3"},
		{"no offset", driver.ConsumerSpec{Subscription: "s", Destinations: []string{"queue"}, From: driver.Position{At: driver.AtOffset, Offset: "x"}}, "is not an offset"},
	} {
		trial.NoConsumer(t, c, w.spec, w.name, driver.ErrUnsupported, w.want)
	}
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"queue"}, Largest: 2 << 20}, "a producer of messages larger than the topic takes", driver.ErrTooLarge, "")
}

// through sends messages one by one during fault, until everything confirmed has been delivered.
func through(t *testing.T, s *served.System, id string, fault func()) *trial.Log {
	t.Helper()
	c := open(t, s.Address, driver.Run{ID: id}, map[string]string{"redeliver-after": "5s"}, driver.Destination{Name: "d", Partitions: 2})
	g := trial.NewLog()
	g.Consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}})
	f := &kafkatest.Fates{}
	p := trial.ProduceBy(t, c, driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 5000}, f)
	over := make(chan struct{})
	go func() {
		defer close(over)
		fault()
	}()
	sent := 0
	for running := true; running && sent < 5000; sent++ {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: fmt.Appendf(nil, "%06d", sent)})
		select {
		case <-over:
			running = false
		case <-time.After(5 * time.Millisecond):
		}
	}
	<-over
	for last := sent + 50; sent < last; sent++ {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: fmt.Appendf(nil, "%06d", sent)})
	}
	kafkatest.Eventually(t, "all completed", func() bool { return f.Len() == sent })
	confirmed := map[string]bool{}
	f.Lock()
	for m, errs := range f.Errs {
		if len(errs) != 1 {
			t.Errorf("%s completed %d times", m.Payload, len(errs))
		}
		if errs[0] == nil {
			confirmed[string(m.Payload)] = true
		}
	}
	f.Unlock()
	if len(confirmed) < 50 {
		t.Errorf("%d of %d messages were confirmed", len(confirmed), sent)
	}
	kafkatest.Eventually(t, "all that was confirmed", func() bool {
		return g.All(func(g *trial.Log) bool {
			seen := map[string]bool{}
			for _, text := range g.Got {
				seen[text] = true
			}
			for text := range confirmed {
				if !seen[text] {
					return false
				}
			}
			return true
		})
	})
	trial.Drained(t, c, "s", "d")
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return g
}

func paused(t *testing.T, s *served.System) {
	through(t, s, "pause", func() {
		resume, err := s.Stall()
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(3 * time.Second)
		resume()
	})
}

func killed(t *testing.T, s *served.System) {
	g := through(t, s, "kill", func() {
		for _, pid := range s.Pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		if err := s.Restart(); err != nil {
			t.Error(err)
		}
	})
	if len(g.Faults) == 0 {
		t.Error("no fault tells that the broker was gone")
	}
}
