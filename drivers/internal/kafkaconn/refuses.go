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
	answerLimit = 2 * time.Second // for a broker to show that it is there
	openLimit   = 5 * time.Second // for what a partition lacks when a producer is opened
)

// takes returns when the cluster would take what is sent to topics. One that just started, or
// is busy, may need a moment.
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

// needed returns how many replicas in sync each topic needs to take a message.
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

// refuses asks the cluster why it takes nothing of what is sent to topics, which need so many
// replicas in sync: the client tries again, without a word, what a partition without a
// leader, or without enough replicas in sync, does not take. "": the cluster knows no reason,
// or does not answer.
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

// lacks says what a partition lacks to take messages that need so many replicas in sync; ""
// where it is nothing. A broker that went away is named in the metadata for some time.
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
