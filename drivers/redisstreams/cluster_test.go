package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// parts is the partition count of the tests' destination: two for each of three masters.
const parts = 6

// clustered opens a run on a cluster.
func clustered(t *testing.T, s *served.System, run driver.Run, options map[string]string) *conn {
	t.Helper()
	all := map[string]string{"cluster": "true"}
	maps.Copy(all, options)
	return open(t, run, s.Address[0], all)
}

func declareParts(t *testing.T, c *conn) {
	t.Helper()
	trial.Declare(t, c, driver.Destination{Name: "d", Partitions: parts, Replicas: 1})
}

// partitions is a sink that counts deliveries by partition, and records each key's partitions.
type partitions struct {
	*trial.Log
	of   map[int32]int
	keys map[string]map[int32]bool
}

func (p *partitions) Deliver(ds []driver.Delivery) error {
	p.Lock()
	for _, d := range ds {
		p.of[d.Partition]++
		if d.Key == nil {
			continue
		}
		if p.keys[string(d.Key)] == nil {
			p.keys[string(d.Key)] = map[int32]bool{}
		}
		p.keys[string(d.Key)][d.Partition] = true
	}
	p.Unlock()
	return p.Log.Deliver(ds)
}

// TestEachNumberOfNodesFormsACluster starts the cluster sizes that the conformance suite lacks.
func TestEachNumberOfNodesFormsACluster(t *testing.T) {
	for _, shape := range []struct {
		recipe string
		nodes  int
	}{{"redis-cluster", 3}, {"valkey-cluster", 3}, {"valkey-cluster", 9}} {
		t.Run(fmt.Sprintf("%s of %d", shape.recipe, shape.nodes), func(t *testing.T) {
			formsACluster(t, served.Up(t, Definition(), shape.nodes, served.With{Recipe: shape.recipe}), shape.nodes)
		})
	}
}

// formsACluster fails unless there are that many servers and three masters lead partitions.
func formsACluster(t *testing.T, s *served.System, nodes int) {
	t.Helper()
	c := clustered(t, s, driver.Run{ID: "shape"}, nil)
	declareParts(t, c)
	f := trial.Facts(t, c)
	masters := map[string]bool{}
	for _, l := range f.Leaders {
		masters[l] = true
	}
	if f.Nodes != nodes || len(masters) != 3 {
		t.Errorf("%d nodes, and %d masters lead partitions; want %d and 3", f.Nodes, len(masters), nodes)
	}
}

