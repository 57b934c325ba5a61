//go:build unix

package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/internal/must"
)

// replays starts groups at each kind of position in a topic of 60 messages, 20 each at 1000, 2000
// and 3000 s after a time today: every five minutes, Kafka deletes messages older than seven days.
func replays(t *testing.T, s *served.System) {
	run := driver.Run{ID: "replay"}
	c := open(t, s.Address, run, nil, driver.Destination{Name: "d"}, driver.Destination{Name: "two", Partitions: 2})
	origin := time.Now().Add(-5000 * time.Second).Truncate(time.Second)
	at := func(seconds int) time.Time { return origin.Add(time.Duration(seconds) * time.Second) }
	for i, seconds := range []int{1000, 2000, 3000} {
		backdated(t, c, "d", i*20, 20, at(seconds))
	}
	for _, w := range []struct {
		name  string
		from  driver.Position
		first int // of 60; 60 is sent after opening
	}{
		{"default", driver.Position{}, 0},
		{"offset 0", driver.Position{At: driver.AtOffset, Offset: "0"}, 0},
		{"offset beyond the end", driver.Position{At: driver.AtOffset, Offset: "10000"}, 60},
		{"time of the first", driver.Position{At: driver.AtTime, Time: at(3000)}, 40},
		{"time after all", driver.Position{At: driver.AtTime, Time: at(4000)}, 60},
	} {
		t.Run(w.name, func(t *testing.T) {
			spec := driver.ConsumerSpec{Subscription: w.name, Destinations: []string{"d"}, From: w.from}
			x := must.Get(c.Consumer(t.Context(), spec))(t)
			must.Do(t, x.Close(t.Context()))
			// Another position has no effect: the subscription has begun.
			spec.From = driver.Position{At: driver.AtEarliest}
			if w.first == 0 {
				spec.From.At = driver.AtLatest
			}
			if n, err := c.Backlog(t.Context(), w.name, []string{"d"}); err != nil || n != uint64(60-w.first) {
				t.Errorf("backlog %d, %v; want %d", n, err, 60-w.first)
			}
			if w.first == 60 {
				return // the expected messages are sent below
			}
			g := newGather()
			consume(t, c, spec, g)
			eventually(t, "all from there", func() bool { return g.All(func(g *gather) bool { return len(g.Got) >= 60-w.first }) })
			if want := fmt.Sprintf("%06d", w.first); g.Got[0] != want || len(g.Got) != 60-w.first {
				t.Errorf("%d messages from %s on; want %d from %s on", len(g.Got), g.Got[0], 60-w.first, want)
			}
		})
	}
	publish(t, c, "d", 60, 5, nil)
	for _, name := range []string{"offset beyond the end", "time after all"} {
		g := newGather()
		consume(t, c, driver.ConsumerSpec{Subscription: name, Destinations: []string{"d"}}, g)
		eventually(t, "what was sent later", func() bool { return g.All(func(g *gather) bool { return len(g.Got) >= 5 }) })
		if g.Got[0] != "000060" || len(g.Got) != 5 {
			t.Errorf("%s: %v; want what was sent after the opening", name, g.Got)
		}
	}
	for name, from := range map[string]driver.Position{
		"0-1": {At: driver.AtOffset, Offset: "0-1"}, "-1": {At: driver.AtOffset, Offset: "-1"}, "no offset": {At: driver.AtOffset},
		"before 1970": {At: driver.AtTime, Time: time.Unix(-1, 0)},
	} {
		_, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "bad", Destinations: []string{"d"}, From: from})
		if !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v; want ErrUnsupported", name, err)
		}
	}
	// Offsets are per partition.
	publish(t, c, "two", 0, 40, func(i int) []byte { return fmt.Appendf(nil, "%d", i) })
	spec := driver.ConsumerSpec{Subscription: "each", Destinations: []string{"two"}, From: driver.Position{At: driver.AtOffset, Offset: "3"}}
	must.Get(c.Consumer(t.Context(), spec))(t)
	if n, err := c.Backlog(t.Context(), "each", []string{"two"}); err != nil || n != 40-2*3 {
		t.Errorf("two partitions of 40 messages from offset 3 on: backlog %d, %v; want 34", n, err)
	}
}

