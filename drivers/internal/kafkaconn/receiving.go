package kafkaconn

import (
	"errors"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Receiving is the options of members of groups. They are options of the same names
// of every driver that embeds them.
type Receiving struct {
	Balancer       string        `option:"balancer" allowed:"cooperative-sticky,sticky,range,round-robin" help:"How a group shares the partitions."`
	SessionTimeout time.Duration `option:"session-timeout" help:"After how long without a heartbeat a group takes a member for dead."`
	FetchMaxWait   time.Duration `option:"fetch-max-wait" help:"How long a broker holds a fetch for which it has fewer than fetch-min-bytes."`
	FetchMinBytes  int64         `option:"fetch-min-bytes" size:"bytes" help:"A broker answers a fetch when it has this much."`
	FetchMaxBytes  int64         `option:"fetch-max-bytes" size:"bytes" help:"Most bytes of one fetch of a broker."`
}

// ReceivingDefaults returns the options' defaults: the client's, but for one.
func ReceivingDefaults() Receiving {
	return Receiving{
		Balancer:       "cooperative-sticky",
		SessionTimeout: 45 * time.Second,
		// The vendor's client's: a partition that was just given to a consumer is
		// fetched when the fetch under way is answered, with the client's own
		// default after 5 s.
		FetchMaxWait:  500 * time.Millisecond,
		FetchMinBytes: 1,
		FetchMaxBytes: 50 << 20,
	}
}

// Validate reports every fault, joined.
func (r *Receiving) Validate() error {
	return errors.Join(
		Span("session-timeout", r.SessionTimeout, 4*time.Second, time.Hour), // longer than the heartbeats' interval, 3 s
		Span("fetch-max-wait", r.FetchMaxWait, 10*time.Millisecond, time.Minute),
		size("fetch-min-bytes", r.FetchMinBytes, 1, math.MaxInt32),
		size("fetch-max-bytes", r.FetchMaxBytes, 1, 64<<20))
}

// client returns the client's options for a member of a group that commits itself,
// unless more has it commit.
func (r *Receiving) client(group string, topics []string) []kgo.Opt {
	balancer := map[string]kgo.GroupBalancer{
		"cooperative-sticky": kgo.CooperativeStickyBalancer(), "sticky": kgo.StickyBalancer(),
		"range": kgo.RangeBalancer(), "round-robin": kgo.RoundRobinBalancer(),
	}[r.Balancer]
	return []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topics...),
		// Where a group begins is committed before it meets (Begin). This is for
		// what was removed from the log since.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(r.SessionTimeout),
		kgo.BlockRebalanceOnPoll(),
		kgo.KeepRetryableFetchErrors(), // they are for Fault; the client retries all the same
		kgo.FetchMaxWait(r.FetchMaxWait),
		kgo.FetchMinBytes(int32(r.FetchMinBytes)),
		kgo.FetchMaxBytes(int32(r.FetchMaxBytes)),
	}
}
