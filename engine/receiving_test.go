package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
)

// TestACountIsReceivedUntilItsLastDelivery: a counted closed loop whose messages
// are confirmed at once and delivered 1 s later has a receiver's window that ends
// then, and every one of them is in its rate.
func TestACountIsReceivedUntilItsLastDelivery(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{delay: 10 * time.Millisecond, late: time.Second}, 100)
		cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.Messages, cfg.InFlight, cfg.Drain = nil, 0, 500, 10, 10*time.Second
		raw := do(t, cfg)
		d := raw.Receiving
		expect(t, "received", d.Messages, 500)
		if sent := time.Duration(raw.To - raw.From); !near(sent, 500*time.Millisecond) {
			t.Errorf("the sender's window is %v; want 0.5 s", sent)
		}
		if got := time.Duration(d.To - d.From); !near(got, 1490*time.Millisecond) {
			t.Errorf("the receiver's window is %v; want 1.49 s", got)
		}
		if perS, _, known := d.PerSecond(); !known || perS < 325 || perS > 345 {
			t.Errorf("received %v/s, known %t; want 500 in 1.49 s", perS, known)
		}
	})
}

// TestARunThatOnlyReceivesCountsFromItsFirstCall: of two client calls the first is
// before the window, and one alone gives no rate.
func TestARunThatOnlyReceivesCountsFromItsFirstCall(t *testing.T) {
	for _, tt := range []struct {
		calls, each int
		perS        float64
		known       bool
	}{{2, 1000, 1000, true}, {1, 2000, 0, false}, {20, 100, 100, true}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{feed: func(ctx context.Context, sink driver.Sink) error {
				time.Sleep(time.Second)
				for range tt.calls {
					ds := make([]driver.Delivery, tt.each)
					for i := range ds {
						ds[i].Payload = make([]byte, 64)
					}
					_ = sink.Deliver(ds)
					time.Sleep(time.Second)
				}
				<-ctx.Done()
				return nil
			}}
			cfg := config(f, 100)
			cfg.Mode, cfg.Names, cfg.Plan.WarmUp = Consume, []string{"there"}, 0
			raw := do(t, cfg)
			d := raw.Receiving
			expect(t, "received", d.Messages, tt.calls*tt.each)
			expect(t, "of them in the first call", d.Opening, tt.each)
			perS, bytes, known := d.PerSecond()
			if perS != tt.perS || bytes != tt.perS*64 || known != tt.known {
				t.Errorf("%d calls of %d: %v/s, %v B/s, known %t; want %v/s, known %t", tt.calls, tt.each, perS, bytes, known, tt.perS, tt.known)
			}
		})
	}
}
