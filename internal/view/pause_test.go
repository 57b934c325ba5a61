package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func paused(x *result.Pause) string {
	p := new(layout.Page)
	r := &result.Result{Pause: x, Intervals: []result.Interval{{TS: 2, Phase: "measure"}}}
	(&single{Page: p, r: r}).pause()
	return layout.Terminal(120, false).Page(p)
}

func TestAPauseSaysHowItWasCaughtUp(t *testing.T) {
	at, received, shrinks := int64(8_500_000_000), 5000.0, 4000.0
	d := func(ns int64) *result.Dist {
		return &result.Dist{Count: 2000, Percentiles: []result.Percentile{{P: 50, NS: ns, Supported: true}, {P: 100, NS: 2 * ns, Supported: true}}}
	}
	x := &result.Pause{
		BeganNS: 6e9, ResumedNS: 8e9, Before: 7, Waiting: 2000, CaughtUpNS: &at, UntilNS: at, Received: 2500, Left: 3,
		ReceivedPerS: &received, ShrinksPerS: &shrinks, Old: d(1_000_000_000), Live: d(1_000_000),
	}
	text := paused(x)
	mentions(t, strings.Join(strings.Fields(text), " "),
		"took nothing for 2.00 s from 4.0 s on; then 2,000 messages waited, before rarely more than 7", "caught up 500 ms after that; delivered 5,000/s meanwhile",
		"the backlog became 4,000/s less", "old messages", "1.00 s", "live messages", "2.00 ms",
	)
	shrinks = -10
	x.CaughtUpNS, x.UntilNS, x.Left, x.Live = nil, 12e9, 2040, nil
	text = paused(x)
	mentions(t, strings.Join(strings.Fields(text), " "), "not caught up in 4.00 s while messages were sent: 2,040 still waited", "the backlog became 10.0/s more")
	if strings.Contains(text, "not among them") {
		t.Errorf("nothing was lost, but:\n%s", text)
	}
	x.OldLost = 4996
	if want, text := "still waiting then (not among them: 4,996 that failed or were lost, since nobody saw until when they waited)", strings.Join(strings.Fields(paused(x)), " "); !strings.Contains(text, want) {
		t.Errorf("no %q in:\n%s", want, text)
	}
	if strings.Contains(text, "live messages ") {
		t.Errorf("a row without messages:\n%s", text)
	}
	if text := paused(nil); text != "" {
		t.Errorf("%q; want nothing without a pause", text)
	}
}
