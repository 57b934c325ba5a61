package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// look returns f's result, called under the lock.
func look[T any](l *trial.Log, f func() T) T {
	l.Lock()
	defer l.Unlock()
	return f()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !trial.Eventually(ok) {
		t.Fatalf("not within %v: %s", trial.Patience, what)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), trial.Patience)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, run driver.Run, address string, options map[string]string) *conn {
	t.Helper()
	return driver.Inside(trial.Opened(t, Definition(), run, trial.At([]string{address}, options))).(*conn)
}

func declare(t *testing.T, c *conn) {
	t.Helper()
	trial.Declare(t, c, trial.Plain("d"))
}

func produce(t *testing.T, c *conn, f driver.Completer) driver.Producer {
	t.Helper()
	return trial.Produce(t, c, f, "d")
}

// consume runs a consumer until the end of the test or stop.
func consume(t *testing.T, c *conn, spec driver.ConsumerSpec, l *trial.Log) (stop func() error) {
	t.Helper()
	return consumeWith(t, c, spec, l, l)
}

// consumeWith is consume with a sink that wraps l.
func consumeWith(t *testing.T, c *conn, spec driver.ConsumerSpec, l *trial.Log, sink driver.Sink) (stop func() error) {
	t.Helper()
	spec.Subscription, spec.Destinations = "s", []string{"d"}
	_, stop = trial.Run(t, c, spec, sink)
	l.WaitReady(t)
	return stop
}

// refusing returns a sink that rejects some messages.
func refusing(which func(d driver.Delivery) bool) *trial.Log {
	l := trial.NewLog()
	l.Refuse = which
	return l
}

func messages(label string, n int) []*driver.Message {
	ms := make([]*driver.Message, n)
	for i := range ms {
		ms[i] = &driver.Message{Destination: "d", Payload: fmt.Appendf(nil, "%s-%05d", label, i)}
	}
	return ms
}

func publish(t *testing.T, p driver.Producer, ms []*driver.Message) {
	t.Helper()
	for _, m := range ms {
		p.Publish(within(t), m)
	}
	must.Do(t, p.Flush(within(t)))
}

func TestLostGroupsEndSubscription(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, s.Address, nil)
	declare(t, c)
	sink, f := trial.NewLog(), trial.NewLog()
	stop := consume(t, c, driver.ConsumerSpec{}, sink)
	p := produce(t, c, f)
	must.Do(t, c.link.FlushAll(within(t)).Err())
	m := messages("m", 1)
	publish(t, p, m)
	if err := f.Done[string(m[0].Payload)]; !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a message to a stream that is gone completed with: %v", err)
	}
	time.Sleep(3 * readBlock)
	if err := stop(); err != nil && !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("Run returned: %v", err)
	}
}

func TestDeadConsumersEntriesAreClaimed(t *testing.T) {
	for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch} {
		t.Run(settle.String(), func(t *testing.T) {
			s := redistest.Start(t)
			c := open(t, driver.Run{ID: "r"}, s.Address, map[string]string{"claim-after": "200ms"})
			declare(t, c)
			p := produce(t, c, trial.NewLog())
			lost := refusing(func(driver.Delivery) bool { return true })
			first := must.Get(c.Consumer(within(t), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: settle}))(t)
			_ = first.Close(within(t))
			stop := consume(t, c, driver.ConsumerSpec{Settle: settle}, lost)
			ms := messages("m", 50)
			publish(t, p, ms)
			eventually(t, "all are pending", func() bool {
				g, err := c.link.XPending(within(t), "weir:r:d", "s").Result()
				return err == nil && g.Count == 50
			})
			if n, err := c.Backlog(within(t), "s", []string{"d"}); err != nil || n != 50 {
				t.Errorf("the backlog is %d, %v", n, err)
			}
			must.Do(t, stop())
			sink := trial.NewLog()
			consume(t, c, driver.ConsumerSpec{Index: 1, Settle: settle}, sink)
			eventually(t, "all are claimed", func() bool { return len(sink.Distinct()) == 50 })
			eventually(t, "all are settled", func() bool { return look(sink, func() int { return sink.Settlements }) == 50 })
			if n := look(sink, func() int { return len(sink.Again) }); n != 50 {
				t.Errorf("%d of 50 are flagged as redelivered", n)
			}
			if n, err := c.Backlog(within(t), "s", []string{"d"}); err != nil || n != 0 {
				t.Errorf("the backlog is %d, %v", n, err)
			}
		})
	}
}

