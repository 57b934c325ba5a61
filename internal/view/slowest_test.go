package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func TestReportExplainsSlowestMessages(t *testing.T) {
	messages := make([]result.SlowMessage, 10)
	for i := range messages {
		messages[i] = result.SlowMessage{NS: int64(50-i) * 1e6, DueNS: 3e9, Producer: i, Beside: []string{"hiccup"}}
	}
	r := &result.Result{Intervals: []result.Interval{{TS: 0, Phase: "warmup"}, {TS: 1, Phase: "measure"}}, Slowest: []result.Slowest{
		{Of: "send", Messages: messages[:1], Clusters: []result.SlowCluster{{Messages: 1}}},
		{
			Of: "e2e", Messages: messages, PeriodNS: new(int64(5e9)),
			Clusters: []result.SlowCluster{{FromNS: 3.2e9, ToNS: 3.24e9, Messages: 4}, {FromNS: 4e9, ToNS: 4.1e9, Messages: 1}, {FromNS: 8.2e9, ToNS: 8.25e9, Messages: 5}},
			Beside: []result.Beside{
				{What: "hiccup", Messages: 7, Episodes: 2, Chance: 0.0001, ByChance: 0.0004},
				{What: "busy servers", Messages: 5, Episodes: 3, Chance: 0.003, ByChance: 0.125},
				{What: "disconnected", Messages: 4, Episodes: 1, Chance: 0.14, ByChance: 0.05},
				{What: "many disk flushes", Messages: 9, Episodes: 3, Chance: 0.9, ByChance: 0.9},
			},
		},
	}}
	says := func() string {
		page := &layout.Page{}
		(&single{Page: page, r: r}).slowest()
		return layout.Text{}.Page(page)
	}
	want := `slowest     the 10 slowest e2e messages took 41.0 ms to 50.0 ms; 9 of them came in 2 bursts after the warm-up: 5 in a burst of 50.0 ms from 7.2 s on, 4 in a burst of 40.0 ms from 2.2 s on; bursts begin every 5.00 s, or a multiple of it
            7 of these 10 met a stall of the host; of messages as slow at random times less than 0.1 % would
            5 of these 10 met a second with unusually busy servers; of messages as slow at random times 12.5 % would
`
	if d := cmp.Diff(want, says()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	page := &layout.Page{}
	(&single{Page: page, r: r}).slowestTable()
	var b strings.Builder
	must.Do(t, browser("x").Write(&b, page))
	if s := b.String(); strings.Count(s, "<tr") < 11 || !strings.Contains(s, "the slowest messages") {
		t.Errorf("the page does not list them:\n%s", s)
	}
	r.Slowest[1] = result.Slowest{Of: "e2e", Messages: messages[:2], Clusters: []result.SlowCluster{{FromNS: 2e9, ToNS: 2.5e9, Messages: 2}}}
	if s := says(); s != "slowest     the 2 slowest e2e messages took 49.0 ms to 50.0 ms; all were in flight within 500 ms, from 1.0 s after the warm-up on\n" {
		t.Error(s)
	}
	r.Slowest[1].Clusters[0].ToNS = 3.5e9
	page = &layout.Page{}
	(&single{Page: page, r: r}).slowestTable()
	if text := (layout.Text{}).Page(page); strings.Count(text, "e2e") != 1 {
		t.Errorf("one burst has other than one row:\n%s", text)
	}
	r.Slowest[1].Clusters[0].ToNS = 2.5e9
	r.Latency.E2E.Response = &result.Dist{Count: 5000, Censored: 1199}
	if s := says(); s != "slowest     the 2 slowest e2e messages that completed took 49.0 ms to 50.0 ms (1,199 more never came); all were in flight within 500 ms, from 1.0 s after the warm-up on\n" {
		t.Error(s)
	}
	r.Slowest = r.Slowest[:1]
	r.Latency.Send.Service = &result.Dist{Count: 5000, Censored: 1}
	if s := says(); s != "slowest     the slowest send message that completed took 50.0 ms (1 more was never confirmed)\n" {
		t.Error(s)
	}
	r.Latency.Send.Service = nil
	if s := says(); s != "slowest     the slowest send message took 50.0 ms\n" {
		t.Error(s)
	}
	if r.Slowest = nil; says() != "" {
		t.Error("of a result without them it says something")
	}
}

func TestZeroInstantHasNoSign(t *testing.T) {
	for s, want := range map[float64]string{-0.01: "0.0 s", 0: "0.0 s", 0.04: "0.0 s", -0.06: "-0.1 s", 1234.56: "1,234.6 s"} {
		if got := seconded(s); got != want {
			t.Errorf("%g s: %s; want %s", s, got, want)
		}
	}
}
