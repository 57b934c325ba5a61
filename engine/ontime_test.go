package engine

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/weirmq/weir/measure"
)

// lazy is a system that answers in delay and delivers in late, and costs the pacer 3.5 ms with
// every tenth message: the next three are 2.5, 1.5 and 0.5 ms late.
func lazy(native bool) *fake {
	n := 0
	return &fake{native: native, delay: time.Millisecond, late: 3 * time.Millisecond, enter: func(_ context.Context, producer int) {
		if producer == 0 {
			if n++; n%10 == 0 {
				time.Sleep(3500 * time.Microsecond)
			}
		}
	}}
}

// Of ten messages three are late, one is slow itself, and all others take as long as the system.
func TestOnTimeResponseExcludesLateness(t *testing.T) {
	check := func(t *testing.T, raw *Raw, response measure.Kind, takes time.Duration) {
		t.Helper()
		onTime, _ := response.OnTime()
		for percent, late := range map[float64]time.Duration{
			60: 0, 70: 500 * time.Microsecond, 80: 1500 * time.Microsecond, 90: 2500 * time.Microsecond, 100: 3500 * time.Microsecond,
		} {
			within(t, response.String(), p(raw, response, percent), takes+late)
		}
		within(t, onTime.String()+" but for the slow", p(raw, onTime, 90), takes)
		within(t, onTime.String()+" of the slow", p(raw, onTime, 100), takes+3500*time.Microsecond)
	}
	virtual(t, func(t *testing.T) {
		raw := do(t, config(lazy(false), 1000))
		check(t, raw, measure.SendResponse, time.Millisecond)
		check(t, raw, measure.E2EResponse, 3*time.Millisecond)
	})
	virtual(t, func(t *testing.T) {
		check(t, ask(t, asks(lazy(false))), measure.RTTResponse, 6*time.Millisecond)
	})
	virtual(t, func(t *testing.T) {
		check(t, ask(t, asks(lazy(true))), measure.RTTResponse, 4*time.Millisecond)
	})
}

// Neither the wait for a slot nor that for the rest of a batch is subtracted. The receiver knows
// lateness to 0.2 % of the time between due and start.
func TestOnlyLatenessIsTakenFromAResponse(t *testing.T) {
	for _, x := range []struct{ batch, inFlight int }{{1, 2}, {1, 100}, {2, 100}} {
		virtual(t, func(t *testing.T) {
			cfg := config(lazy(false), 1000)
			cfg.InFlight, cfg.Plan.BatchMin, cfg.Plan.BatchMax = x.inFlight, x.batch, x.batch
			raw := do(t, cfg)
			mean := func(k measure.Kind) float64 { return raw.Snapshot.Kinds[k][measure.Measure].Mean() }
			late := mean(measure.SendLateness)
			for response, k := range map[measure.Kind]measure.Kind{measure.SendResponse: measure.SendOnTime, measure.E2EResponse: measure.E2EOnTime} {
				if off := math.Abs(mean(response) - late - mean(k)); off > 0.002*mean(response) || late == 0 {
					t.Errorf("%+v: %s is %.0f ns in the mean, %.0f of them late, and %s %.0f", x, response, mean(response), late, k, mean(k))
				}
			}
		})
	}
}

// within checks a duration to the width of a bucket and of the header's share.
func within(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if off := got - want; off < -want/500 || off > want/500 {
		t.Errorf("%s = %v; want %v", what, got, want)
	}
}
