package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// A rate covers what arrived in the window, a count what was sent in it.
func TestDifferingDeliveredCountsAreExplained(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		perS      float64
		delivered uint64
		mode      string
		want      bool
	}{
		"alike":                           {380, 1900, "stream", false},
		"alike within a hundredth":        {380, 1890, "stream", false},
		"fewer were delivered of its own": {380, 1262, "stream", true},
		"more came after it":              {380, 2400, "stream", true},
		"a drain has no warm-up":          {380, 1262, result.ModeBacklog, false},
	} {
		r := &result.Result{Run: result.Run{Mode: tt.mode}}
		r.Messages.Delivered, r.MessagesAll.Scheduled, r.MessagesAll.Delivered = tt.delivered, 7000, 1500
		r.Throughput = result.Throughput{SendS: 5, ReceiveS: 5, ReceivedPerS: &tt.perS}
		s := &single{Page: new(layout.Page), r: r}
		s.throughput()
		got := (layout.Text{Width: 200}).Page(s.Page)
		if strings.Contains(got, "throughput counts what was delivered in these 5.00 s, even if sent in the warm-up;") != tt.want {
			t.Errorf("%s: explained %v; want %v:\n%s", name, !tt.want, tt.want, got)
		}
	}
}

func TestSlowStartInHeadline(t *testing.T) {
	r := &result.Result{Messages: result.Messages{Scheduled: 1000, Sent: 600, Dropped: 400}}
	r.Verdict.Checks = []result.Check{{
		Name: judge.CheckRate, Status: result.Valid, Codes: []string{"rate.sent", "rate.full", "slow.mostly", "advice.warm_up"},
		Values: map[string]any{"slow": 3.0, "before": 0.1, "after": 0.8, "warmup": 5.0},
	}}
	const want = "the system did not take the rate: sent 600 of 1,000 (400 dropped); the system confirmed 10 % of the offered messages in the first 3 s, and 80 % afterwards"
	if got := saturated(r); got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
