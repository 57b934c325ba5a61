package redisstreams

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// member runs a consumer of durable group g on stream d.
func member(t *testing.T, c *conn, spec driver.ConsumerSpec, s *trial.Log) (stop func() error) {
	t.Helper()
	spec.Durable = true
	return consume(t, c, spec, s)
}

// durably opens a run with that ID on existing destinations.
func durably(t *testing.T, id, address string) *conn {
	t.Helper()
	// Claims must not come from waiting.
	return open(t, driver.Run{ID: id, Existing: true}, address, map[string]string{"claim-after": "1h"})
}

func TestDurableGroupResumesAtLastAck(t *testing.T) {
	servers(t, func(t *testing.T, address string) {
		for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto} {
			t.Run(settle.String(), func(t *testing.T) {
				r := raw(t, address)
				ids := stream(t, r, 30)
				must.Do(t, r.XGroupCreate(within(t), "d", "s", "0").Err())
				// Two consumers of an earlier run took ten entries each; three of the first's were
				// acknowledged.
				for _, index := range []string{"0", "5"} {
					got, err := r.XReadGroup(within(t), &redis.XReadGroupArgs{
						Group: "s", Consumer: memberPrefix + index, Streams: []string{"d", ">"}, Count: 10,
					}).Result()
					if err != nil || len(got) != 1 || len(got[0].Messages) != 10 {
						t.Fatalf("reading: %v, %v", got, err)
					}
				}
				must.Do(t, r.XAck(within(t), "d", "s", ids[:3]...).Err())
				again := durably(t, "a", address)
				sink := trial.NewLog()
				// Existing messages are kept, regardless of From.
				stop := member(t, again, driver.ConsumerSpec{Settle: settle, From: driver.Position{At: driver.AtLatest}}, sink)
				eventually(t, "what was left and what is new arrive", func() bool { return len(sink.Distinct()) == 27 })
				if got := look(sink, func() []string { return slices.Clone(sink.Got) }); !slices.Equal(got, entries(3, 30)) {
					t.Errorf("delivered %v", got)
				}
				if got := look(sink, func() []string { return sink.Again }); !slices.Equal(got, entries(3, 20)) {
					t.Errorf("flagged as redelivered: %v", got)
				}
				trial.Drained(t, again, "s", "d")
				if err := stop(); err != nil {
					t.Error(err)
				}
				if err := again.Close(within(t)); err != nil {
					t.Error(err)
				}
				if groups, err := r.XInfoGroups(within(t), "d").Result(); err != nil || len(groups) != 1 || groups[0].Name != "s" {
					t.Errorf("groups after the run: %v, %v", groups, err)
				}
			})
		}
	})
}

func TestLiveConsumersEntriesAreNotClaimed(t *testing.T) {
	s := redistest.Start(t)
	r := raw(t, s.Address)
	stream(t, r, 10)
	a, b := durably(t, "a", s.Address), durably(t, "b", s.Address)
	busy := refusing(func(driver.Delivery) bool { return true })
	member(t, a, driver.ConsumerSpec{}, busy)
	eventually(t, "they are pending", func() bool {
		left, err := r.XPending(within(t), "d", "s").Result()
		return err == nil && left.Count == 10
	})
	// One with the same name in another process, and one with another name.
	for _, index := range []int{0, 1} {
		sink := trial.NewLog()
		stop := member(t, b, driver.ConsumerSpec{Index: index}, sink)
		publish(t, produce(t, b, trial.NewLog()), messages("new", 1))
		eventually(t, "what is new arrives at one of them", func() bool {
			left, err := r.XInfoGroups(within(t), "d").Result()
			return err == nil && left[0].Lag == 0
		})
		must.Do(t, stop())
		if got := sink.Distinct(); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "m") }) {
			t.Errorf("consumer %d took what another holds: %v", index, got)
		}
	}
}

func TestDurableGroupOnNonStreamKeyFails(t *testing.T) {
	s := redistest.Start(t)
	r := raw(t, s.Address)
	must.Do(t, r.Set(within(t), "d", "x", 0).Err())
	c := durably(t, "a", s.Address)
	x, err := c.Consumer(within(t), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Durable: true})
	if err == nil {
		_ = x.Close(context.Background())
	}
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "the key is a string, no stream") {
		t.Errorf("a consumer: %v", err)
	}
}

func TestADurableGroupMayHaveAnyName(t *testing.T) {
	s := redistest.Start(t)
	r := raw(t, s.Address)
	stream(t, r, 3)
	const name = "größe of\nall"
	c := durably(t, "a", s.Address)
	x := must.Get(c.Consumer(within(t), driver.ConsumerSpec{Subscription: name, Destinations: []string{"d"}, Durable: true}))(t)
	_ = x.Close(within(t))
	if groups, err := r.XInfoGroups(within(t), "d").Result(); err != nil || len(groups) != 1 || groups[0].Name != name {
		t.Errorf("groups: %v, %v", groups, err)
	}
}
