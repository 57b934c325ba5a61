package kafkaconn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Receiving holds the options of group members. A session must outlast the heartbeat interval, 3 s.
type Receiving struct {
	Balancer       string        `option:"balancer" allowed:"cooperative-sticky,sticky,range,round-robin" help:"How a group shares the partitions."`
	SessionTimeout time.Duration `option:"session-timeout" min:"4s" max:"1h" help:"After how long without a heartbeat a group takes a member for dead."`
	FetchMaxWait   time.Duration `option:"fetch-max-wait" min:"10ms" max:"1m" help:"How long a broker holds a fetch for which it has fewer than fetch-min-bytes."`
	FetchMinBytes  int64         `option:"fetch-min-bytes" min:"1B" max:"2147483647B" size:"bytes" help:"A broker answers a fetch when it has this much."`
	FetchMaxBytes  int64         `option:"fetch-max-bytes" min:"1B" max:"64MiB" size:"bytes" help:"Most bytes of one fetch of a broker."`
}

// client returns the client's options for a group member that commits itself, unless more makes the
// client commit.
func (r *Receiving) client(group string, topics []string) []kgo.Opt {
	balancer := map[string]kgo.GroupBalancer{
		"cooperative-sticky": kgo.CooperativeStickyBalancer(), "sticky": kgo.StickyBalancer(),
		"range": kgo.RangeBalancer(), "round-robin": kgo.RoundRobinBalancer(),
	}[r.Balancer]
	return []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topics...),
		// The start position is committed before the group meets (Begin). This applies to offsets
		// that were removed from the log since.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(r.SessionTimeout),
		kgo.BlockRebalanceOnPoll(),
		kgo.KeepRetryableFetchErrors(), // reported to Fault; the client retries anyway
		kgo.FetchMaxWait(r.FetchMaxWait),
		kgo.FetchMinBytes(int32(r.FetchMinBytes)),
		kgo.FetchMaxBytes(int32(r.FetchMaxBytes)),
	}
}
