package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/chromium"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/result"
)

func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	axe := chromium.Axe(t)
	one, _ := explored(t)
	one.Scenario = []byte("name: " + strings.Repeat("wider-than-a-phone-", 10) + "\n")
	probe := func(rate float64, j capacity.Judgement, ns int64) capacity.Probed {
		return capacity.Probed{RatePerS: rate, Judgement: j.String(), Verdict: result.Valid, Of: "e2e", Dir: "01", Why: "a reason", Figures: []capacity.Figure{{P: 99, NS: ns, LoNS: new(ns - 1000)}}}
	}
	search := &Search{Dir: "s", Report: &capacity.Report{
		Promise: []string{"e2e.p99 <= 5ms"}, Answer: capacity.Answered{PassPerS: 1000, FailPerS: 2000, FailBy: capacity.Failed.String(), Stop: capacity.Found},
		Probes: []capacity.Probed{probe(1000, capacity.Passed, 2e6), probe(2000, capacity.Failed, 8e6), probe(1500, capacity.Undecided, 6e6), probe(1800, capacity.Limited, 7e6)},
	}}
	planned, _ := plannedSuite(t, smallSuite, 1)
	for name, page := range map[string]string{
		"a run":           html1(t, one, Options{}),
		"several systems": htmlOf(t, brokers(8)),
		"a series":        htmlOf(t, brokers(6)[:6]),
		"a search":        rendered(t, OverviewHTML, []Entry{one, run(t, "noop-1000")}, Options{Searches: []*Search{search}}),
		"a suite":         drawnSuite(t, planned),
	} {
		for _, width := range []int64{1440, 390} {
			seenAs(t, ctx, page, width)
			for _, found := range chromium.Inaccessible(t, ctx, axe) {
				t.Errorf("%s, %d px: %s", name, width, found)
			}
		}
	}
	seenAs(t, ctx, "<!DOCTYPE html><title>bad</title><button></button>", 1440)
	if len(chromium.Inaccessible(t, ctx, axe)) == 0 {
		t.Error("axe finds nothing wrong with a button without a name")
	}
}
