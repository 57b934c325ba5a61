package selftest

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// Turns of a cost measurement: as long as the ceiling's first quarter of a million messages, preceded
// by half of that.
const (
	costTurn   = 100 * time.Millisecond
	costWarmUp = 50 * time.Millisecond
	records    = 20_000
)

// Cost measures what the instrument itself costs on this host, for messages of a plan's sizes, keys
// and batches. It measures a pacer's throughput with the driver noop only if the plan's rate per pacer
// is high enough to matter, which takes 0.15 s; it always measures the cost of recording, which takes
// some milliseconds. No other run may be in progress.
func Cost(ctx context.Context, plan schedule.Spec, cal pace.Calibration, pacers int) (result.Cost, error) {
	c := result.Cost{RecordNS: recordCost(engine.Stages(plan))}
	if judge.Light(c, engine.HighestRate(plan)/float64(max(1, pacers))) {
		return c, nil
	}
	cfg := noopRun(Options{}, cal)
	cfg.WarmUp, cfg.Measure = costWarmUp, costTurn
	cfg.Plan.Sizes, cfg.Plan.Keys = plan.Sizes, plan.Keys
	cfg.Plan.BatchMin, cfg.Plan.BatchMax = plan.BatchMin, plan.BatchMax
	var largest int
	for _, s := range plan.Sizes {
		largest = max(largest, s.Bytes)
	}
	var err error
	if cfg.InFlight, err = engine.InFlight(0, 1, largest, plan.BatchMax, false, 1<<30, driver.Intake{}); err != nil {
		return c, fmt.Errorf("measuring the ceiling: %w", err)
	}
	raw, err := coordinator.Alone(ctx, nil, cfg)
	if err != nil {
		return c, fmt.Errorf("measuring the ceiling: %w", err)
	}
	if s := float64(raw.To-raw.From) / 1e9; s > 0 {
		c.CeilingPerS = float64(raw.Snapshot.Window.Sent) / s
	}
	return c, nil
}

// recordCost returns the cost, in ns, of recording everything about a message: hand-over, confirmation
// and delivery, in a run with the given stages.
func recordCost(stages []int64) float64 {
	clock := pace.NewClock()
	cfg := measure.Config{From: 0, To: int64(time.Hour), Bytes: size}
	if len(stages) > 0 {
		cfg.From, cfg.To, cfg.Stages = stages[0], stages[0]+int64(time.Hour), stages
	}
	r := measure.NewRecorder(cfg)
	s, k := r.Sender(0), r.Receiver(0)
	start := clock.Now()
	for i := range int64(records) {
		due := cfg.From + i*1000
		s.Handed(due, due, due+i%5000, i%300, due+i%5000, size)
		s.Confirmed(due, due+i%5000, due+200_000+i%7000, i%5000)
		k.Received(due+300_000, 1, size)
		k.Delivered(due, due+i%5000, due+300_000+i%9000, i%5000)
	}
	return float64(clock.Now()-start) / records
}
