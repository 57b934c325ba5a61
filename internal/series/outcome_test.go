package series

import (
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/result"
)

func TestHostStallEventHasDuration(t *testing.T) {
	t.Parallel()
	want := result.Event{TNS: 5e9, Kind: "hiccup", Text: "the host stalled for 29.7 ms", DurationNS: 29_700_000}
	if got := hiccup(engine.Stall{From: 5e9, To: 5_029_700_000}); got != want {
		t.Errorf("it is %+v; want %+v", got, want)
	}
}

func TestDeclaredDriverBehaviourIsNotFault(t *testing.T) {
	t.Parallel()
	atLeastOnce := driver.Capabilities{Delivery: driver.AtLeastOnce, Ordering: driver.PerKey}
	exactlyOnce := driver.Capabilities{Delivery: driver.ExactlyOnce, Ordering: driver.PerDestination}
	tests := []struct {
		name string
		m    result.Messages
		can  driver.Capabilities
		want bool
	}{
		{"nothing", result.Messages{}, exactlyOnce, false},
		{"pending is not loss", result.Messages{Pending: 1, Unconfirmed: 1, Foreign: 1}, exactlyOnce, false},
		{"a loss", result.Messages{Lost: 1}, atLeastOnce, true},
		{"a message from another destination", result.Messages{Misrouted: 1}, atLeastOnce, true},
		{"unknown is not loss", result.Messages{Unknown: 1}, exactlyOnce, false},
		{"a corruption", result.Messages{Corrupted: 1}, atLeastOnce, true},
		{"a duplicate where they may be", result.Messages{Duplicated: 1}, atLeastOnce, false},
		{"a duplicate where there may be none", result.Messages{Duplicated: 1}, exactlyOnce, true},
		{"another order where it is per key", result.Messages{Reordered: 1}, atLeastOnce, false},
		{"another order where there is one", result.Messages{Reordered: 1}, exactlyOnce, true},
	}
	for _, tt := range tests {
		if got := broken(tt.m, tt.can); got != tt.want {
			t.Errorf("%s: broken = %v; want %v", tt.name, got, tt.want)
		}
	}
}
