package kafkaconn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// removeLimit bounds the removing of groups when a Conn is closed.
const removeLimit = 5 * time.Second

// A Hold is what drivers have in common of a hold on a cluster for one run: the
// client by which they manage, the topics that they know, the groups that they made.
type Hold struct {
	Link    *Link
	Options *Options
	Run     driver.Run

	say       string     // the driver's name, in errors
	beginning sync.Mutex // held while a group begins

	mu       sync.Mutex
	declared map[string]bool // topics, those that exist without weir included
	groups   map[string]bool // that consumers were opened of; true: durable
}

// Open connects for the driver of the name, within ctx and 4 s, and finds out
// whether each broker can be reached at the address that it advertises.
func Open(ctx context.Context, name string, o *Options, run driver.Run) (*Hold, error) {
	link, err := Connect(ctx, o, run, "control", nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := link.Advertised(ctx); err != nil {
		link.Kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Hold{Link: link, Options: o, Run: run, say: name, declared: map[string]bool{}, groups: map[string]bool{}}, nil
}

// Remember has the facts cover a topic.
func (h *Hold) Remember(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.declared[topic] = true
}

// Forget is the inverse of Remember.
func (h *Hold) Forget(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.declared, topic)
}

// Declared returns the topics that the facts cover, sorted.
func (h *Hold) Declared() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.declared))
}

// Topics returns the topics of destinations, which must exist, and how many
// partitions each has.
func (h *Hold) Topics(ctx context.Context, destinations []string) (names map[string]string, partitions map[string]int, err error) {
	names, partitions = map[string]string{}, map[string]int{}
	for _, d := range destinations {
		topic, err := Topic(h.Run, d)
		if err == nil {
			partitions[topic], err = h.Link.Partitions(ctx, topic)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("destination %s: %w", d, err)
		}
		names[d] = topic
		h.Remember(topic)
	}
	return names, partitions, nil
}

// Sources is Topics for a consumer: which of the destinations each topic is, by
// index.
func (h *Hold) Sources(ctx context.Context, destinations []string) (sources map[string]int32, partitions map[string]int, err error) {
	names, partitions, err := h.Topics(ctx, destinations)
	if err != nil {
		return nil, nil, err
	}
	sources = map[string]int32{}
	for i, d := range destinations {
		sources[names[d]] = int32(i)
	}
	return sources, partitions, nil
}

// Source returns which destination a topic is; -1: none.
func Source(sources map[string]int32, topic string) int32 {
	if i, ok := sources[topic]; ok {
		return i
	}
	return -1
}

// Group returns the consumer group of a subscription: its own name where that is
// durable, or was when a consumer of it was opened.
func (h *Hold) Group(subscription string, durable bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if durable || h.groups[subscription] {
		return subscription
	}
	return Group(h.Run, subscription)
}

// Made returns the groups that go with this Hold, sorted.
func (h *Hold) Made() []string {
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

// Begin has a group begin at a position, if it has not begun. Consumers that are
// opened at once come one after the other, so that the first decides.
func (h *Hold) Begin(ctx context.Context, group string, durable bool, partitions map[string]int, from driver.Position) error {
	h.beginning.Lock()
	defer h.beginning.Unlock()
	h.mu.Lock()
	_, ours := h.groups[group]
	h.mu.Unlock()
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

// Delete removes a topic, and what the groups made have committed of it.
func (h *Hold) Delete(ctx context.Context, topic string, partitions int) error {
	for _, g := range h.Made() {
		// The brokers do it by themselves, but later.
		if err := h.Link.ForgetTopic(ctx, g, topic, max(partitions, 1)); err != nil {
			return fmt.Errorf("group %s: %w", g, err)
		}
	}
	if err := h.Link.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	h.Forget(topic)
	return nil
}

// Close removes the groups made, but for durable ones, and ends the client.
func (h *Hold) Close(ctx context.Context) error {
	groups := h.Made()
	h.mu.Lock()
	clear(h.groups)
	h.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	err := h.Link.DeleteGroups(short, groups...)
	h.Link.Close(ctx)
	if err != nil {
		return fmt.Errorf("%s: groups stay: %w", h.say, err)
	}
	return nil
}
