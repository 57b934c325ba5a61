package engine

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// frozen makes f stand still for that long, starting in 720 ms.
func (f *fake) frozen(freeze time.Duration) {
	from := time.Now().Add(720 * time.Millisecond)
	until := from.Add(freeze)
	f.hold = func() {
		if now := time.Now(); now.After(from) {
			time.Sleep(until.Sub(now))
		}
	}
	f.backlog = func() (uint64, error) {
		if now := time.Now(); now.After(from) && now.Before(until) {
			time.Sleep(askLimit)
			return 0, driver.ErrUnreachable
		}
		return 0, nil
	}
}

// A freeze across the plan's end loses nothing, whether the drain outlasts it or not.
func TestAFreezeIsNoLoss(t *testing.T) {
	for _, freeze := range []time.Duration{2900 * time.Millisecond, 8 * time.Second} {
		t.Run(freeze.String(), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				f := &fake{}
				f.frozen(freeze)
				raw := do(t, config(f, 100))
				expect(t, "lost", raw.All.Lost, 0)
				if freeze < 5*time.Second {
					expect(t, "delivered", raw.All.Delivered, 110)
				} else if raw.All.Pending < 30 || raw.All.Delivered < 60 {
					t.Errorf("%d of 110 are pending, %d delivered; want some 40 and 70", raw.All.Pending, raw.All.Delivered)
				}
			})
		})
	}
}
