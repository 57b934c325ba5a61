package measure

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTopNKeepsSlowest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for order, latency := range map[string]func(i int64) int64{
		"in no order":       func(int64) int64 { return 1 + random.Int64N(1_000_000) },
		"slower each":       func(i int64) int64 { return 1 + i },
		"faster each":       func(i int64) int64 { return 1_000_000 - i },
		"slower by and by":  func(i int64) int64 { return 1 + i/7 + random.Int64N(30) },
		"fast and slow":     func(i int64) int64 { return 1 + i%2*1_000 + i },
		"a few to be found": func(i int64) int64 { return 1 + i*7_919%10_007 },
	} {
		for _, n := range []int{0, 1, MostSlow - 1, MostSlow, MostSlow + 1, slowRoom, 5000} {
			var p TopN
			all := make([]Slow, n)
			var latencies []int64 // of equal ones any may be kept
			for i := range all {
				all[i] = Slow{Due: int64(i), Start: int64(i), At: int64(i) + latency(int64(i)), Stream: 1, Seq: uint64(i)}
				p.Offer(all[i])
				latencies = append(latencies, all[i].Latency())
			}
			slices.Sort(latencies)
			var got []int64
			for _, x := range p.Kept() {
				got = append(got, x.Latency())
				if x != all[x.Seq] {
					t.Errorf("%s: kept %+v, was offered %+v", order, x, all[x.Seq])
				}
			}
			if d := cmp.Diff(latencies[max(0, n-MostSlow):], got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s, %d messages (-want +got):\n%s", order, n, d)
			}
		}
	}
}

// Offers increasingly slow messages, the worst case, from many goroutines.
func TestTopNMergesManySources(t *testing.T) {
	var p TopN
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2000 {
				p.Offer(Slow{At: int64(8*i + g), Stream: uint32(g)})
			}
		})
	}
	all.Wait()
	for i, x := range Slowest(p.Kept()) {
		if want := int64(8*2000 - 1 - i); x.Latency() != want {
			t.Errorf("place %d took %d; want %d", i, x.Latency(), want)
		}
	}
}

func TestOnlyTheMeasuredWindowHasSlowestMessages(t *testing.T) {
	r := NewRecorder(Config{SendShards: 2, ReceiveShards: 1, ReplyShards: 1, From: 100, To: 200})
	r.Sender(0).Timed(99, 100, 900, 0, 0)
	if !r.Sender(0).Confirmed(100, 110, 150, 0) || !r.Receiver(0).Delivered(150, 150, 160, 0) {
		t.Error("a message that is not fast was not said to be slow")
	}
	r.Sender(0).Timed(100, 110, 150, 0, 1)
	r.Sender(1).Timed(120, 120, 220, 0, 2)
	r.Receiver(0).Timed(150, 150, 160, 0, 3)
	r.Replier(0).Timed(150, 150, 170, 0, 4)
	seqs := func(k Kind) (all []uint64) {
		for _, x := range r.Slowest(k) {
			all = append(all, x.Seq)
		}
		return all
	}
	for k, want := range map[Kind][]uint64{SendResponse: {2, 1}, E2EResponse: {3}, RTTResponse: {4}} {
		if got := seqs(k); !slices.Equal(got, want) {
			t.Errorf("%v: %v; want %v", k, got, want)
		}
	}
	r = NewRecorder(Config{From: 100, To: 200, Closed: true, Replied: true})
	r.Sender(0).Timed(0, 110, 150, 0, 0) // there is no schedule, and Due means nothing
	if got := r.Slowest(RTTResponse); len(got) != 1 || got[0].Latency() != 40 || len(r.Slowest(SendResponse)) != 0 {
		t.Errorf("in a closed loop: %v", got)
	}
}

func TestOfferingAllocatesNothing(t *testing.T) {
	r := NewRecorder(Config{From: 0, To: 1 << 60})
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		at++
		r.Sender(0).Timed(0, 0, at, 1, 2)
		r.Receiver(0).Timed(0, 0, 1, 1, 2)
	}); n != 0 {
		t.Fatalf("%g allocations", n)
	}
}

// BenchmarkTimed measures the overhead for a message that is not one of the slowest, and for
// increasingly slow ones.
func BenchmarkTimed(b *testing.B) {
	for name, step := range map[string]int64{"fast": 0, "slower each": 1} {
		b.Run(name, func(b *testing.B) {
			r := NewRecorder(Config{From: 0, To: 1 << 60})
			for i := range int64(MostSlow) {
				r.Sender(0).Timed(0, 0, 1e6+i, 1, 2)
			}
			at := int64(1e5) + step*1e6
			b.ReportAllocs()
			for b.Loop() {
				at += step
				r.Sender(0).Timed(0, 0, at, 1, 2)
			}
		})
	}
}
