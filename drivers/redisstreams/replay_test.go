package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
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
	must.Do(t, r.Del(within(t), "d").Err())
	for i := range n {
		id := must.Get(r.XAdd(within(t), &redis.XAddArgs{Stream: "d", Values: []string{fieldPayload, entry(i)}}).Result())(t)
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

func TestBacklogOfGroupStartingMidStream(t *testing.T) {
	servers(t, func(t *testing.T, address string) {
		r := raw(t, address)
		ids := stream(t, r, 10)
		c := open(t, driver.Run{ID: "r", Existing: true}, address, nil)
		x := must.Get(c.Consumer(within(t), driver.ConsumerSpec{
			Subscription: "s", Destinations: []string{"d"}, From: driver.Position{At: driver.AtOffset, Offset: ids[4]},
		}))(t)
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
		must.Do(t, stop())
		publish(t, p, messages("m", 50))
		if n, err := c.Backlog(within(t), "s", []string{"d"}); err != nil || n != 5 {
			t.Errorf("the backlog is %d, %v", n, err)
		}
		consume(t, c, driver.ConsumerSpec{}, sink)
		eventually(t, "what is left arrives", func() bool { return len(sink.Distinct()) == 6 })
		trial.Drained(t, c, "s", "d")
	})
}

func TestInvalidOffsetIsRejected(t *testing.T) {
	if got, err := start(driver.Position{At: driver.AtTime, Time: time.Unix(-1, 0)}); err != nil || got != "0-0" {
		t.Errorf("a time before 1970 begins after %s, %v", got, err)
	}
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
