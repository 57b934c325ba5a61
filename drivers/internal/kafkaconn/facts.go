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

// Settings of a topic that decide what a confirmation means
// (https://kafka.apache.org/43/configuration/topic-configs/).
const (
	minISR        = "min.insync.replicas"
	flushMessages = "flush.messages"
	maxBytes      = "max.message.bytes"
)

// settingsShown lists the topic settings that appear in the facts.
var settingsShown = []string{
	minISR, flushMessages, maxBytes, "flush.ms", "retention.ms", "retention.bytes", "segment.bytes", "cleanup.policy", "compression.type",
	"unclean.leader.election.enable", "message.timestamp.type",
}

// A described topic has its settings and the replica count of its partitions.
type described struct {
	replicas int // the smallest of any partition
	settings map[string]string
}

// gathered collects what brokers report about their topics.
type gathered struct {
	guarantees driver.Confirmations
	shown      settings.Values
	confirms   driver.Confirms // the weakest
	discards   []string
}

// take adds a topic as reported by one broker.
func (g *gathered) take(acks string, t described) {
	for _, s := range settingsShown {
		if v, ok := t.settings[s]; ok {
			g.shown.Add(s, v)
		}
	}
	g.confirms = g.confirms.Weaker(g.guarantees.Of(decide(acks, t)))
	g.discards = append(g.discards, t.discards()...)
}

// longestRun is the maximum duration of a run: longer retention loses nothing.
const longestRun = 78 * time.Hour

// discards returns the settings by which a topic may drop messages during a run.
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

// Facts reads the running cluster's version, and looks up in a table what a confirmation of the
// topics means with acks ("0", "1", "all"). The weakest topic counts; without topics, a topic with
// one replica is assumed. Unavailable brokers confirm nothing and are not asked.
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
	led := len(topics) > 0
	for _, t := range meta.Topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			led = led && here[p.Leader]
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
	if led {
		f.Discarded = l.deleted(ctx, topics)
	}
	delete(f.Settings, "version")
	return f, nil
}

// deleted returns how many messages of topics the brokers have deleted, by age or size; nil: not
// known.
func (l *Link) deleted(ctx context.Context, topics []string) []driver.Discarded {
	short, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	starts, err := l.admin.ListStartOffsets(short, topics...)
	if err != nil || starts.Error() != nil {
		return nil
	}
	d := driver.Discarded{Counter: "log start offsets, read or not"}
	starts.Each(func(o kadm.ListedOffset) { d.Messages += uint64(max(0, o.Offset)) })
	return []driver.Discarded{d}
}

// topicFacts asks every available broker that holds a topic, because settings that a topic does not
// override come from each broker.
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

// MaxMessage returns the size of the largest message that all of the topics accept, in bytes,
// protocol overhead included.
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

// settings asks a broker (-1: any) for the effective settings of a resource, by name.
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

// decide returns the settings of a topic that determine what its confirmations mean. A partition
// never needs more in-sync replicas than it has (Partition.scala, effectiveMinIsr).
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

// Known implements driver.GuaranteePredictor: the settings of topics with that many replicas.
func (c *Common) Known(s driver.Servers) driver.Known {
	if s.Nodes == 0 {
		return driver.Known{"acks": c.Acks} // the topic may already exist
	}
	return foreseen(c.Acks, s.Replicas, cmp.Or(c.MinInsync, minInsync(s.Nodes)), cmp.Or(c.FlushMessages, c.Server.FlushMessages))
}

// KnownLog returns the settings of the transaction log.
func (c *Common) KnownLog(s driver.Servers) driver.Known {
	return foreseen("all", s.Nodes, minInsync(s.Nodes), c.Server.FlushMessages)
}

// minInsync is min.insync.replicas as the recipe sets it.
func minInsync(nodes int) int { return min(nodes, 2) }

func foreseen(acks string, replicas, need int, flush int64) driver.Known {
	return decide(acks, described{replicas, map[string]string{minISR: strconv.Itoa(need), flushMessages: strconv.FormatInt(flush, 10)}})
}
