package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// BenchmarkConsumed measures a delivery of another run's message, in mode consume.
func BenchmarkConsumed(b *testing.B) {
	const atOnce = 1024
	x := newReceiving(b, atOnce)
	x.cfg.Mode = Consume
	for i := range x.deliveries {
		p := x.deliveries[i].Payload
		stamp.Put(p, &stamp.Stamp{Run: x.cfg.Run + 1, CRC: stamp.Checksum(p[stamp.Size:]), Seq: uint64(i)})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += atOnce {
		x.deliver(b)
	}
}

// By stream: what failed, what stayed unconfirmed, warm-up included; nothing for destinations of
// its own, which it removes.
func TestProduceRunRecordsItsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{
			confirm: func(_, n int) error {
				if n == 3 || n == 4 || n == 700 {
					return driver.ErrTooLarge
				}
				return nil
			},
			forget: func(_, n int) bool { return n >= 1090 },
		}
		cfg := config(f, 1000)
		cfg.Mode, cfg.Names, cfg.Drain = Produce, []string{"there"}, time.Second
		raw := do(t, cfg)
		want := []result.Stream{{
			Destination: "there", Sent: 1100,
			Failed: []result.Seqs{{First: 3, Last: 4}, {First: 700, Last: 700}}, Unconfirmed: []result.Seqs{{First: 1090, Last: 1099}},
		}}
		golden.Equal(t, want, raw.Streams, "")
		cfg = config(&fake{}, 1000)
		cfg.Mode = Produce
		if raw := do(t, cfg); raw.Streams != nil {
			t.Errorf("streams of destinations that are gone: %v", raw.Streams)
		}
	})
}

// What the earlier run confirmed is delivered or lost, what failed there but arrived is not
// foreign, and nothing has a latency.
func TestConsumeRunAccountsForEarlierRun(t *testing.T) {
	const other = 4711
	of := func(run, stream uint32, seq uint64) driver.Delivery {
		b := make([]byte, 64)
		stamp.Put(b, &stamp.Stamp{Run: run, Stream: stream, Seq: seq, Due: 5, CRC: stamp.Checksum(b[stamp.Size:])})
		return driver.Delivery{Payload: b, Source: int32(stream % 2)}
	}
	damaged := of(other, 0, 5)
	damaged.Payload[63]++
	streams := []result.Stream{
		{Destination: "a", Sent: 10, Failed: []result.Seqs{{First: 2, Last: 3}}, Unconfirmed: []result.Seqs{{First: 8, Last: 9}}},
		{Destination: "b", Sent: 3},
		{Destination: "a"},
	}
	all := []driver.Delivery{
		of(other, 0, 0), of(other, 0, 1), of(other, 0, 1), // twice
		of(other, 0, 3),   // failed
		of(other, 0, 9),   // not confirmed
		of(other, 0, 4),   // after a later one
		damaged,           // damaged too
		of(other, 1, 0),   //
		of(other, 1, 7),   // never sent
		of(other, 2, 0),   // likewise
		of(other+1, 0, 6), // of a third run
	} // of 9 confirmed: 0/0, 0/1, 0/4, 1/0 delivered, 0/5 corrupted, the other 4 lost
	want := result.Messages{
		Scheduled: 13, Sent: 13, Confirmed: 9, Failed: 2, Unconfirmed: 2, Delivered: 4, Corrupted: 1, Lost: 4,
		Duplicated: 1, Reordered: 2, FailedDelivered: 1, UnconfirmedDelivered: 1, Foreign: 3,
	}
	for name, tt := range map[string]struct {
		holds uint64
		want  func(*result.Messages)
	}{
		"run dry":        {0, func(*result.Messages) {}},
		"still holds it": {4, func(m *result.Messages) { m.Lost, m.Pending = 0, m.Lost }},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{
				feed: func(ctx context.Context, sink driver.Sink) error {
					for i := range all {
						_ = sink.Deliver(all[i : i+1])
						time.Sleep(time.Millisecond)
					}
					<-ctx.Done()
					return nil
				},
				backlog: func() (uint64, error) { return tt.holds, nil },
			}
			cfg := config(f, 100)
			cfg.Mode, cfg.Names, cfg.Plan.WarmUp, cfg.Plan.Destinations, cfg.Plan.Producers = Consume, []string{"a", "b"}, 0, 2, len(streams)
			cfg.Run, cfg.Of = other, streams
			raw := do(t, cfg)
			want := want
			tt.want(&want)
			if d := cmp.Diff(want, raw.All); d != "" {
				t.Errorf("%s, whole run: %s", name, d)
			}
			want.Foreign = 0 // which has no phase
			if d := cmp.Diff(want, raw.Measured); d != "" {
				t.Errorf("%s, window: %s", name, d)
			}
			for k := range measure.NumKinds {
				if n := raw.Snapshot.Kinds[k][measure.Measure].Total() + raw.Censored[k][measure.Measure].Total(); n > 0 && k != measure.Settle {
					t.Errorf("%s: %v has %d samples", name, k, n)
				}
			}
			if raw.OfRun != nil {
				t.Errorf("%s: what came of other runs is named although one was: %+v", name, raw.OfRun)
			}
		})
	}
}
