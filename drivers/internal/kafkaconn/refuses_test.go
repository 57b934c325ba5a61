package kafkaconn

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestUnavailablePartitionReason uses a partition's metadata and the set of responding brokers.
func TestUnavailablePartitionReason(t *testing.T) {
	all := []int32{1, 2, 3}
	for what, x := range map[string]struct {
		leader int32
		isr    []int32
		need   int
		away   int32
		want   string
	}{
		"nothing":                       {leader: 1, isr: all, need: 2},
		"a follower that is away":       {leader: 1, isr: all, need: 2, away: 3},
		"a follower that all need":      {leader: 1, isr: all, need: 3, away: 3, want: "not enough in-sync replicas: 2 of 3, and min.insync.replicas is 3 (NOT_ENOUGH_REPLICAS)"},
		"replicas that fell behind":     {leader: 1, isr: all[:1], need: 2, want: "not enough in-sync replicas: 1 of 3, and min.insync.replicas is 2 (NOT_ENOUGH_REPLICAS)"},
		"the same without acks all":     {leader: 1, isr: all[:1]},
		"more than there are":           {leader: 1, isr: all, need: 4},
		"a leader":                      {leader: -1, isr: all, want: "no leader (LEADER_NOT_AVAILABLE)"},
		"a leader that the others miss": {leader: 2, isr: all, away: 2, want: "no leader: broker 2 does not answer"},
	} {
		p := kadm.PartitionDetail{Leader: x.leader, Replicas: all, ISR: x.isr}
		if got := lacks(&p, x.need, func(b int32) bool { return b != x.away }); got != x.want {
			t.Errorf("%s: %q; want %q", what, got, x.want)
		}
	}
}
