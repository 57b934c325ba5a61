package selftest

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/schedule"
)

// A planting is a run against a queue with planted faults.
type planting struct {
	name                                string
	producers, subscriptions, consumers int
}

func plantings() []planting {
	return []planting{
		{"planted faults, one consumer", 1, 1, 1},
		{"planted faults, competing consumers", 4, 2, 3},
	}
}

// The load of a planting: whole periods of every producer, at a rate at which the run takes half a
// second.
const (
	plantedMessages = 2000
	plantedRate     = 4000
	// A message counts as lost only after the subscription has been idle for 2 s. Some messages are never
	// confirmed, so the drain takes as long as it may.
	plantedDrain = 2500 * time.Millisecond
	// The drain of a host on which the former was too short: messages were still pending.
	slowDrain = 30 * time.Second
)

func (p planting) check(ctx context.Context, o Options) (Check, error) {
	c, pending, err := p.drained(ctx, o, plantedDrain)
	if pending > 0 {
		c, _, err = p.drained(ctx, o, slowDrain)
		c.Attempts++
	}
	return c, err
}

// drained does the run, and also returns how many messages its drain was too short for.
func (p planting) drained(ctx context.Context, o Options, drain time.Duration) (c Check, pending uint64, err error) {
	q := &queue{room: 4 * plantedMessages}
	r := schedule.PerSecond(plantedRate)
	raw, err := coordinator.Alone(ctx, nil, engine.Config{
		RunID: "truth", Run: runNumber, Definition: q.definition(), Options: q,
		Plan: schedule.Spec{
			Seed: 1, Phases: []schedule.Phase{{From: r, To: r}}, Messages: plantedMessages,
			Producers: p.producers, Destinations: 1, BatchMin: 1, BatchMax: 1, Sizes: []schedule.WeightedSize{{Bytes: size, Weight: 1}},
		},
		Mode: engine.Stream, Subscriptions: p.subscriptions, Consumers: p.consumers, Settle: driver.SettleNone,
		InFlight: plantedMessages, Drain: drain, Pacers: 1,
		// Nothing is timed: an empty calibration leaves the process's settings alone, so that this can run
		// beside a timed check.
		Calibration: pace.Calibration{}, Clock: pace.NewClock(), Log: o.Log,
	})
	if err != nil {
		return Check{}, 0, fmt.Errorf("running against a queue with planted faults: %w", err)
	}
	if raw.Interrupted {
		return Check{}, 0, fmt.Errorf("running against a queue with planted faults: %w", context.Cause(ctx))
	}
	n, m := q.count, raw.All
	c = Check{
		Name: p.name, Attempts: 1, Samples: n.taken,
		What: fmt.Sprintf("what became of each message, counted exactly; producers %d, subscriptions %d, consumers %d", p.producers, p.subscriptions, p.consumers),
		Rows: []Row{
			exactly("sent", plantedMessages, m.Sent),
			exactly("confirmed", n.confirmed, m.Confirmed),
			exactly("failed", n.failed, m.Failed),
			exactly("unconfirmed", n.forgotten, m.Unconfirmed),
			exactly("delivered", n.delivered, m.Delivered),
			exactly("lost", n.lost, m.Lost),
			exactly("pending", 0, m.Pending),
			exactly("corrupted", n.corrupted, m.Corrupted),
			exactly("duplicated", n.duplicated, m.Duplicated),
			exactly("redelivered", n.redelivered, m.Redelivered),
			exactly("reordered", n.reordered, m.Reordered),
			exactly("foreign", n.foreign, m.Foreign),
			exactly("unknown", 0, m.Unknown),
			exactly("misrouted", 0, m.Misrouted),
			exactly("failed_delivered", n.failedDelivered, m.FailedDelivered),
			exactly("unconfirmed_delivered", n.forgotDeliv, m.UnconfirmedDelivered),
		},
	}
	c.judge()
	return c, m.Pending, nil
}
