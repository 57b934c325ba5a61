package view

import (
	"strings"
	"testing"

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
