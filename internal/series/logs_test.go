package series

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/serverlog"
	"github.com/weirmq/weir/result"
)

func TestSlowMessageLogWindows(t *testing.T) {
	const s, epoch = int64(1e9), int64(100e9)
	got := besideClusters([]result.SlowCluster{{FromNS: 5 * s, ToNS: 6 * s}, {FromNS: 6*s + 1, ToNS: 6*s + 2}, {FromNS: 9 * s, ToNS: 10 * s}}, epoch)
	want := []serverlog.Window{{From: 104 * s, To: 106*s + s/10}, {From: 106*s + s/10 + 1, To: 106*s + s/10 + 2}, {From: 108 * s, To: 110*s + s/10}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLogWindowsOfFaultsDoNotOverlap(t *testing.T) {
	const s, epoch = int64(1e9), int64(100e9)
	long := &result.FaultEffect{Unconfirmed: &result.Span{FromNS: 20 * s, ToNS: 27 * s}}
	got := besideFaults([]result.Fault{{BeganNS: 5 * s, UndoneNS: new(8 * s)}, {BeganNS: 20 * s, Effect: long}, {BeganNS: 20*s + 5, Effect: long}}, epoch)
	want := []serverlog.Window{{From: 105 * s, To: 109 * s}, {From: 120 * s, To: 120*s + 4}, {From: 120*s + 5, To: 128 * s}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