// TestACluster runs on one cluster, of three masters with a replica each.
func TestACluster(t *testing.T) {
	s := served.Up(t, Definition(), 6, served.With{Recipe: "redis-cluster", Settings: map[string]string{"node-timeout": "1000"}})

	t.Run("needs the option", func(t *testing.T) {
		trial.Refuses(t, Definition(), trial.At(s.Address[:1], nil),
			trial.Mistake{Name: "Open without it", Is: driver.ErrUnsupported, Says: "set the option cluster"},
			trial.Mistake{Name: "a server of no cluster", Set: []string{"address", redistest.Start(t).Address, "cluster", "true"}, Is: driver.ErrUnsupported})
	})

	t.Run("has its partitions spread", func(t *testing.T) {
		c := clustered(t, s, driver.Run{ID: "spread"}, map[string]string{"wait-replicas": "1"})
		declareParts(t, c)
		if err := c.Declare(within(t), driver.Destination{Name: "d", Partitions: parts, Replicas: 1}); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if err := c.Declare(within(t), driver.Destination{Name: "d", Partitions: 2, Replicas: 1}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("with other partitions: %v", err)
		}
		f := trial.Facts(t, c)
		if d := cmp.Diff(driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll}, f.Confirms); d != "" || f.Nodes != 6 {
			t.Errorf("%d nodes, confirms %s", f.Nodes, d)
		}
		leads := map[string]int{}
		for _, l := range f.Leaders {
			leads[l]++
		}
		if len(f.Leaders) != parts || len(leads) != 3 {
			t.Errorf("leaders: %v", leads)
		}
		for _, single := range []bool{true, false} {
			sink := &partitions{Log: trial.NewLog(), of: map[int32]int{}, keys: map[string]map[int32]bool{}}
			stop := consumeWith(t, c, driver.ConsumerSpec{}, sink.Log, sink)
			f := trial.NewLog()
			p := produce(t, c, f)
			var ms []*driver.Message
			for i := range 10 * parts {
				ms = append(ms, messages(fmt.Sprintf("%v-%d", single, i), 1)...)
				if i%2 == 1 {
					ms[i].Key = fmt.Appendf(nil, "key-%d", i%7)
				}
			}
			if single {
				publish(t, p, ms)
			} else {
				for pair := range slices.Chunk(ms, 2) {
					p.(driver.BatchProducer).PublishBatch(within(t), pair)
				}
				must.Do(t, p.Flush(within(t)))
			}
			eventually(t, "all arrive", func() bool { return len(sink.Distinct()) == len(ms) })
			if n := len(f.Confirmed()); n != len(ms) {
				t.Errorf("%d of %d are confirmed", n, len(ms))
			}
			trial.Drained(t, c, "s", "d")
			if err := stop(); err != nil {
				t.Error(err)
			}
			for part := range int32(parts) {
				if sink.of[part] < 5 { // without a key alone
					t.Errorf("partition %d had %d messages: %v", part, sink.of[part], sink.of)
				}
			}
			for key, in := range sink.keys {
				if len(in) != 1 {
					t.Errorf("%s came from partitions %v", key, in)
				}
			}
		}
	})

	for _, most := range []int{2, 4} { // fewer than masters, fewer than streams
		t.Run(fmt.Sprintf("keeps to a prefetch of %d", most), func(t *testing.T) {
			c := clustered(t, s, driver.Run{ID: "few"}, nil)
			declareParts(t, c)
			high, sink := 0, trial.NewLog()
			sink.OnDeliver = func([]driver.Delivery) error {
				high = max(high, look(sink, func() int { return len(sink.Got) - sink.Settlements }))
				return nil
			}
			stop := consume(t, c, driver.ConsumerSpec{Prefetch: most}, sink)
			publish(t, produce(t, c, trial.NewLog()), messages("m", 60))
			eventually(t, "all arrive", func() bool { return len(sink.Distinct()) == 60 })
			if err := stop(); err != nil {
				t.Error(err)
			}
			if high < 1 || high > most {
				t.Errorf("%d entries were delivered and not settled, at most %d", high, most)
			}
		})
	}

	t.Run("has existing streams in any slots", func(t *testing.T) {
		c := clustered(t, s, driver.Run{ID: "own"}, nil)
		names := []string{"one", "two", "three"}
		for _, name := range names {
			link := must.Get(c.at(within(t), name))(t)
			must.Do(t, link.Do(within(t), "xadd", name, "*", "p", name).Err())
			t.Cleanup(func() { _ = link.Unlink(context.Background(), name).Err() })
		}
		e := clustered(t, s, driver.Run{ID: "own", Existing: true}, nil)
		sink := trial.NewLog()
		stop := sink.Consume(t, e, driver.ConsumerSpec{Destinations: names})
		eventually(t, "all arrive", func() bool { return len(sink.Distinct()) == len(names) })
		stop()
	})

	// These change the leaders, so they come last.
	for _, x := range []struct {
		name string
		take func(t *testing.T, c *conn, master string)
	}{
		{"continues when a master hands over to its replica", func(t *testing.T, c *conn, master string) {
			slots, err := raw(t, master).ClusterSlots(within(t)).Result() //nolint:staticcheck // SA1019: Redis 6 has no CLUSTER SHARDS
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range slots {
				if r.Nodes[0].Addr == master {
					must.Do(t, raw(t, r.Nodes[1].Addr).ClusterFailover(within(t)).Err())
				}
			}
		}},
		{"loses nothing that was replicated when a master is killed", func(t *testing.T, _ *conn, master string) {
			must.Do(t, syscall.Kill(s.Pids[slices.Index(s.Address, master)], syscall.SIGKILL))
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			events := make(chan string, 1000)
			c := clustered(t, s, driver.Run{ID: "f", Event: func(kind, text string) { events <- kind + " " + text }},
				map[string]string{"wait-replicas": "1", "wait-timeout": "200ms", "claim-after": "500ms"})
			declareParts(t, c)
			keys := must.Get(c.streams(within(t), "d"))(t)
			master := c.cluster.Master(redisconn.Slot(keys[0]))
			f, sink := trial.NewLog(), &partitions{Log: trial.NewLog(), of: map[int32]int{}, keys: map[string]map[int32]bool{}}
			stop := consumeWith(t, c, driver.ConsumerSpec{}, sink.Log, sink)
			p := produce(t, c, f)
			n := 0
			send := func(enough func() bool) {
				t.Helper()
				eventually(t, "messages are confirmed", func() bool {
					publish(t, p, messages(fmt.Sprintf("m%05d", n), 1))
					n++
					return enough()
				})
			}
			first := func() int { return look(sink.Log, func() int { return sink.of[0] }) } // of that master
			send(func() bool { return first() > 10 })
			x.take(t, c, master)
			had := first()
			moved := func() bool {
				return c.cluster.Refresh(within(t)) == nil && c.cluster.Master(redisconn.Slot(keys[0])) != master
			}
			send(func() bool { return n%20 == 0 && moved() })
			// The killed server's place has no replica: messages are stored, but not confirmed.
			had = max(had, first())
			send(func() bool { return first() > had+10 })
			want := f.Confirmed()
			eventually(t, "all that was confirmed has arrived", func() bool {
				have := sink.Distinct()
				return !slices.ContainsFunc(want, func(w string) bool { _, ok := slices.BinarySearch(have, w); return !ok })
			})
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
			if len(f.Errs) != n {
				t.Errorf("%d of %d messages completed", len(f.Errs), n)
			}
			kinds := map[string]bool{}
			for len(events) > 0 {
				kinds[<-events] = true
			}
			to := " to " + c.cluster.Master(redisconn.Slot(keys[0]))
			if !kinds["reconnect producer 0"+to] || !kinds["reconnect consumer s 0"+to] {
				t.Errorf("events: %v", kinds)
			}
		})
	}
}

