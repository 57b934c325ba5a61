package kafkaconn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/settings"
)

// The settings of a topic that decide what a confirmation of it means.
// (https://kafka.apache.org/43/configuration/topic-configs/)
const (
	minISR        = "min.insync.replicas"
	flushMessages = "flush.messages"
	maxBytes      = "max.message.bytes"
)

// settingsShown are those of a topic that go into the facts.
var settingsShown = []string{
	minISR, flushMessages, maxBytes, "flush.ms", "retention.ms", "retention.bytes", "segment.bytes", "cleanup.policy", "compression.type",
	"unclean.leader.election.enable", "message.timestamp.type",
}

// A described topic is its settings, and how many replicas each partition has.
type described struct {
	replicas int // the least of a partition
	settings map[string]string
}

// gathered is what brokers say of their topics.
type gathered struct {
	guarantees driver.Confirmations
	shown      settings.Values
	confirms   driver.Confirms // the weakest
	discards   []string
}

// take adds a topic as one broker has it.
func (g *gathered) take(acks string, t described) {
	for _, s := range settingsShown {
		if v, ok := t.settings[s]; ok {
			g.shown.Add(s, v)
		}
	}
	g.confirms = g.confirms.Weaker(g.guarantees.Of(decide(acks, t)))
	g.discards = append(g.discards, t.discards()...)
}

// longestRun is how long a run of weir lasts at most: what is kept for longer is kept.
const longestRun = 78 * time.Hour

// discards says by which of its settings a topic drops messages while a run may need them.
func (t *described) discards() (all []string) {
	if ms, err := strconv.ParseInt(t.settings["retention.ms"], 10, 64); err == nil && ms >= 0 && ms < longestRun.Milliseconds() {
		all = append(all, fmt.Sprintf("messages are deleted after %d ms (retention.ms)", ms))
	}
	if n, err := strconv.ParseInt(t.settings["retention.bytes"], 10, 64); err == nil && n >= 0 {
		all = append(all, fmt.Sprintf("a partition drops the oldest messages beyond %d bytes (retention.bytes)", n))
	}
	if strings.Contains(t.settings["cleanup.policy"], "compact") {
		all = append(all, "of each key only the latest message stays (cleanup.policy compact)")
	}
	return all
}

// Facts reads from the running cluster its version and what a confirmation with
// acks ("0", "1", "all") of the topics means by a table; the weakest of all counts, and where
// there is no topic, what a topic of one replica would have. A broker that is away
// confirms nothing, and is not asked.
func (l *Link) Facts(ctx context.Context, by driver.Confirmations, acks string, topics []string) (driver.Facts, error) {
	meta, err := l.Metadata(ctx, topics...)
	if err != nil {
		return driver.Facts{}, err
	}
	versions, err := l.admin.ApiVersions(ctx)
	if err != nil {
		return driver.Facts{}, Unanswered(err)
	}
	f := driver.Facts{Name: "kafka", Nodes: len(versions), Settings: map[string]string{}}
	g := &gathered{guarantees: by, shown: settings.Values{}}
	here := map[int32]bool{}
	for _, v := range versions.Sorted() {
		if v.Err != nil {
			g.shown.Add("away", "broker "+strconv.Itoa(int(v.NodeID)))
			continue
		}
		here[v.NodeID] = true
		g.shown.Add("version", v.VersionGuess())
		for _, feature := range v.Raw().FinalizedFeatures {
			g.shown.Add("feature "+feature.Name, strconv.Itoa(int(feature.MaxVersionLevel)))
		}
	}
	if len(here) == 0 {
		return f, fmt.Errorf("%w: none of %d brokers answers", driver.ErrUnreachable, len(versions))
	}
	if meta.Cluster != "" {
		f.Settings["cluster.id"] = meta.Cluster
		if strings.HasPrefix(meta.Cluster, "redpanda.") {
			f.Name = "redpanda"
		}
	}
	for _, t := range meta.Topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			if i := slices.IndexFunc(meta.Brokers, func(b kadm.BrokerDetail) bool { return b.NodeID == p.Leader }); i >= 0 {
				b := meta.Brokers[i]
				f.Leaders = append(f.Leaders, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
			}
		}
		if err := l.topicFacts(ctx, g, acks, t, here); err != nil {
			return f, err
		}
	}
	if g.confirms == (driver.Confirms{}) {
		b := slices.Min(slices.Collect(maps.Keys(here)))
		has, err := l.settings(ctx, b, kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(b)))
		if err != nil {
			return f, fmt.Errorf("settings of broker %d: %w", b, err)
		}
		g.take(acks, described{1, map[string]string{flushMessages: has["log.flush.interval.messages"]}})
	}
	g.shown.Into(f.Settings)
	f.Confirms, f.Version = g.confirms, f.Settings["version"]
	slices.Sort(g.discards)
	f.Discards = slices.Compact(g.discards)
	delete(f.Settings, "version")
	return f, nil
}

