package selftest

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// Figures describes the instrument's cost and its punctuality on this host.
type Figures struct {
	Cores       int              `json:"cores"` // available to this process
	Calibration pace.Calibration `json:"calibration"`
	Slept       Spread           `json:"wake_up_sleeping"` // ns after the requested instant, without spinning
	Spun        Spread           `json:"wake_up_spinning"` // spinning for the calibrated margin
	Hiccups     Spread           `json:"hiccups"`          // of the host, over about a second
	Ceiling     Ceiling          `json:"ceiling"`
	Lateness    []Punctuality    `json:"lateness"` // by rate
}

// A Ceiling is the highest rate of one producer of 64-byte messages with a driver that does nothing (noop),
// in a closed loop. Message and floor are measured in pairs, one right after the other. All figures
// except the interval are from the pair with the median ratio, so that they are consistent.
type Ceiling struct {
	MessagesPerSecond float64 `json:"messages_per_s"`
	MessageNS         float64 `json:"message_ns"` // total: choose, write the header, hand over, complete, account
	FloorNS           float64 `json:"floor_ns"`   // two clock readings, one histogram record, one checksum of 64 bytes
	Ratio             float64 `json:"ratio"`      // MessageNS / FloorNS
	RatioLo           float64 `json:"ratio_lo"`   // 95 % interval of the median ratio over all pairs
	RatioHi           float64 `json:"ratio_hi"`
	Pairs             int     `json:"pairs"` // number of pairs
}

// A Punctuality is the lateness of messages at one rate, with the driver noop.
type Punctuality struct {
	Rate    float64 `json:"rate_per_s"`
	Sent    float64 `json:"sent_per_s"`
	Reached bool    `json:"reached"` // Sent is at least 99.5 % of Rate
	Spread
}

// reached is the share of the offered rate that must be achieved, as in the verdict of a run.
const reached = 0.995

// lateRates are the rates at which the lateness is measured, in messages per second.
var lateRates = [...]uint64{1_000, 10_000, 100_000, 1_000_000}

// Measure takes the figures. It takes about 10 s at scale 1, during which it keeps a core busy. The
// error is ctx's when it ends, or that of a failed run.
func Measure(ctx context.Context, o Options) (*Figures, error) {
	o = o.defaults()
	f := &Figures{Cores: runtime.NumCPU(), Calibration: pace.Calibrate(1)}
	scaled := func(full time.Duration) time.Duration {
		return max(100*time.Millisecond, time.Duration(float64(full)*o.Scale))
	}
	sleeping, spinning := f.Calibration, f.Calibration
	sleeping.Spin, spinning.Spin = false, true
	f.Slept = wakeUps(ctx, sleeping, scaled(time.Second))
	f.Spun = wakeUps(ctx, spinning, scaled(time.Second))
	f.Hiccups = hiccups(ctx, scaled(time.Second))
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	var err error
	if f.Ceiling, err = ceiling(ctx, o, f.Calibration, scaled(1250*time.Millisecond)); err != nil {
		return f, err
	}
	for _, r := range lateRates {
		p, err := punctuality(ctx, o, f.Calibration.At(float64(r)), r, scaled(time.Second))
		if err != nil {
			return f, err
		}
		f.Lateness = append(f.Lateness, p)
	}
	return f, nil
}

// wakeUps waits for instants 0.3 to 1.3 ms apart, not aligned with the kernel's tick, for the given
// time.
func wakeUps(ctx context.Context, cal pace.Calibration, long time.Duration) Spread {
	clock := pace.NewClock()
	w := pace.NewWaiter(clock, cal)
	defer w.Lock()()
	var late measure.Counts
	now := clock.Now()
	for i, end := int64(0), now+int64(long); now < end && ctx.Err() == nil; i++ {
		t := now + 300_000 + i*618_033%1_000_000
		now = w.Until(t)
		late.Add(now-t, 1)
	}
	return *spread(&late)
}

func hiccups(ctx context.Context, long time.Duration) Spread {
	late := measure.NewHistogram()
	stop := host.StartHiccups(pace.NewClock(), 0, host.HiccupPeriod, func(_, overshoot int64) { late.Record(overshoot) })
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
	stop()
	var c measure.Counts
	late.Read(&c)
	return *spread(&c)
}

