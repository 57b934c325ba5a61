package kafkaconn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	answerLimit = 2 * time.Second // for a broker to respond
	openLimit   = 5 * time.Second // for reporting what a partition lacks when a producer or a group is opened
)

// takes waits until the cluster would accept messages for topics that need that many in-sync
// replicas; 0: each partition needs only a leader. A cluster that just started, or is busy, may need
// a moment.
func (h *Hold) takes(ctx context.Context, need map[string]int) error {
	short, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	for {
		why := h.refuses(ctx, need)
		if why == "" {
			return nil
		}
		if !retry.Pause(short, askPause) {
			return fmt.Errorf("%w: %s", driver.ErrBlocked, why)
		}
	}
}

// needed returns how many in-sync replicas each topic needs to accept a message.
func (h *Hold) needed(ctx context.Context, topics []string) (map[string]int, error) {
	need := map[string]int{}
	for _, t := range topics {
		need[t] = 0
		if h.cfg.Acks != "all" {
			continue
		}
		settings, err := h.Link.settings(ctx, -1, kmsg.ConfigResourceTypeTopic, t)
		if err != nil {
			return nil, fmt.Errorf("settings of topic %s: %w", t, err)
		}
		need[t], _ = strconv.Atoi(settings[minISR])
	}
	return need, nil
}

// refuses asks the cluster why it accepts no messages for topics that need that many in-sync
// replicas: the client silently retries while a partition has no leader or too few in-sync
// replicas. The result is "" if the cluster has no reason or does not answer.
func (h *Hold) refuses(ctx context.Context, need map[string]int) string {
	meta, err := h.Link.Metadata(ctx, slices.Collect(maps.Keys(need))...)
	if err != nil {
		return ""
	}
	short, cancel := context.WithTimeout(ctx, answerLimit)
	versions, _ := h.Link.admin.ApiVersions(short)
	cancel()
	there := func(broker int32) bool {
		v, known := versions[broker]
		return known && v.Err == nil && slices.ContainsFunc(meta.Brokers, func(b kadm.BrokerDetail) bool { return b.NodeID == broker })
	}
	for _, t := range meta.Topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			if why := lacks(&p, need[t.Topic], there); why != "" {
				return fmt.Sprintf("partition %d of topic %s: %s", p.Partition, t.Topic, why)
			}
		}
	}
	return ""
}

// lacks returns what a partition lacks to accept messages that need that many in-sync replicas, or
// "". Metadata still lists a lost broker for some time.
func lacks(p *kadm.PartitionDetail, need int, there func(broker int32) bool) string {
	switch {
	case p.Leader < 0:
		return "no leader (" + kerr.LeaderNotAvailable.Message + ")"
	case !there(p.Leader):
		return fmt.Sprintf("no leader: broker %d does not answer", p.Leader)
	}
	in := 0
	for _, r := range p.ISR {
		if there(r) {
			in++
		}
	}
	if in >= min(need, len(p.Replicas)) {
		return ""
	}
	return fmt.Sprintf("not enough in-sync replicas: %d of %d, and %s is %d (%s)", in, len(p.Replicas), minISR, need, kerr.NotEnoughReplicas.Message)
}
