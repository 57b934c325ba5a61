package kafkaconn

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

// A Consumer is what drivers have in common of a consumer: its topics, its group, and
// the client of its Run.
type Consumer struct {
	Spec       driver.ConsumerSpec
	Group      string
	Partitions map[string]int // how many each of its topics has

	hold    *Hold
	sources map[string]int32 // by topic, which of the destinations it is
	link    atomic.Pointer[Link]
}

// prefetch is that of a consumer where the scenario leaves it open: some milliseconds of
// commits at full speed.
const prefetch = 4096

// Consumer finds the topics of a consumer. Begin has its group begin, Run has it be a
// member: one is given messages from when it is one.
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

// Begin has the consumer's group begin where its spec says, if it has not begun.
func (x *Consumer) Begin(ctx context.Context) error {
	all, err := x.hold.among(ctx, x)
	if err != nil {
		return err
	}
	return x.hold.Begin(ctx, x.Group, x.Spec.Durable, all, x.Spec.From)
}

// Source returns which of the destinations a topic is; -1: none.
func (x *Consumer) Source(topic string) int32 {
	if i, ok := x.sources[topic]; ok {
		return i
	}
	return -1
}

// Run joins the group by a client with more options, calls joined, and
// polls for r until ctx ends. sink learns when the consumer is ready, and of what is
// survived. The client is left in the group, for Close.
func (x *Consumer) Run(ctx context.Context, sink driver.Sink, r Reader, joined func(*Link) error, more ...kgo.Opt) error {
	m, err := x.hold.Join(ctx, Membership{
		Run: x.hold.Run.For(&x.Spec), Name: fmt.Sprintf("consumer %s %d", x.Spec.Subscription, x.Spec.Index), Group: x.Group, Partitions: x.Partitions, Reader: r, Fault: sink.Fault,
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
