package kafkaconn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/known"
)

// removeLimit limits how long removing groups may take when a Conn is closed.
const removeLimit = 5 * time.Second

// A Hold is the part of a driver.Conn that drivers share, for them to embed: the admin client, the
// known topics, and the groups created for one run.
type Hold struct {
	Link *Link
	Run  driver.Run

	cfg       *Common
	beginning sync.Mutex // held while a group's start position is set

	topics known.Table[string, struct{}] // known topics, including those that existed before

	mu     sync.Mutex
	groups map[string]bool // groups for which consumers were opened; true: durable
}

// Open connects, within ctx and 4 s, and checks that each broker is reachable at its advertised
// address.
func Open(ctx context.Context, cfg *Common, run driver.Run) (*Hold, error) {
	h := &Hold{Run: run, cfg: cfg, groups: map[string]bool{}}
	var err error
	if h.Link, err = h.Connect(ctx, run, "control", nil); err != nil {
		return nil, err
	}
	if err := h.Link.Advertised(ctx); err != nil {
		h.Link.Kill()
		return nil, err
	}
	return h, nil
}

// Connect creates another client for the Hold's brokers; see the function Connect.
func (h *Hold) Connect(ctx context.Context, run driver.Run, name string, lost func(error), more ...kgo.Opt) (*Link, error) {
	return Connect(ctx, &h.cfg.Options, run, name, lost, more...)
}

// topic returns a destination's topic, which must exist, and its partition count.
func (h *Hold) topic(ctx context.Context, destination string) (topic string, partitions int, err error) {
	if topic, err = Topic(h.Run, destination); err != nil {
		return "", 0, err
	}
	if partitions, err = h.Link.Partitions(ctx, topic); err != nil {
		return "", 0, err
	}
	h.topics.Note(topic, struct{}{})
	return topic, partitions, nil
}

// Declare creates a topic for each destination.
func (h *Hold) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		topic, err := Topic(h.Run, d.Name)
		if err == nil {
			err = h.Link.CreateTopic(ctx, topic, d, h.cfg.Settings())
		}
		if err == nil {
			h.topics.Note(topic, struct{}{})
		}
		return err
	})
}

// Delete removes the topics, and the offsets that this run's groups have committed for them.
func (h *Hold) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		topic, err := Topic(h.Run, d.Name)
		if err != nil {
			return err
		}
		return h.Remove(ctx, topic, d.Partitions)
	})
}

// Remove removes a topic, and the offsets that this run's groups have committed for it.
func (h *Hold) Remove(ctx context.Context, topic string, partitions int) error {
	for _, g := range h.made() {
		// The brokers do this on their own, but later.
		if err := h.Link.ForgetTopic(ctx, g, topic, max(partitions, 1)); err != nil {
			return fmt.Errorf("group %s: %w", g, err)
		}
	}
	if err := h.Link.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	h.topics.Forget(topic)
	return nil
}

// Facts reads the settings of the topics from every broker that holds them. The driver's table says
// what a confirmation means with these settings.
func (h *Hold) Facts(ctx context.Context, by driver.Confirmations) (driver.Facts, error) {
	f, err := h.Link.Facts(ctx, by, h.cfg.Acks, known.Names(&h.topics))
	if err != nil {
		return f, err
	}
	f.Settings["acks"], f.Settings["enable.idempotence"] = h.cfg.Acks, strconv.FormatBool(h.cfg.Idempotent())
	return f, nil
}

// Behind returns a subscription's lag: the messages after the group's committed offsets, plus the
// result of also, if not nil, for each topic.
func (h *Hold) Behind(ctx context.Context, subscription string, destinations []string, also func(ctx context.Context, topic string) (uint64, error)) (uint64, error) {
	return each.Sum(destinations, func(d string) (lag uint64, err error) {
		topic, err := Topic(h.Run, d)
		if err == nil {
			lag, err = h.Link.Lag(ctx, h.Group(subscription, false), topic)
		}
		if err != nil || also == nil {
			return lag, err
		}
		more, err := also(ctx, topic)
		return lag + more, err
	})
}

// Group returns a subscription's consumer group. A durable subscription, or one that was durable
// when a consumer of it was opened, keeps its own name.
func (h *Hold) Group(subscription string, durable bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if durable || h.groups[subscription] {
		return subscription
	}
	return Group(h.Run, subscription)
}

// made returns the groups removed with this Hold, sorted.
func (h *Hold) made() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for g, durable := range h.groups {
		if !durable {
			names = append(names, g)
		}
	}
	slices.Sort(names)
	return names
}

// among returns the topics whose positions are set with a consumer's group, and their partition
// counts. The first consumer of a group of this run includes all topics that the run created: a
// consumer of other topics may be opened once the group has members, and then brokers accept no
// offsets from non-members.
func (h *Hold) among(ctx context.Context, x *Consumer) (map[string]int, error) {
	h.mu.Lock()
	_, begun := h.groups[x.Group]
	h.mu.Unlock()
	if begun || x.Spec.Durable || h.Run.Existing {
		return x.Partitions, nil
	}
	all := maps.Clone(x.Partitions)
	for _, topic := range known.Names(&h.topics) {
		if all[topic] > 0 {
			continue
		}
		n, err := h.Link.Partitions(ctx, topic)
		if err != nil {
			return nil, err
		}
		all[topic] = n
	}
	return all, nil
}

// Begin sets a group's start position, unless it has already begun. Concurrent calls are
// serialized, so that the first one decides.
func (h *Hold) Begin(ctx context.Context, group string, durable bool, partitions map[string]int, from driver.Position) error {
	h.beginning.Lock()
	defer h.beginning.Unlock()
	h.mu.Lock()
	_, ours := h.groups[group]
	h.mu.Unlock()
	if !ours {
		led := map[string]int{}
		for t := range partitions {
			led[t] = 0
		}
		if err := h.takes(ctx, led); err != nil {
			return err
		}
	}
	if durable && !ours {
		if err := h.Link.Free(ctx, group, slices.Collect(maps.Keys(partitions))); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.groups[group] = durable
	h.mu.Unlock()
	return h.Link.Begin(ctx, group, partitions, from)
}

// Close removes the non-durable groups and closes the client.
func (h *Hold) Close(ctx context.Context) error {
	groups := h.made()
	h.mu.Lock()
	clear(h.groups)
	h.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	err := h.Link.DeleteGroups(short, groups...)
	h.Link.Close(ctx)
	return about("groups stay", err)
}
