package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func TestSubscriptionSharesShownWhenInformative(t *testing.T) {
	t.Parallel()
	got := func(delivered, lost uint64) result.Received {
		return result.Received{Delivered: delivered, Lost: lost}
	}
	of := func(name string, x result.Received) result.Subscription {
		return result.Subscription{Name: name, Messages: x, MessagesAll: x}
	}
	many := make([]result.Subscription, 20)
	for i := range many {
		many[i] = of("s", got(1, 1))
	}
	for _, c := range []struct {
		name   string
		shares []result.Subscription
		want   string
	}{
		{"one subscription", nil, ""},
		{
			"requests and replies",
			[]result.Subscription{of("requests", got(1500, 0)), of("replies", got(1490, 10))},
			"of these, requests: delivered 1,500, lost 0\nof these, replies: delivered 1,490, lost 10\n",
		},
		{"only who misses something", []result.Subscription{of("s0", got(3, 0)), of("s1", got(2, 1))}, "of these, s1: delivered 2, lost 1\n"},
		{"not too many", many, strings.Repeat("of these, s: delivered 1, lost 1\n", mostShares) + "and further subscriptions: see result.json\n"},
	} {
		s := &single{Page: new(layout.Page), r: &result.Result{Subscriptions: c.shares}}
		s.shares()
		text := strings.ReplaceAll(layout.Text{}.Page(s.Page), "            ", "") // the label's room
		if text != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, text, c.want)
		}
	}
}

func TestBrokenDescribesViolations(t *testing.T) {
	t.Parallel()
	ttl := []string{"messages expire after 300 ms (policy ttl: message-ttl 300)"}
	for want, r := range map[string]result.Result{
		"lost 2, duplicated 1, of 4,000 sent":               {MessagesAll: result.Messages{Sent: 4000, Lost: 2, Duplicated: 1}},
		"corrupted 1, misrouted 3, reordered 5, of 10 sent": {MessagesAll: result.Messages{Sent: 10, Corrupted: 1, Misrouted: 3, Reordered: 5}, System: result.System{Discards: ttl}},
		"messages were damaged":                             {MessagesAll: result.Messages{Sent: 10}},
		"lost 2, of 10 sent; the system is set so that messages expire after 300 ms (policy ttl: message-ttl 300)": {MessagesAll: result.Messages{Sent: 10, Lost: 2}, System: result.System{Discards: ttl}},
		"lost 9, of 10 sent; the system counts 8 discarded (dropped); the system is set so that messages expire after 300 ms (policy ttl: message-ttl 300)": {
			MessagesAll: result.Messages{Sent: 10, Lost: 9},
			System: result.System{Discards: ttl, Discarded: []result.Discarded{
				{Counter: "dropped", By: result.BySystem, Messages: 8}, {Counter: "none", By: result.ByClient},
			}},
		},
	} {
		if got := Broken(&r); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
