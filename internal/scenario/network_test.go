package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/network"
)

// TestNetworkConditionsOverrideProfile combines a profile, conditions for both directions and
// conditions for one. Rendered and read again they are the same.
func TestNetworkConditionsOverrideProfile(t *testing.T) {
	const file = `weir: 1
seed: 9
network:
  profile: 3g
  latency: 20ms
  loss: 1%
  to_system: {loss: 0, jitter: 1ms, distribution: exponential}
  from_system: {bandwidth: 2Mbit}
  partition: [both at 1s for 500ms]
`
	want := network.Spec{
		To:   network.Conditions{Latency: 20 * time.Millisecond, Jitter: time.Millisecond, Distribution: network.Exponential, Bandwidth: 768_000},
		From: network.Conditions{Latency: 20 * time.Millisecond, Loss: 0.01, Bandwidth: 2_000_000},
		Seed: 9,
	}
	s := must.Get(only(inputs(t, file)))(t)
	again, err := only(inputs(t, string(s.YAML())))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.YAML())
	}
	for _, x := range []*Scenario{s, again} {
		if diff := cmp.Diff(want, x.Network.Spec(x.Seed)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := x.Network.Partitions; len(got) != 1 || got[0].Text() != "both at 1s for 500ms" {
			t.Errorf("partitions %v", got)
		}
	}
}

// TestNetworkProfilesResolve checks that each profile passes the checks of explicit conditions.
func TestNetworkProfilesResolve(t *testing.T) {
	for _, name := range network.ProfileNames() {
		if _, err := only(inputs(t, "weir: 1\nnetwork: {profile: "+name+"}\n")); err != nil {
			t.Error(err)
		}
	}
}
