package pulsar

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// TestATopicWaitsForBookies: a newly started broker may not know its bookies yet.
func TestATopicWaitsForBookies(t *testing.T) {
	asked, none := 0, 2
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked <= none {
			http.Error(w, `{"reason":"org.apache.bookkeeper.mledger.ManagedLedgerException: Not enough non-faulty bookies available error code: -6"}`, http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	a := must.Get(newAdmin(&Config{Admin: []string{s.Listener.Addr().String()}, Timeout: 5 * time.Second}))(t)
	defer a.http.Close()
	topic := must.Get(parseTopic("public/default", "d"))(t)
	if err := a.declare(t.Context(), topic); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	none = 1000
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := a.declare(ctx, topic); !errors.Is(err, driver.ErrBlocked) {
		t.Errorf("without any bookie: %v", err)
	}
}

// TestExpiredMessagesAreCounted lets the messages of a subscription expire, which the broker does
// when it is asked to.
func TestExpiredMessagesAreCounted(t *testing.T) {
	s := servers.Up(t, 1)
	for _, partitions := range []int{1, 2} {
		open := open(t, partitions, s.Options, "batching", "no")
		c := driver.Inside(open).(*conn)
		at := must.Get(c.topic(t.Context(), "d"))(t)
		evict := backlogQuota{Size: 1 << 20, Seconds: -1, Policy: eviction}
		set := func(path, name, value string, body any) error {
			return c.admin.ask(t.Context(), http.MethodPost, at.path+path, url.Values{name: {value}}, body, nil)
		}
		must.Do(t, errors.Join(set("/messageTTL", "messageTTL", "1", nil), set("/backlogQuota", "backlogQuotaType", "destination_storage", evict)))
		x := must.Get(open.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
		t.Cleanup(func() { _ = x.Close(context.Background()) })
		p, f := trial.Producer(t, open, "d")
		const n = 20
		if got := f.Confirmed(t, p, n); got != n {
			t.Fatalf("%d of %d confirmed", got, n)
		}
		var facts driver.Facts
		if !trial.Eventually(func() bool {
			_ = c.admin.ask(t.Context(), http.MethodPost, at.path+"/all_subscription/expireMessages/1", nil, nil, nil)
			facts = must.Get(c.Facts(t.Context()))(t)
			return len(facts.Discarded) == 1 && facts.Discarded[0].Messages == n
		}) {
			t.Errorf("%d partitions: %+v; want %d", partitions, facts.Discarded, n)
		}
		if want := []string{"messages expire after 1 s (message TTL)", "subscriptions lose what is above their backlog quota (destination_storage 1048576, consumer_backlog_eviction)"}; !slices.Equal(facts.Discards, want) {
			t.Errorf("%d partitions: %q", partitions, facts.Discards)
		}
	}
}