// topicFacts asks each of the brokers here that hold a topic: what a topic does not
// set itself is each broker's own setting.
func (l *Link) topicFacts(ctx context.Context, g *gathered, acks string, t kadm.TopicDetail, here map[int32]bool) error {
	if t.Err != nil {
		return fmt.Errorf("topic %s: %w", t.Topic, Cause(t.Err))
	}
	replicas, holders := leastReplicas(t), map[int32]bool{}
	for _, p := range t.Partitions {
		for _, r := range p.Replicas {
			holders[r] = true
		}
	}
	g.shown.Add("replication.factor", strconv.Itoa(replicas))
	for _, h := range slices.Sorted(maps.Keys(holders)) {
		if !here[h] {
			g.shown.Add("away", "broker "+strconv.Itoa(int(h)))
			continue
		}
		settings, err := l.settings(ctx, h, kmsg.ConfigResourceTypeTopic, t.Topic)
		if err != nil {
			return fmt.Errorf("settings of topic %s at broker %d: %w", t.Topic, h, err)
		}
		g.take(acks, described{replicas, settings})
	}
	return nil
}

// MaxMessage returns the largest message that each of the topics takes, in bytes,
// with all that the protocol puts around it.
func (l *Link) MaxMessage(ctx context.Context, topics ...string) (int, error) {
	least := 0
	for _, t := range topics {
		settings, err := l.settings(ctx, -1, kmsg.ConfigResourceTypeTopic, t)
		if err != nil {
			return 0, fmt.Errorf("settings of topic %s: %w", t, err)
		}
		if n, err := strconv.Atoi(settings[maxBytes]); err == nil && (least == 0 || n < least) {
			least = n
		}
	}
	return least, nil
}

// settings asks a broker, or any where it is -1, for the settings of a resource,
// by their names, as they are in force.
func (l *Link) settings(ctx context.Context, broker int32, kind kmsg.ConfigResourceType, name string) (map[string]string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	req.Resources = append(req.Resources, r)
	ask := kmsg.Requestor(l)
	if broker >= 0 {
		ask = l.Broker(int(broker))
	}
	resp, err := req.RequestWith(ctx, ask)
	if err != nil {
		return nil, Unanswered(err)
	}
	out := map[string]string{}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			if r.ErrorMessage != nil {
				err = said(err, *r.ErrorMessage)
			}
			return nil, Cause(err)
		}
		for _, c := range r.Configs {
			if c.Value != nil && !c.IsSensitive {
				out[c.Name] = *c.Value
			}
		}
	}
	return out, nil
}

// decide returns the settings of a topic that decide what its confirmations mean. A partition never
// needs more replicas in sync than it has (Partition.scala, effectiveMinIsr).
func decide(acks string, t described) driver.Known {
	need, err := strconv.Atoi(t.settings[minISR])
	if err != nil {
		need = 1
	}
	return driver.Known{
		"acks": acks, "replication": strconv.Itoa(t.replicas), "min-insync": driver.Of(min(need, t.replicas), t.replicas),
		"flush-messages": t.settings[flushMessages],
	}
}

// Known implements driver.GuaranteePredictor: the settings of topics of that many replicas.
func (c *Common) Known(s driver.Servers) driver.Known {
	if s.Nodes == 0 {
		return driver.Known{"acks": c.Acks} // a topic may be there
	}
	return foreseen(c.Acks, s.Replicas, cmp.Or(c.MinInsync, minInsync(s.Nodes)), cmp.Or(c.FlushMessages, c.Server.FlushMessages))
}

// KnownLog returns the settings of the log of transactions.
func (c *Common) KnownLog(s driver.Servers) driver.Known {
	return foreseen("all", s.Nodes, minInsync(s.Nodes), c.Server.FlushMessages)
}

// minInsync is the min.insync.replicas that the recipe gives brokers.
func minInsync(nodes int) int { return min(nodes, 2) }

func foreseen(acks string, replicas, need int, flush int64) driver.Known {
	return decide(acks, described{replicas, map[string]string{minISR: strconv.Itoa(need), flushMessages: strconv.FormatInt(flush, 10)}})
}
