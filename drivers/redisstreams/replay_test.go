package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// servers runs f on the systems for tests of positions and resuming.
func servers(t *testing.T, f func(t *testing.T, address string)) {
	for _, s := range []struct {
		recipe string
		nodes  int
	}{{"redis", 1}, {"redis", 3}, {"valkey", 1}, {"valkey", 3}} {
		t.Run(fmt.Sprintf("%s, %d", s.recipe, s.nodes), func(t *testing.T) {
			f(t, served.Up(t, Definition(), s.nodes, served.With{Recipe: s.recipe}).Address[0])
		})
	}
}

// stream creates stream d with entries m0 to m<n-1>, and returns their IDs.
func stream(t *testing.T, r *redis.Client, n int) (ids []string) {
	t.Helper()
	if err := r.Del(within(t), "d").Err(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		id, err := r.XAdd(within(t), &redis.XAddArgs{Stream: "d", Values: []string{fieldPayload, entry(i)}}).Result()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func entry(i int) string { return fmt.Sprintf("m%03d", i) }

// entries returns m<from> to m<to-1>.
func entries(from, to int) (texts []string) {
	for i := from; i < to; i++ {
		texts = append(texts, entry(i))
	}
	return texts
}

func raw(t *testing.T, address string) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: strings.TrimPrefix(address, "redis://")}
	r := redis.NewClient(o)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// following returns the next ID.
func following(t *testing.T, id string) string {
	t.Helper()
	ms, seq, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq+1, 10)
}

func TestSubscriptionBeginsAtGivenPosition(t *testing.T) {
	servers(t, func(t *testing.T, address string) {
		r := raw(t, address)
		const n = 20
		ids := stream(t, r, n)
		pause := time.Now().Add(50 * time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		for i := range n {
			if err := r.XAdd(within(t), &redis.XAddArgs{Stream: "d", Values: []string{fieldPayload, entry(n + i)}}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for i, x := range []struct {
			name  string
			from  driver.Position
			first int
		}{
			{"by default", driver.Position{}, 0},
			{"earliest", driver.Position{At: driver.AtEarliest}, 0},
			{"latest", driver.Position{At: driver.AtLatest}, 2 * n},
			{"an entry", driver.Position{At: driver.AtOffset, Offset: ids[7]}, 7},
			{"the first entry", driver.Position{At: driver.AtOffset, Offset: ids[0]}, 0},
			{"between two entries", driver.Position{At: driver.AtOffset, Offset: following(t, ids[n-1])}, n},
			{"before the first", driver.Position{At: driver.AtOffset, Offset: "0-0"}, 0},
			{"a time", driver.Position{At: driver.AtTime, Time: pause}, n},
			{"a time before all", driver.Position{At: driver.AtTime, Time: time.Unix(-1, 0)}, 0},
		} {
			t.Run(x.name, func(t *testing.T) {
				c := open(t, driver.Run{ID: fmt.Sprintf("r%d", i), Existing: true}, address, nil)
				sink := trial.NewLog()
				consume(t, c, driver.ConsumerSpec{From: x.from}, sink)
				// A second consumer finds the subscription already begun.
				second := trial.NewLog()
				second.OnDeliver = sink.Deliver
				consume(t, c, driver.ConsumerSpec{Index: 1, From: driver.Position{At: driver.AtEarliest}}, second)
				live := messages("live", 1)
				publish(t, produce(t, c, trial.NewLog()), live)
				want := append([]string{string(live[0].Payload)}, entries(x.first, 2*n)...)
				eventually(t, "all arrive", func() bool { return len(sink.Distinct()) >= len(want) })
				if got := sink.Distinct(); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Errorf("delivered %v", got)
				}
				eventually(t, "the backlog is empty", func() bool {
					left, err := c.Backlog(within(t), "s", []string{"d"})
					return err == nil && left == 0
				})
				if err := r.XTrimMaxLen(within(t), "d", 2*n+1).Err(); err != nil {
					t.Fatal(err)
				}
				last, err := r.XRevRangeN(within(t), "d", "+", "-", 1).Result()
				if err != nil || r.XDel(within(t), "d", last[0].ID).Err() != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

func TestBacklogOfGroupStartingMidStream(t *testing.T) {
	servers(t, func(t *testing.T, address string) {
		r := raw(t, address)
		ids := stream(t, r, 10)
		c := open(t, driver.Run{ID: "r", Existing: true}, address, nil)
		x, err := c.Consumer(within(t), driver.ConsumerSpec{
			Subscription: "s", Destinations: []string{"d"}, From: driver.Position{At: driver.AtOffset, Offset: ids[4]},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = x.Close(context.Background()) }()
		if n, err := c.Backlog(within(t), "s", []string{"d"}); err != nil || n != 6 {
			t.Errorf("the backlog is %d, %v", n, err)
		}
	})
}

func TestBacklogExcludesTrimmedEntries(t *testing.T) {
	servers(t, func(t *testing.T, address string) {
		c := open(t, driver.Run{ID: "r"}, address, map[string]string{"max-len": "5", "max-len-exact": "true"})
		declare(t, c)
		sink := trial.NewLog()
		stop := consume(t, c, driver.ConsumerSpec{}, sink)
		p := produce(t, c, trial.NewLog())
		publish(t, p, messages("read", 1))
		eventually(t, "the first arrives", func() bool { return len(sink.Distinct()) == 1 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		publish(t, p, messages("m", 50))
		if n, err := c.Backlog(within(t), "s", []string{"d"}); err != nil || n != 5 {
			t.Errorf("the backlog is %d, %v", n, err)
		}
		consume(t, c, driver.ConsumerSpec{}, sink)
		eventually(t, "what is left arrives", func() bool { return len(sink.Distinct()) == 6 })
		eventually(t, "the backlog is empty", func() bool {
			n, err := c.Backlog(within(t), "s", []string{"d"})
			return err == nil && n == 0
		})
	})
}

func TestInvalidOffsetIsRejected(t *testing.T) {
	for _, offset := range []string{"", "$", "-", "+", ">", "abc", "1-", "-1", "1-2-3", "1-x", "18446744073709551616-0"} {
		_, err := start(driver.Position{At: driver.AtOffset, Offset: offset})
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), strconv.Quote(offset)) {
			t.Errorf("offset %q: %v", offset, err)
		}
	}
	for offset, want := range map[string]string{
		"5-3": "5-2", "5-0": "4-18446744073709551615", "5": "4-18446744073709551615", "0-0": "0-0", "0-1": "0-0",
	} {
		if got, err := start(driver.Position{At: driver.AtOffset, Offset: offset}); err != nil || got != want {
			t.Errorf("offset %q begins after %s, %v", offset, got, err)
		}
	}
}