// backdated publishes messages as a producer with a clock at that time would.
func backdated(t *testing.T, c *conn, destination string, from, n int, at time.Time) {
	t.Helper()
	topic := must.Get(kafkaconn.Topic(c.Run, destination))(t)
	var rs []*kgo.Record
	for i := from; i < from+n; i++ {
		rs = append(rs, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%06d", i), Timestamp: at})
	}
	must.Do(t, c.Link.ProduceSync(t.Context(), rs...).FirstErr())
}

func durable(t *testing.T, s *served.System) {
	theirs := open(t, s.Address, driver.Run{ID: "theirs"}, nil)
	must.Do(t, theirs.Link.CreateTopic(t.Context(), "kept", driver.Destination{Partitions: 2}, nil))
	const group = "billing, nightly" // any text is a valid group name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(theirs.Link.DeleteGroups(ctx, group), theirs.Link.DeleteTopic(ctx, "kept")); err != nil {
			t.Error(err)
		}
	})
	spec := driver.ConsumerSpec{Subscription: group, Durable: true, Destinations: []string{"kept"}, From: driver.Position{At: driver.AtLatest}}
	sent := 10
	publish(t, asTheirs(t, s, 0), "kept", 0, sent, nil) // before the group begins
	for round := 1; round <= 3; round++ {
		c := asTheirs(t, s, round)
		if round == 1 {
			if x, err := c.Consumer(t.Context(), spec); err != nil {
				t.Fatal(err)
			} else if err := x.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		publish(t, c, "kept", sent, 20, nil)
		g := newGather()
		stop := consume(t, c, spec, g)
		eventually(t, "what was sent since", func() bool { return g.All(func(g *gather) bool { return len(g.Got) >= 20 }) })
		stop()
		for _, text := range g.Got {
			if text < fmt.Sprintf("%06d", sent) || len(g.Got) != 20 {
				t.Fatalf("round %d: %v; want the 20 from %d on", round, g.Got, sent)
			}
		}
		if n, err := c.Backlog(t.Context(), group, spec.Destinations); err != nil || n != 0 {
			t.Errorf("backlog %d, %v; want 0", n, err)
		}
		must.Do(t, c.Close(t.Context()))
		sent += 20
	}
	if left, err := theirs.Link.Committed(t.Context(), group, "kept"); err != nil || len(left) != 2 {
		t.Errorf("after Close the group has committed %v, %v; want it kept", left, err)
	}
}

// asTheirs connects for a run with the user's own topics.
func asTheirs(t *testing.T, s *served.System, n int) *conn {
	return open(t, s.Address, driver.Run{ID: fmt.Sprintf("run%d", n), Existing: true}, nil)
}

func nameTaken(t *testing.T, s *served.System) {
	theirs := open(t, s.Address, driver.Run{ID: "theirs"}, nil)
	topics := []string{"wanted", "other"}
	for _, topic := range topics {
		must.Do(t, theirs.Link.CreateTopic(t.Context(), topic, driver.Destination{Partitions: 1}, nil))
	}
	t.Cleanup(func() {
		for _, topic := range topics {
			_ = theirs.Link.DeleteTopic(context.Background(), topic)
		}
	})
	member := func(group, topic string) {
		cl := must.Get(kgo.NewClient(kgo.SeedBrokers(s.Address...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic)))(t)
		t.Cleanup(cl.Close)
	}
	member("of others", "other")
	member("of ours", "wanted")
	worker(t, theirs, "of another type")
	newer := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	newer.Group, newer.MemberID, newer.RebalanceTimeoutMillis = "of another protocol", "AAAAAAAAAAAAAAAAAAAAAQ", 60_000
	newer.SubscribedTopicNames, newer.Topics = []string{"wanted"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	eventually(t, "a member of the newer protocol", func() bool {
		resp := must.Get(newer.RequestWith(t.Context(), theirs.Link))(t)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil && !kerr.IsRetriable(err) {
			t.Fatal(err)
		}
		return resp.ErrorCode == 0
	})
	for _, group := range []string{"of others", "of ours"} {
		eventually(t, "members", func() bool {
			ok, err := theirs.Link.Shared(t.Context(), group, map[string]int{})
			return err == nil && ok
		})
	}
	c := asTheirs(t, s, 0)
	for group, says := range map[string]string{
		"of others":           "name taken by consumers of [other]",
		"of another type":     `name taken by members of the type "connect"`,
		"of another protocol": "name taken by a group of the type",
		"of ours":             "has members and has committed nothing of topic wanted",
	} {
		_, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: group, Durable: true, Destinations: []string{"wanted"}})
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want ErrUnsupported with %q", group, err, says)
		}
	}
}

// worker joins a group like Kafka Connect.
func worker(t *testing.T, c *conn, group string) {
	t.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = group, "connect", 45_000, 45_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "default", []byte{0}
	join.Protocols = append(join.Protocols, p)
	eventually(t, "a worker", func() bool {
		resp := must.Get(join.RequestWith(t.Context(), c.Link))(t)
		join.MemberID = resp.MemberID // requested again, with its ID
		if resp.ErrorCode != 0 {
			return false
		}
		share := kmsg.NewPtrSyncGroupRequest()
		share.Group, share.Generation, share.MemberID = group, resp.Generation, resp.MemberID
		share.ProtocolType, share.Protocol = kmsg.StringPtr("connect"), kmsg.StringPtr("default")
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = resp.MemberID, []byte{0}
		share.GroupAssignment = append(share.GroupAssignment, a)
		got, err := share.RequestWith(t.Context(), c.Link)
		return err == nil && got.ErrorCode == 0
	})
}
