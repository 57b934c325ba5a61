package kafkaconn

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

// A Consumer is the part of a consumer that drivers share: its topics, its group, and the client
// used by Run.
type Consumer struct {
	Spec       driver.ConsumerSpec
	Group      string
	Partitions map[string]int // partition count by topic

	hold    *Hold
	sources map[string]int32 // by topic: the index of the destination
	link    atomic.Pointer[Link]
}

// prefetch is a consumer's prefetch if the scenario does not set it: a few milliseconds of commits
// at full speed.
const prefetch = 4096

// Consumer looks up a consumer's topics. Begin sets the group's start position, and Run joins the
// group, which is when messages start to arrive.
func (h *Hold) Consumer(ctx context.Context, spec driver.ConsumerSpec) (*Consumer, error) {
	if spec.Prefetch <= 0 {
		spec.Prefetch = prefetch
	}
	x := &Consumer{
		Spec: spec, Group: h.Group(spec.Subscription, spec.Durable), hold: h,
		Partitions: map[string]int{}, sources: map[string]int32{},
	}
	for i, d := range spec.Destinations {
		topic, partitions, err := h.topic(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.Partitions[topic], x.sources[topic] = partitions, int32(i)
	}
	return x, nil
}

// Begin starts the consumer's group at the position in its spec, unless the group has already
// begun.
func (x *Consumer) Begin(ctx context.Context) error {
	all, err := x.hold.among(ctx, x)
	if err != nil {
		return err
	}
	return x.hold.Begin(ctx, x.Group, x.Spec.Durable, all, x.Spec.From)
}

// Source returns the index of a topic's destination; -1: none.
func (x *Consumer) Source(topic string) int32 {
	if i, ok := x.sources[topic]; ok {
		return i
	}
	return -1
}

// Run joins the group with a client that has additional options, calls joined, and polls for r
// until ctx ends. It reports readiness and survived faults to sink. The client stays in the group
// until Close.
func (x *Consumer) Run(ctx context.Context, sink driver.Sink, r Reader, joined func(*Link) error, more ...kgo.Opt) error {
	m, err := x.hold.Join(ctx, Membership{
		Run: x.hold.Run.For(&x.Spec), Name: x.Spec.Name(), Group: x.Group, Partitions: x.Partitions, Reader: r, Fault: sink.Fault,
	}, more...)
	if err == nil {
		x.link.Store(m.Link)
		err = joined(m.Link)
	}
	if err == nil {
		err = m.Ready(ctx)
	}
	if err == nil && ctx.Err() == nil {
		sink.Ready()
		err = m.Poll(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Close leaves the group.
func (x *Consumer) Close(ctx context.Context) error {
	if link := x.link.Load(); link != nil {
		link.Close(ctx)
	}
	return nil
}
