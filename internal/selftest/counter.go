package selftest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

const (
	counterTakes  = 150 * time.Millisecond // until a clock follows the counter
	counterPause  = 20 * time.Microsecond  // between readings, so that threads change cores
	tightBracket  = 500                    // ns; of a wider one the middle says too little
	counterBound  = 1000                   // ns: beyond it a run gives up the counter
	counterReader = 2                      // goroutines
)

// counterError compares the clock of a run with CLOCK_MONOTONIC, which it replaces, from several threads
// at once: each reading of a run's clock is bracketed by two of the other.
func counterError(ctx context.Context, o Options) (Check, error) {
	const name, what = "clock", "readings of the processor's counter, as a run takes them, against CLOCK_MONOTONIC: how far apart"
	counted := pace.NewClock()
	plain := pace.NewClock().At(counted.Epoch().MonotonicNS)
	stop := counted.Follow(func(string) {})
	defer stop()
	if err := sleep(ctx, counterTakes); err != nil {
		return Check{}, err
	}
	apart := measure.NewHistogram()
	end := counted.Now() + int64(max(300*time.Millisecond, time.Duration(o.Scale*float64(3*time.Second))))
	var all sync.WaitGroup
	for range counterReader {
		all.Go(func() {
			for ctx.Err() == nil && counted.Now() < end {
				before := plain.Now()
				now := counted.Now()
				after := plain.Now()
				if after-before <= tightBracket {
					apart.Record(abs(now - (before+after)/2))
				}
				time.Sleep(counterPause)
			}
		})
	}
	all.Wait()
	f := stop()
	if f.Counter == "" {
		return notRun(name, what, errors.New("weir reads CLOCK_MONOTONIC itself here")), ctx.Err()
	}
	var c measure.Counts
	apart.Read(&c)
	// The two clocks have an epoch each, known within their errors.
	allowed := counted.Epoch().ErrorNS + plain.Epoch().ErrorNS + tightBracket/2 + counterBound
	check := Check{Name: name, What: what, Attempts: 1, Samples: c.Total()}
	row := func(what string, got int64) {
		check.Rows = append(check.Rows, Row{What: what, Unit: Nanoseconds, Got: got, Tolerance: allowed, OK: got <= allowed, Says: true, Waiting: -1})
	}
	for _, p := range []float64{50, 99, 99.9} {
		row(fmt.Sprintf("apart, p%g", p), c.Percentile(p))
	}
	row("apart, max", c.Max())
	row(f.Counter+": what a run reports (clock_within_ns)", f.BoundNS)
	check.judge()
	return check, ctx.Err()
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
