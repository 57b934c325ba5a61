package measure

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/internal/golden"
)

func read(r *Recorder) *Snapshot {
	var s Snapshot
	r.Read(0, &s)
	return &s
}

func TestOpenLoopMessageCountsInItsPhase(t *testing.T) {
	r := NewRecorder(Config{From: 1000, To: 2000})
	s, v := r.Sender(3), r.Receiver(7)
	s.Scheduled(1500)
	s.Handed(1490, 1500, 1510, 7, 1530, 64)
	s.Confirmed(1490, 1530, 2600, 10)
	v.Received(2000, 1, 64)
	v.Delivered(1490, 1530, 1999, 9)
	v.Settled(1999, 2100, Measure)
	s.Scheduled(999)
	s.Handed(999, 999, 1001, 0, 1001, 32)
	s.Failed(999, 1001, 1099)
	got := read(r)
	for k, want := range map[Kind]int64{
		SendResponse: 1110, SendOnTime: 1100, SendService: 1070, SendLateness: 10, SendHeldUp: 7, SendBlocked: 20, E2EResponse: 509, E2EOnTime: 500, E2EService: 469, Settle: 101,
	} {
		if c := &got.Kinds[k][Measure]; c.Total() != 1 || c.Max() != want {
			t.Errorf("%v: %d values, at most %d ns; want one of %d", k, c.Total(), c.Max(), want)
		}
	}
	if c := &got.Kinds[SendFailed][WarmUp]; c.Total() != 1 || c.Max() != 100 {
		t.Errorf("%d failed, at most %d ns", c.Total(), c.Max())
	}
	want := [NumPhases]Counters{
		WarmUp:  {Scheduled: 1, Sent: 1, Failed: 1},
		Measure: {Scheduled: 1, Sent: 1, Confirmed: 1, Settled: 1, Received: 1},
	}
	golden.Equal(t, want, got.Counters, "")
	// Both were started in the window; the confirmation and the delivery came after it.
	golden.Equal(t, Window{Sent: 2, SentBytes: 96}, got.Window, "")
}

func TestClosedLoopRecordsOnlyServiceTimes(t *testing.T) {
	r := NewRecorder(Config{From: 1000, To: 2000, Closed: true})
	s, v := r.Sender(0), r.Receiver(0)
	s.Handed(0, 0, 0, 0, 1200, 64)
	s.Confirmed(0, 1200, 1300, 0)
	s.Handed(0, 0, 0, 0, 900, 64)
	s.Failed(0, 900, 1000)
	v.Delivered(0, 1200, 1350, 0)
	got := read(r)
	for k := range NumKinds {
		want := map[Kind]uint64{SendService: 1, E2EService: 1}[k]
		if n := got.Kinds[k][Measure].Total(); n != want {
			t.Errorf("%v: %d values, want %d", k, n, want)
		}
	}
	if got := got.Kinds[SendFailed][WarmUp].Max(); got != 100 {
		t.Errorf("failed after %d ns, want 100", got)
	}
	golden.Equal(t, [NumPhases]Counters{{Sent: 1, Failed: 1}, {Sent: 1, Confirmed: 1}}, got.Counters, "")
}

// Compares the derived rates with plain counting.
func TestWindowCountsEventsByOwnTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		for _, fixed := range []int{0, 100} {
			cfg := Config{SendShards: 3, ReceiveShards: 2, From: 1000, To: 2000, Bytes: fixed}
			r := NewRecorder(cfg)
			var want Window
			in := func(t int64) bool { return t >= cfg.From && t < cfg.To }
			for i := range 500 {
				due := rnd.Int64N(2000)
				start := due + rnd.Int64N(300)
				done := start + rnd.Int64N(300)
				bytes := 100
				if fixed == 0 {
					bytes = rnd.IntN(100)
				}
				r.Sender(i).Handed(due, due, start, 0, start, bytes)
				r.Sender(i).Confirmed(due, start, done, 0)
				r.Receiver(i).Received(done, 1, bytes)
				if in(start) {
					want.Sent++
					want.SentBytes += uint64(bytes)
				}
				if in(done) {
					want.Confirmed++
					want.Received++
					want.ReceivedBytes += uint64(bytes)
				}
			}
			if d := cmp.Diff(want, read(r).Window); d != "" {
				t.Fatal(d)
			}
		}
	}
}

