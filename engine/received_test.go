package engine

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// A closed loop waits for the later of confirmation and delivery. Duplicates free no slot, and a
// failed message is not awaited.
func TestInFlightUntilConfirmedAndDelivered(t *testing.T) {
	for name, tt := range map[string]struct {
		system func() *fake
		want   uint64 // messages of 4 producers with 5 in flight, in a second
	}{
		"confirmed after 1 ms and received after 10": {func() *fake { return &fake{delay: time.Millisecond, late: 10 * time.Millisecond} }, 2000},
		"received after 1 ms and confirmed after 10": {func() *fake { return &fake{delay: 10 * time.Millisecond, late: time.Millisecond} }, 2000},
		"confirmed at once":                          {func() *fake { return &fake{late: 10 * time.Millisecond} }, 2000},
		"received three times": {func() *fake {
			return &fake{late: 10 * time.Millisecond, copies: func(_, _ int) int { return 3 }}
		}, 2000},
		"failed after 1 ms": {func() *fake {
			return &fake{delay: time.Millisecond, late: 10 * time.Millisecond, confirm: func(_, n int) error {
				if n%2 == 1 {
					return driver.ErrDisconnected
				}
				return nil
			}}
		}, 3640}, // each pair takes 10 ms and 1 ms
	} {
		for _, blocks := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				virtual(t, func(t *testing.T) {
					f := tt.system()
					f.blocks = blocks
					cfg := config(f, 1)
					cfg.Plan.Phases = nil
					cfg.Plan.WarmUp, cfg.WarmUp, cfg.Measure = 0, 100*time.Millisecond, time.Second
					cfg.Plan.Producers, cfg.InFlight, cfg.Received = 4, 5, true
					raw := do(t, cfg)
					if got := raw.Measured.Sent; got < tt.want-40 || got > tt.want+40 {
						t.Errorf("%d sent in a second; want %d", got, tt.want)
					}
				})
			})
		}
	}
}

// A loop with one message in flight waits for it to the end.
func TestLostMessageKeepsInFlightSlot(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{late: time.Millisecond, copies: func(_, n int) int {
			if n == 50 {
				return 0
			}
			return 1
		}}, 1000)
		cfg.InFlight, cfg.Received = 1, true
		raw := do(t, cfg)
		sent := raw.Measured.Sent
		if sent > 51 {
			t.Errorf("%d sent; want at most the 51 up to the lost one", sent)
		}
	})
}