func TestPrefetchBoundsUnackedMessages(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, s.Address, nil)
	declare(t, c)
	p := produce(t, c, trial.NewLog())
	var most int
	sink := trial.NewLog()
	x := must.Get(c.Consumer(within(t), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Prefetch: 7}))(t)
	_ = x.Close(within(t))
	publish(t, p, messages("m", 100))
	sink.OnDeliver = func([]driver.Delivery) error {
		g, err := c.link.XPending(context.Background(), "weir:r:d", "s").Result()
		if err == nil {
			sink.Lock()
			most = max(most, int(g.Count))
			sink.Unlock()
		}
		return nil
	}
	consume(t, c, driver.ConsumerSpec{Prefetch: 7}, sink)
	eventually(t, "all arrive", func() bool { return len(sink.Distinct()) == 100 })
	if got := look(sink, func() int { return most }); got > 7 {
		t.Errorf("%d entries were delivered and not settled", got)
	}
}

func TestTooFewReplicasFailAMessage(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, s.Address, map[string]string{"wait-replicas": "1", "wait-timeout": "100ms"})
	declare(t, c)
	f := trial.NewLog()
	p := produce(t, c, f)
	ms := messages("m", 3)
	publish(t, p, ms[:2])
	p.(driver.BatchProducer).PublishBatch(within(t), ms[2:])
	must.Do(t, p.Flush(within(t)))
	for _, m := range ms {
		if err := f.Done[string(m.Payload)]; !errors.Is(err, driver.ErrTimeout) {
			t.Errorf("%s completed with: %v", m.Payload, err)
		}
	}
}

func TestExistingStreamsAreUsedAndPreserved(t *testing.T) {
	s := redistest.Start(t)
	r := redis.NewClient(&redis.Options{Addr: s.Address})
	defer func() { _ = r.Close() }()
	ctx := within(t)
	must.Do(t, r.XAdd(ctx, &redis.XAddArgs{Stream: "d", Values: []string{"other", "field"}}).Err())
	must.Do(t, r.Set(ctx, "text", "x", 0).Err())
	c := open(t, driver.Run{ID: "r", Existing: true}, s.Address, nil)
	for name, want := range map[string]string{"nowhere": "there is no stream of this name", "text": "the key is a string, no stream"} {
		trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{name}}, "a producer to "+name, driver.ErrUnsupported, want)
		trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{name}}, "a consumer of "+name, driver.ErrUnsupported, want)
	}
	sink := trial.NewLog()
	stop := consume(t, c, driver.ConsumerSpec{}, sink)
	p := produce(t, c, trial.NewLog())
	publish(t, p, messages("m", 1))
	eventually(t, "the message and the other's arrive", func() bool { return len(sink.Distinct()) == 2 })
	groups, err := r.XInfoGroups(ctx, "d").Result()
	if err != nil || len(groups) != 1 || groups[0].Name != "weir-r-s" {
		t.Errorf("groups: %v, %v", groups, err)
	}
	_ = stop()
	_ = p.Close(ctx)
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if groups, err := r.XInfoGroups(ctx, "d").Result(); err != nil || len(groups) != 0 {
		t.Errorf("groups are left: %v, %v", groups, err)
	}
	if n, err := r.XLen(ctx, "d").Result(); err != nil || n != 2 {
		t.Errorf("the stream has %d entries, %v", n, err)
	}
}

func TestMaxLenCutsTheOldest(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, s.Address, map[string]string{"max-len": "10", "max-len-exact": "true"})
	declare(t, c)
	p := produce(t, c, trial.NewLog())
	publish(t, p, messages("m", 25))
	if n, err := c.link.XLen(within(t), "weir:r:d").Result(); err != nil || n != 10 {
		t.Errorf("the stream has %d entries, %v", n, err)
	}
	f, err := c.Facts(within(t))
	if err != nil || len(f.Discards) != 1 || len(f.Discarded) != 1 || f.Discarded[0].Messages != 15 {
		t.Errorf("%v, %v, %v; want 15 of 25 discarded", f.Discards, f.Discarded, err)
	}
}

func TestDeclareOnNonStreamKeyFails(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, s.Address, nil)
	must.Do(t, c.link.Set(within(t), "weir:r:d", "x", 0).Err())
	err := c.Declare(within(t), trial.Plain("d"))
	if !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("Declare: %v", err)
	}
}