func TestNotSentAgesAreLowerBounds(t *testing.T) {
	const horizon, end = 30_000_000_000, 40_000_000_000
	r := NewRecorder(Config{From: 2_000_000_000, To: horizon, Horizon: horizon})
	dues := []int64{0, 1, 1_999_999_999, 2_000_000_000, 29_999_999_999, horizon + 5}
	for i, due := range dues {
		if i%2 == 0 {
			r.Sender(0).Dropped(due)
		} else {
			r.Sender(0).Unsent(due)
		}
	}
	var got []int64
	counts := [NumPhases]uint64{}
	r.NotSent(end, func(p Phase, _ int, age int64, n uint64) {
		counts[p] += n
		for range n {
			got = append(got, age)
		}
	})
	if counts != [NumPhases]uint64{3, 3} || len(got) != len(dues) {
		t.Fatalf("phases %v, ages %v", counts, got)
	}
	for i, due := range dues {
		if age := end - due; got[i] > age || due < horizon && got[i] < age-horizon/notSentBins-1 {
			t.Errorf("due %d: age %d, want %d or just less", due, got[i], age)
		}
	}
	if c := read(r).Counters; c[WarmUp].Dropped+c[Measure].Dropped != 3 || c[WarmUp].Unsent+c[Measure].Unsent != 3 {
		t.Errorf("counters %+v", c)
	}
}

// Reads as fast as possible while four senders and receivers record; the intervals must add up to
// the total.
func TestIntervalsSumUpWhileRecording(t *testing.T) {
	r := NewRecorder(Config{SendShards: 2, ReceiveShards: 2, From: 100_000, To: 900_000})
	const each = 5000
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 9))
			for range each {
				due := rnd.Int64N(900_000)
				start := due + rnd.Int64N(50_000)
				done := start + rnd.Int64N(1<<40)>>rnd.IntN(40)
				r.Sender(w).Scheduled(due)
				r.Sender(w).Handed(due, due, start, 0, start, 10)
				r.Sender(w).Confirmed(due, start, done, 0)
				r.Receiver(w).Received(done, 1, 10)
				r.Receiver(w).Delivered(due, start, done, 0)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var sum, all Snapshot
	var in Interval
	for stop := false; !stop; {
		select {
		case <-done:
			stop = true
		default:
		}
		r.Next(0, &in)
		sum.Merge(&Snapshot{Kinds: in.Kinds, Counters: in.Counters, Window: in.Window})
	}
	r.Read(0, &all)
	for k := range NumKinds {
		for p := range NumPhases {
			a, b := &sum.Kinds[k][p], &all.Kinds[k][p]
			a.min, a.max = b.min, b.max // an interval's are those of its buckets
			sameCounts(t, a, b)
		}
	}
	if d := cmp.Diff(all, sum, cmpopts.IgnoreFields(Snapshot{}, "At", "Kinds")); d != "" {
		t.Error(d)
	}
	if n := all.Counters[WarmUp].Confirmed + all.Counters[Measure].Confirmed; n != 4*each {
		t.Errorf("confirmed %d of %d", n, 4*each)
	}
}