// noopRun returns a run of one producer of 64-byte messages with the driver noop.
func noopRun(o Options, cal pace.Calibration) engine.Config {
	d := noop.Definition()
	inFlight, err := engine.InFlight(0, 1, size, 1, false, 1<<30, driver.Intake{})
	if err != nil {
		inFlight = 1 // impossible: the default always fits
	}
	return engine.Config{
		RunID: "calibrate", Run: runNumber, Definition: d, Options: d.New(),
		Plan: schedule.Spec{
			Seed: 1, Producers: 1, Destinations: 1, BatchMin: 1, BatchMax: 1, Sizes: []schedule.WeightedSize{{Bytes: size, Weight: 1}},
		},
		Mode: engine.Produce, Settle: driver.SettleNone, InFlight: inFlight, Drain: time.Second,
		Pacers: 1, Calibration: cal, Clock: pace.NewClock(), Log: o.Log,
	}
}

// pairs is how often the ceiling is measured together with its floor: odd, so that one pair is the
// median, and enough for an interval that excludes the extremes.
const pairs = 11

// ceiling runs the closed loop and the floor alternately, so that a change of the host's speed affects
// both. long is the total time for each of them.
func ceiling(ctx context.Context, o Options, cal pace.Calibration, long time.Duration) (Ceiling, error) {
	turn := long / pairs
	clock := pace.NewClock() // as a run's
	defer clock.Follow(func(string) {})()
	if err := sleep(ctx, counterTakes); err != nil {
		return Ceiling{}, err
	}
	var measured []Ceiling
	for range pairs {
		cfg := noopRun(o, cal)
		// Run as long again first: a run's first quarter of a million messages cost slightly more, as the
		// ledger timestamps each of them, and later only one in many.
		cfg.WarmUp, cfg.Measure = turn, turn
		raw, err := coordinator.Alone(ctx, nil, cfg)
		if err != nil {
			return Ceiling{}, fmt.Errorf("measuring the ceiling: %w", err)
		}
		if ctx.Err() != nil {
			return Ceiling{}, ctx.Err()
		}
		m := float64(raw.To-raw.From) / float64(max(1, raw.Snapshot.Window.Sent))
		f := floorCost(clock, turn)
		measured = append(measured, Ceiling{MessagesPerSecond: 1e9 / m, MessageNS: m, FloorNS: f, Ratio: m / f})
	}
	return middlePair(measured), nil
}

// middlePair returns the pair with the median ratio, with that ratio's interval (order statistics:
// stats.QuantileRanks).
func middlePair(measured []Ceiling) Ceiling {
	slices.SortFunc(measured, func(a, b Ceiling) int { return cmp.Compare(a.Ratio, b.Ratio) })
	c := measured[len(measured)/2]
	lo, hi, _ := stats.QuantileRanks(uint64(len(measured)), 50, 0.95)
	c.RatioLo, c.RatioHi, c.Pairs = measured[lo-1].Ratio, measured[hi-1].Ratio, len(measured)
	return c
}

// floorCost returns the cost, in ns, of what any honest instrument does for a message, with the clock that
// a run reads.
func floorCost(clock *pace.Clock, long time.Duration) float64 {
	h := measure.NewHistogram()
	var body [size]byte
	start := clock.Now()
	n := 0
	for end := start + int64(long); clock.Now() < end; {
		const block = 1000 // so that reading the clock for the loop itself does not count
		for range block {
			a := clock.NowUnordered()
			crc := stamp.Checksum(body[:])
			body[0] = byte(crc)
			h.Record(clock.Now() - a)
		}
		n += block
	}
	return float64(clock.Now()-start) / float64(n)
}

// punctuality runs the open loop at a rate.
func punctuality(ctx context.Context, o Options, cal pace.Calibration, perSecond uint64, long time.Duration) (Punctuality, error) {
	cfg := noopRun(o, cal)
	r := schedule.PerSecond(perSecond)
	cfg.Plan.WarmUp = long / 5
	cfg.Plan.Phases = []schedule.Phase{{From: r, To: r, For: long}}
	raw, err := coordinator.Alone(ctx, nil, cfg)
	if err != nil {
		return Punctuality{}, fmt.Errorf("measuring the lateness at %v: %w", r, err)
	}
	if ctx.Err() != nil {
		return Punctuality{}, ctx.Err()
	}
	sent := float64(raw.Snapshot.Window.Sent) / long.Seconds()
	return Punctuality{
		Rate: r.PerSecond(), Sent: sent, Reached: sent >= reached*r.PerSecond(),
		Spread: *spread(&raw.Snapshot.Kinds[measure.SendLateness][measure.Measure]),
	}, nil
}
