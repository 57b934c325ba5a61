package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
)

// In a counted closed loop whose messages are confirmed at once and delivered 1 s later, the
// receiver's window ends then, and its rate includes every message.
func TestReceiveWindowEndsAtLastCountedDelivery(t *testing.T) {
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

// Of two client calls the first is before the window, and a single one gives no rate.
func TestConsumeRateStartsAfterFirstClientCall(t *testing.T) {
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

// By their headers, if these are intact.
func TestForeignMessagesNameTheirRun(t *testing.T) {
	const other = 4711
	of := func(run uint32) []byte {
		b := make([]byte, 64)
		stamp.Put(b, &stamp.Stamp{Run: run, CRC: stamp.Checksum(b[stamp.Size:])})
		return b
	}
	damaged, broken := of(other), of(other)
	damaged[63]++
	broken[20]++
	for name, tt := range map[string]struct {
		came [][]byte
		want *OfRun
	}{
		"one run":          {[][]byte{of(other), of(other)}, &OfRun{Run: other, Messages: 2}},
		"a damaged body":   {[][]byte{of(other), damaged}, &OfRun{Run: other, Messages: 2, Corrupted: 1}},
		"two runs":         {[][]byte{of(other), of(other + 1)}, &OfRun{Run: other, Several: true, Messages: 2}},
		"others as well":   {[][]byte{make([]byte, 64), of(other), broken}, &OfRun{Run: other, Messages: 1}},
		"no run of weir's": {[][]byte{make([]byte, 64), nil}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{feed: func(ctx context.Context, sink driver.Sink) error {
				for _, b := range tt.came {
					_ = sink.Deliver([]driver.Delivery{{Payload: b}})
				}
				<-ctx.Done()
				return nil
			}}
			cfg := config(f, 100)
			cfg.Mode, cfg.Names, cfg.Plan.WarmUp = Consume, []string{"there"}, 0
			raw := do(t, cfg)
			if d := cmp.Diff(tt.want, raw.OfRun); d != "" {
				t.Errorf("%s: %s", name, d)
			}
			expect(t, name, raw.All.Foreign, len(tt.came))
		})
	}
}

func TestConsumersOfTwoRunsReportTwo(t *testing.T) {
	a, b, none := OfRun{Run: 1, Messages: 2}, OfRun{Run: 2, Messages: 3, Corrupted: 1}, OfRun{}
	sum := none
	for _, o := range []OfRun{none, a, none, b} {
		sum.merge(&o)
	}
	if want := (OfRun{Run: 1, Several: true, Messages: 5, Corrupted: 1}); sum != want {
		t.Errorf("got %+v; want %+v", sum, want)
	}
}