func TestRoundTripEndsAtFirstReply(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := NewRecorder(Config{From: 1000, To: 5000, Closed: closed, ReplyShards: 2})
		s, v, back := r.Sender(0), r.Receiver(0), r.Replier(3)
		s.Handed(1500, 1500, 1500, 0, 1510, 64)
		s.Confirmed(1500, 1510, 1600, 4)
		v.Received(1700, 1, 64)
		v.Delivered(1500, 1510, 1700, 4)
		back.Received(1900, 1, 64)
		back.Delivered(1500, 1510, 1900, 4)
		got := read(r)
		want := map[Kind]int64{SendService: 90, E2EService: 190, RTTService: 390}
		if !closed {
			want[SendResponse], want[E2EResponse], want[RTTResponse] = 100, 200, 400
			want[SendOnTime], want[E2EOnTime], want[RTTOnTime] = 96, 196, 396
		}
		for _, k := range []Kind{SendResponse, SendOnTime, SendService, E2EResponse, E2EOnTime, E2EService, RTTResponse, RTTOnTime, RTTService} {
			if c := &got.Kinds[k][Measure]; c.Max() != want[k] || (c.Total() == 1) != (want[k] > 0) {
				t.Errorf("closed %v: %v: %d values, at most %d ns; want one of %d, or none", closed, k, c.Total(), c.Max(), want[k])
			}
		}
		// A reply is received, but confirms nothing.
		if c := got.Counters[Measure]; c.Confirmed != 1 || c.Received != 2 || got.Window.Received != 2 || got.Window.ReceivedBytes != 128 {
			t.Errorf("closed %v: %+v, %+v", closed, c, got.Window)
		}
	}
}

func TestConfirmingReplyRecordsNoSend(t *testing.T) {
	r := NewRecorder(Config{From: 1000, To: 5000, Replied: true})
	s := r.Sender(0)
	s.Handed(1500, 1500, 1505, 0, 1510, 64)
	s.Confirmed(1500, 1510, 1900, 5)
	s.Handed(1600, 1600, 1600, 0, 1600, 64)
	s.Failed(1600, 1600, 2600)
	got := read(r)
	for k, want := range map[Kind]int64{RTTResponse: 400, RTTOnTime: 395, RTTService: 390, SendFailed: 1000, SendLateness: 5, SendBlocked: 5} {
		if c := &got.Kinds[k][Measure]; c.Max() != want {
			t.Errorf("%v: at most %d ns; want %d", k, c.Max(), want)
		}
	}
	for _, k := range []Kind{SendResponse, SendOnTime, SendService} {
		if n := got.Kinds[k][Measure].Total(); n != 0 {
			t.Errorf("%v: %d values; want none", k, n)
		}
	}
	if c := got.Counters[Measure]; c.Confirmed != 1 || c.Failed != 1 || c.Sent != 2 {
		t.Errorf("%+v", c)
	}
}

// Counting in bulk must give the same groups and phases as counting individually.
func TestBulkUnsentMatchesSingleUnsent(t *testing.T) {
	type group struct {
		p     Phase
		stage int
		age   int64
		n     uint64
	}
	const end = 2_000_000
	for _, horizon := range []int64{1_000, 65_536, 200_000, 999_983} {
		for _, span := range [][2]int64{{0, 1}, {0, 999_999}, {399, 400}, {399, 402}, {400, 150_000}, {7, 1_300_000}} {
			var dues []int64 // three instants in ten, some with several messages
			for d := int64(0); d < 1_300_000; d += 10 {
				dues = append(dues, d, d+3, d+3, d+7)
			}
			before := func(t int64) uint64 {
				n, _ := slices.BinarySearch(dues, t)
				return uint64(n)
			}
			groups := func(record func(s *Sender)) (all []group, c [NumPhases]Counters) {
				r := NewRecorder(Config{From: 400, To: horizon, Horizon: horizon, Stages: []int64{400, 403, 150_001}})
				record(r.Sender(0))
				r.NotSent(end, func(p Phase, stage int, age int64, n uint64) { all = append(all, group{p, stage, age, n}) })
				return all, read(r).Counters
			}
			var sum [NumPhases]uint64
			got, counted := groups(func(s *Sender) { sum = s.UnsentBetween(span[0], span[1], before) })
			want, single := groups(func(s *Sender) {
				for _, due := range dues {
					if due >= span[0] && due < span[1] {
						s.Unsent(due)
					}
				}
			})
			if !slices.Equal(got, want) || counted != single {
				t.Errorf("horizon %d, due in %v: %d groups and %v; one by one %d and %v", horizon, span, len(got), counted, len(want), single)
			}
			if sum != [NumPhases]uint64{single[WarmUp].Unsent, single[Measure].Unsent} {
				t.Errorf("horizon %d, due in %v: it returns %v; one by one %v", horizon, span, sum, single)
			}
		}
	}
}