func TestTheGuaranteeFollowsTheRunningServer(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, driver.Run{ID: "r"}, s.Address, nil)
	ctx := within(t)
	for _, step := range []struct {
		set  [2]string
		want driver.Confirms
	}{
		{[2]string{"appendonly", "no"}, driver.Confirms{Guarantee: driver.Received}},
		{[2]string{"appendonly", "yes"}, driver.Confirms{Guarantee: driver.Received}}, // everysec
		{[2]string{"appendfsync", "no"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{[2]string{"appendfsync", "always"}, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{[2]string{"no-appendfsync-on-rewrite", "yes"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
	} {
		must.Do(t, c.link.ConfigSet(ctx, step.set[0], step.set[1]).Err())
		f := trial.Facts(t, c)
		if d := cmp.Diff(step.want, f.Confirms); d != "" {
			t.Errorf("with %s: %s", step.set, d)
		}
		if got := f.Settings[step.set[0]]; got != step.set[1] {
			t.Errorf("the settings say %s: %s", step.set[0], got)
		}
	}
}

// TestPageGuaranteesMatchServers uses Valkey: Debian's Redis has no WAITAOF.
func TestPageGuaranteesMatchServers(t *testing.T) {
	served.Guarantees(t, Definition(), nil, "valkey")
}

func TestGuaranteeFollowsWaitOptions(t *testing.T) {
	for _, x := range []struct {
		name     string
		replicas int
		fsync    string // "" without an append-only file
		wait     int
		aof      bool
		want     driver.Confirms
	}{
		{"alone, in memory", 0, "", 0, false, driver.Confirms{Guarantee: driver.Received}},
		{"alone, synced", 0, "always", 0, false, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{"alone, waited for the sync", 0, "everysec", 0, true, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{"alone, waited for a sync that never is", 0, "no", 0, true, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{"synced by one of three", 2, "always", 0, false, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableFsync}},
		{"two of three", 2, "always", 1, false, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum}},
		{"three of three", 2, "", 2, false, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll}},
		{"two of four are not a quorum", 3, "", 1, false, driver.Confirms{Guarantee: driver.Received}},
		{"synced by two of three", 2, "everysec", 1, true, driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}},
		{"two of three, a sync that never is", 2, "no", 1, true, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum}},
	} {
		t.Run(x.name, func(t *testing.T) {
			cfg := newConfig()
			cfg.WaitReplicas, cfg.WaitAOF = x.wait, x.aof
			appendOnly := "yes"
			if x.fsync == "" {
				appendOnly = "no"
			}
			if d := cmp.Diff(x.want, page.Confirmations.Of(cfg.known(x.replicas, appendOnly, x.fsync))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestConflictingSettingsAreRejected(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "no time", Set: []string{"claim-after", "0s"}, Option: "claim-after"},
		trial.Mistake{Name: "a negative length", Set: []string{"max-len", "-1"}, Option: "max-len"},
		trial.Mistake{Name: "no length", Set: []string{"max-len-exact", "true"}, Says: "without max-len"},
		trial.Mistake{Name: "negative replicas", Set: []string{"wait-replicas", "-1"}, Option: "wait-replicas"},
		trial.Mistake{Name: "no wait", Set: []string{"wait-timeout", "0s"}, Option: "wait-timeout"},
		trial.Mistake{Name: "a wait as long as the client's patience", Set: []string{"wait-replicas", "1", "wait-timeout", newConfig().AckTimeout.String()}, Says: "wait-timeout"},
	)
}

// TestWaitAOFNeedsSync: with appendfsync no, WAITAOF never reports that this server has
// synced.
func TestWaitAOFNeedsSync(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Recipe: "valkey", Settings: map[string]string{"appendonly": "yes", "appendfsync": "no"}})
	trial.Refuses(t, Definition(), s.Options,
		trial.Mistake{Name: "Open", Set: []string{"wait-aof", "true"}, Is: driver.ErrUnsupported, Says: "appendfsync: no"})
}

func TestServerWithoutAppendOnlyFileIsRejected(t *testing.T) {
	trial.Refuses(t, Definition(), trial.At([]string{redistest.Start(t).Address}, nil),
		trial.Mistake{Name: "Open", Set: []string{"wait-aof", "true"}, Is: driver.ErrUnsupported})
}