// TestClusterGuaranteePrediction: three of weir's servers are masters.
func TestClusterGuaranteePrediction(t *testing.T) {
	for _, x := range []struct {
		nodes   int
		options map[string]string
		want    driver.Guarantee
	}{
		{3, nil, driver.Received},
		{3, map[string]string{"server.appendonly": "yes", "server.appendfsync": "always"}, driver.Persisted},
		{3, map[string]string{"wait-replicas": "1"}, driver.Received}, // no replicas
		{6, map[string]string{"wait-replicas": "1"}, driver.Replicated},
		{6, map[string]string{"wait-replicas": "2"}, driver.Received},
		{9, map[string]string{"wait-replicas": "1"}, driver.Replicated},
		{9, map[string]string{"wait-replicas": "2"}, driver.Replicated},
		{9, map[string]string{"wait-replicas": "3"}, driver.Received},
		{9, map[string]string{"server.appendonly": "yes", "server.appendfsync": "always"}, driver.Received}, // by one of three
		{9, map[string]string{"wait-replicas": "1", "wait-aof": "true", "server.appendonly": "yes"}, driver.Persisted},
		{9, map[string]string{"wait-replicas": "1", "wait-aof": "true", "server.appendonly": "yes", "server.appendfsync": "no"}, driver.Replicated},
	} {
		cfg := newConfig()
		cfg.Cluster = true
		for name, value := range x.options {
			must.Do(t, driver.SetOption(cfg, name, value))
		}
		if got, _ := Definition().PredictGuarantee(cfg, driver.Servers{Nodes: x.nodes, Replicas: 1}); got != x.want {
			t.Errorf("%d nodes with %v: %v, want %v", x.nodes, x.options, got, x.want)
		}
	}
}

func TestEntriesAreSplitInOrder(t *testing.T) {
	streams := func(counts ...int) (out []redis.XStream) {
		for i, n := range counts {
			s := redis.XStream{Stream: string(rune('a' + i))}
			for j := range n {
				s.Messages = append(s.Messages, redis.XMessage{ID: fmt.Sprint(j)})
			}
			out = append(out, s)
		}
		return out
	}
	for n := 1; n <= 7; n++ {
		var got string
		left := streams(1, 3, 0, 2)
		for len(left) > 0 {
			var part []redis.XStream
			part, left = split(left, n)
			had := 0
			for _, s := range part {
				for _, m := range s.Messages {
					got += s.Stream + m.ID
					had++
				}
			}
			if had > n || had == 0 {
				t.Errorf("%d entries in a part of %d", had, n)
			}
		}
		if got != "a0b0b1b2d0d1" {
			t.Errorf("by %d: %s", n, got)
		}
	}
}
