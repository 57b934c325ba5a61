package schedule

import (
	"fmt"
	"iter"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
)

// plain is a Spec with one producer and the given phases.
func plain(a Arrival, phases ...Phase) Spec {
	return Spec{
		Seed: 1, Arrival: a, Phases: phases,
		Producers: 1, Destinations: 1, BatchMin: 1, BatchMax: 1,
		Sizes: []WeightedSize{{1024, 1}},
	}
}

func step(r Rate, d time.Duration) Phase { return Phase{From: r, To: r, For: d} }

func mustNew(tb testing.TB, spec Spec) *Schedule {
	tb.Helper()
	s, err := New(spec)
	if err != nil {
		tb.Fatalf("New(%+v): %v", spec, err)
	}
	return s
}

type message struct {
	Index uint64
	Due   int64
}

// take collects at most n messages.
func take(seq iter.Seq2[uint64, int64], n int) []message {
	var ms []message
	for i, due := range seq {
		if len(ms) == n {
			break
		}
		ms = append(ms, message{i, due})
	}
	return ms
}

func dues(ms []message) []int64 {
	var ds []int64
	for _, m := range ms {
		ds = append(ds, m.Due)
	}
	return ds
}

func TestConstantDueTimesRoundDownExactly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		rate Rate
		want []int64
	}{
		{"three a second", PerSecond(3), []int64{0, 333_333_333, 666_666_666, 1_000_000_000, 1_333_333_333}},
		{"one a nanosecond", MaxRate, []int64{0, 1, 2, 3, 4}},
		{"seven in ten nanoseconds", MaxRate / 10 * 7, []int64{0, 1, 2, 4, 5, 7, 8, 10}},
		{"one an hour", oneAnHour, []int64{0, 3_600_000_000_000, 7_200_000_000_000}},
		{"a millionth an hour", 1, []int64{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := mustNew(t, plain(Arrival{}, step(tc.rate, 3*time.Hour)))
			got := dues(take(s.Due(Part{0, 1}), len(tc.want)))
			golden.Equal(t, tc.want, got, "due instants at %v", tc.rate)
		})
	}
}

// Message 10^12 at 3,000,000/s comes after 92 h, beyond what New allows: the arithmetic has
// headroom.
func TestTrillionthMessageDueTimeIsExact(t *testing.T) {
	t.Parallel()
	for _, warmUp := range []time.Duration{0, 5 * time.Second, 1, 333_333_333, 12345678901} {
		spec := plain(Arrival{}, step(PerSecond(3_000_000), 100*time.Hour))
		spec.WarmUp = warmUp
		s := build(spec)
		// Iterated from 100,000 messages before, carrying the remainder all the way.
		n := 0
		for i, due := range s.constant(Part{0, 1}, 1e12-1e5) {
			if want := int64(i * 1000 / 3); due != want {
				t.Fatalf("warm-up %v: message %d is due at %d; want %d", warmUp, i, due, want)
			}
			if n++; n > 1e5+3 {
				break
			}
		}
		at := take(s.constant(Part{0, 1}, 1e12), 1)
		golden.Equal(t, []message{{1e12, 333_333_333_333_333}}, at, "warm-up %v: message 10^12", warmUp)
	}
}

func TestMessageFractionCarriesAcrossPhases(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	for _, tc := range []struct {
		name   string
		warmUp time.Duration
		phases []Phase
		want   []int64 // in units of 1/100 ms
	}{
		{
			"a step takes over the half message of the one before",
			0,
			[]Phase{step(PerSecond(100), 15*time.Millisecond), step(PerSecond(1000), 3*time.Millisecond)},
			[]int64{0, 1000, 1550, 1650, 1750},
		}, {
			"so does the first phase from the warm-up",
			15 * time.Millisecond,
			[]Phase{step(PerSecond(100), 20*time.Millisecond)},
			[]int64{0, 1000, 2000, 3000},
		}, {
			"bursts leave it untouched",
			0,
			[]Phase{
				step(PerSecond(100), 15*time.Millisecond),
				{Burst: 3, Every: 2 * time.Millisecond, For: 3 * time.Millisecond},
				step(PerSecond(100), 20*time.Millisecond),
			},
			[]int64{0, 1000, 1500, 1500, 1500, 1700, 1700, 1700, 2300, 3300},
		}, {
			"and a message due at the very beginning of bursts comes after them",
			0,
			[]Phase{
				step(PerSecond(100), 10*time.Millisecond),
				{Burst: 2, Every: time.Second, For: 5 * time.Millisecond},
				step(PerSecond(100), 10*time.Millisecond),
			},
			[]int64{0, 1000, 1000, 1500},
		}, {
			"a pause has no message, and takes it over too",
			0,
			[]Phase{step(PerSecond(100), 15*time.Millisecond), step(0, 20*time.Millisecond), step(PerSecond(1000), 3*time.Millisecond)},
			[]int64{0, 1000, 3550, 3650, 3750},
		}, {
			"what is due when a pause begins is due at its end",
			0,
			[]Phase{step(PerSecond(100), 10*time.Millisecond), step(0, 20*time.Millisecond), step(PerSecond(1000), 1*time.Millisecond)},
			[]int64{0, 3000},
		}, {
			"a pause at the beginning is its warm-up too",
			5 * time.Millisecond,
			[]Phase{step(0, 5*time.Millisecond), step(PerSecond(1000), 2*time.Millisecond)},
			[]int64{1000, 1100},
		}, {
			"a ramp from nothing", // 1000/ms²*t²/2 = n: t = sqrt(2n) ms
			0,
			[]Phase{{From: 0, To: PerSecond(4000), For: 4 * time.Millisecond}},
			[]int64{0, 141, 200, 244, 282, 316, 346, 374},
		}, {
			"the warm-up of bursts is bursts",
			3 * time.Millisecond,
			[]Phase{{Burst: 2, Every: 2 * time.Millisecond, For: 2 * time.Millisecond}},
			[]int64{0, 0, 200, 200, 300, 300},
		}, {
			// 1 + 3 messages in 2 ms: 0, then 500/s*t + 500,000/s²*t² = 1, 2, 3.
			"a ramp", // t = (sqrt(1+8n)-1)/2 ms
			0,
			[]Phase{{From: PerSecond(500), To: PerSecond(2500), For: 2 * time.Millisecond}},
			[]int64{0, 100, 156},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec := plain(Arrival{}, tc.phases...)
			spec.WarmUp = tc.warmUp
			s := mustNew(t, spec)
			var got []int64
			for _, due := range s.Due(Part{0, 1}) {
				got = append(got, due/(ms/100))
			}
			golden.Equal(t, tc.want, got, "due instants in 10 µs")
		})
	}
}

// exact computes a schedule of constant arrival in rational numbers, message by message: slow but
// obvious.
func exact(spec Spec, limit int) []message {
	phases := spec.Phases
	if spec.WarmUp > 0 {
		first := phases[0]
		first.To, first.For = first.From, spec.WarmUp
		phases = append([]Phase{first}, phases...)
	}
	var ms []message
	index, start := uint64(0), int64(0)
	flow := new(big.Int)                            // in halves, as in the package
	next := new(big.Int)                            // flow at which the next message is due
	unit := new(big.Int).SetUint64(2 * 3600 * 1e15) // one message
	add := func(due int64) { ms = append(ms, message{index, due}); index++ }
	for _, p := range phases {
		d := int64(p.For)
		if p.Burst > 0 {
			for at := int64(0); at < d; at += int64(p.Every) {
				for range p.Burst {
					if add(start + at); len(ms) == limit {
						return ms
					}
				}
			}
			start += d
			continue
		}
		// D * flow(t), as a polynomial of t.
		at := func(t int64) *big.Int {
			x := new(big.Int).Mul(big.NewInt(2*d), new(big.Int).SetUint64(uint64(p.From)))
			slope := new(big.Int).Sub(new(big.Int).SetUint64(uint64(p.To)), new(big.Int).SetUint64(uint64(p.From)))
			x.Add(x, slope.Mul(slope, big.NewInt(t)))
			return x.Mul(x, big.NewInt(t))
		}
		end := new(big.Int).Add(flow, new(big.Int).Div(at(d), big.NewInt(d)))
		for next.Cmp(end) < 0 {
			want := new(big.Int).Mul(new(big.Int).Sub(next, flow), big.NewInt(d))
			low, high := int64(0), d
			for high-low > 1 {
				if mid := (low + high) / 2; at(mid).Cmp(want) <= 0 {
					low = mid
				} else {
					high = mid
				}
			}
			if add(start + low); len(ms) == limit {
				return ms
			}
			next.Add(next, unit)
		}
		flow, start = end, start+d
	}
	return ms
}

func TestRampsAgreeWithRationalArithmetic(t *testing.T) {
	t.Parallel()
	hour := time.Hour
	for _, p := range []Phase{
		{From: PerSecond(1000), To: PerSecond(9000), For: time.Minute},
		{From: PerSecond(9000), To: PerSecond(1000), For: time.Minute},
		{From: 1, To: MaxRate, For: 100 * time.Microsecond},
		{From: MaxRate, To: 1, For: time.Microsecond},
		{From: MaxRate, To: MaxRate - 1, For: 77 * hour},
		{From: 1, To: PerSecond(1), For: 77 * hour},
		{From: PerSecond(1), To: 1, For: 77 * hour},
		{From: oneAnHour, To: oneAnHour + 1, For: 77*hour + 1},
		{From: 7, To: 3, For: 1},
		{From: 0, To: PerSecond(9000), For: time.Minute},
		{From: PerSecond(9000), To: 0, For: time.Minute},
		{From: 0, To: MaxRate, For: 77 * hour},
		{From: MaxRate, To: 0, For: time.Microsecond},
		{From: 0, To: 1, For: 77 * hour},
	} {
		s := mustNew(t, plain(Arrival{}, p))
		want := exact(plain(Arrival{}, p), 300)
		golden.Equal(t, want, take(s.Due(Part{0, 1}), 300), "ramp %v..%v for %v", p.From, p.To, p.For)
		// And near the end, where a float's guess is worst.
		g := &s.segments[0]
		for i := g.last - min(g.last, 50); i < g.last; i++ {
			at := g.invertRamp(g.target(i))
			want := g.target(i).times(uint64(p.For))
			if !g.rampFlow(uint64(at)).atMost(want) || g.rampFlow(uint64(at+1)).atMost(want) {
				t.Errorf("ramp %v..%v for %v: message %d is not due at %d", p.From, p.To, p.For, i, at)
			}
		}
	}
}

func TestCountedWindowHoldsExactCount(t *testing.T) {
	t.Parallel()
	for _, a := range []Arrival{{}, {Kind: Poisson}, {Kind: Gamma, CV: 3}} {
		for _, warmUp := range []time.Duration{0, 1, 5 * time.Second, 1234567891} {
			for _, rate := range []Rate{PerSecond(1000), PerSecond(3), PerSecond(333_333_333), MaxRate, 7e15 + 1} {
				if warmUp > 1 && rate > PerSecond(3_000) {
					warmUp %= 12345
				}
				spec := plain(a, step(rate, 0))
				spec.WarmUp, spec.Messages, spec.Producers = warmUp, 1000, 3
				s := mustNew(t, spec)
				n, last := uint64(0), int64(0)
				for _, due := range s.Due(Part{0, 1}) {
					if due >= s.WarmUp() && due < s.End() {
						n++
					}
					last = due
				}
				if n != spec.Messages || last >= s.End() {
					t.Errorf("%v at %v after %v: window [%d, %d) holds %d messages, the last due at %d; want %d",
						a.Kind, rate, warmUp, s.WarmUp(), s.End(), n, last, spec.Messages)
				}
			}
		}
	}
	spec := plain(Arrival{}, step(PerSecond(3), 0))
	spec.WarmUp, spec.Messages = time.Second, 100
	if got, want := mustNew(t, spec).End(), int64(34_333_333_334); got != want {
		t.Errorf("End of 100 messages at 3/s after 1 s = %d; want %d", got, want)
	}
}

func TestRateFollowsPhases(t *testing.T) {
	t.Parallel()
	spec := plain(Arrival{Kind: Poisson},
		Phase{From: PerSecond(1000), To: PerSecond(9000), For: 2 * time.Second},
		Phase{From: PerSecond(9000), To: PerSecond(1000), For: 2 * time.Second},
		Phase{Burst: 5000, Every: 2 * time.Second, For: 5 * time.Second},
		step(PerSecond(7), time.Second))
	spec.WarmUp = time.Second
	s := mustNew(t, spec)
	const second = int64(time.Second)
	for _, tc := range []struct {
		at   int64
		want Rate
	}{
		{-1, 0},
		{0, PerSecond(1000)},
		{second - 1, PerSecond(1000)},
		{second, PerSecond(1000)},
		{2 * second, PerSecond(5000)},
		{3 * second, PerSecond(9000)},
		{4 * second, PerSecond(5000)},
		{5 * second, PerSecond(2500)},
		{10*second - 1, PerSecond(2500)},
		{10 * second, PerSecond(7)},
		{11 * second, 0},
	} {
		if got := s.Rate(tc.at); got != tc.want {
			t.Errorf("Rate(%d) = %v; want %v", tc.at, got, tc.want)
		}
	}
	trace := plain(Arrival{Kind: Trace, Trace: []int64{0, 5, 1e9 - 1}})
	if got, want := mustNew(t, trace).Rate(3), PerSecond(3); got != want {
		t.Errorf("Rate of a trace of 3 in 1 s = %v; want %v", got, want)
	}
	if got := mustNew(t, plain(Arrival{})).Rate(0); got != 0 {
		t.Errorf("Rate of a closed loop = %v; want 0", got)
	}
}

func TestTraceIsPlayedUnchanged(t *testing.T) {
	t.Parallel()
	spec := plain(Arrival{Kind: Trace, Trace: []int64{0, 0, 3, 10, 10, 700}})
	spec.Producers, spec.WarmUp = 4, 5
	s := mustNew(t, spec)
	want := []message{{1, 0}, {3, 10}, {5, 700}}
	golden.Equal(t, want, take(s.Due(Part{1, 2}), 10), "Due(Part{1, 2})")
	if s.WarmUp() != 5 || s.End() != 701 {
		t.Errorf("window [%d, %d); want [5, 701)", s.WarmUp(), s.End())
	}
}

func TestAClosedLoopHasNothingDue(t *testing.T) {
	t.Parallel()
	spec := plain(Arrival{})
	spec.WarmUp = time.Second
	s := mustNew(t, spec)
	if ms := take(s.Due(Part{0, 1}), 1); len(ms) > 0 {
		t.Errorf("Due of a closed loop yields %v; want nothing", ms)
	}
	if s.End() != s.WarmUp() || s.Size(17) != 1024 || s.Producer(17) != 0 {
		t.Errorf("End() = %d, Size(17) = %d, Producer(17) = %d; want %d, 1024, 0", s.End(), s.Size(17), s.Producer(17), s.WarmUp())
	}
}

func TestDueStopsWhenIterationStops(t *testing.T) {
	t.Parallel()
	for _, a := range arrivals {
		s := mustNew(t, profile(a, 10))
		for n := range 400 {
			if got := len(take(s.Due(Part{1, 3}), n)); got != n {
				t.Errorf("%s: took %d messages; want %d", name(a), got, n)
			}
		}
	}
}

func TestDuePanicsOnInvalidPart(t *testing.T) {
	t.Parallel()
	s := mustNew(t, plain(Arrival{}, step(PerSecond(1), time.Second)))
	for _, p := range []Part{{0, 0}, {-1, 1}, {1, 1}, {0, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Due(%v) did not panic", p)
				}
			}()
			s.Due(p)
		}()
	}
}

// arrivals are all kinds except traces.
var arrivals = []Arrival{{}, {Kind: Poisson}, {Kind: Gamma, CV: 0.1}, {Kind: Gamma, CV: 0.5}, {Kind: Gamma, CV: 1}, {Kind: Gamma, CV: 3}, {Kind: Gamma, CV: 10}}

func name(a Arrival) string { return fmt.Sprint(a.Kind, " ", a.CV) }

// profile has every kind of phase.
func profile(a Arrival, producers int) Spec {
	spec := plain(a,
		step(PerSecond(30_011), 31*time.Millisecond+1),
		Phase{From: PerSecond(1000), To: PerSecond(90_001), For: 57*time.Millisecond + 7},
		Phase{Burst: 101, Every: 3*time.Millisecond + 1, For: 20 * time.Millisecond},
		Phase{From: PerSecond(90_001), To: 1, For: 57*time.Millisecond + 7},
		step(1_000_000_007, time.Second),
		step(PerSecond(70_000), time.Second))
	spec.WarmUp = 11*time.Millisecond + 3
	spec.Producers = producers
	return spec
}

// checkParts compares the first messages of all parts with those of the whole.
func checkParts(t *testing.T, s *Schedule, count int, limit uint64) {
	t.Helper()
	var whole, parts []message
	for i, due := range s.Due(Part{0, 1}) {
		if i >= limit {
			break
		}
		if i != uint64(len(whole)) {
			t.Fatalf("message %d comes where %d should", i, len(whole))
		}
		if due < 0 || due >= s.End() || i > 0 && due < whole[i-1].Due {
			t.Fatalf("message %d is due at %d, after %v; the run ends at %d", i, due, whole[max(1, i)-1], s.End())
		}
		whole = append(whole, message{i, due})
	}
	for k := range count {
		if kind := s.spec.Arrival.Kind; kind == Constant || kind == Trace {
			checkRemaining(t, s, Part{k, count}, 100)
		}
		last := message{0, -1}
		for i, due := range s.Due(Part{k, count}) {
			if i >= limit {
				break
			}
			if due < last.Due || last.Due >= 0 && i <= last.Index {
				t.Fatalf("part %d of %d: message %d due at %d comes after %v", k, count, i, due, last)
			}
			if p := s.Producer(i); p%count != k || p < 0 || p >= s.spec.Producers {
				t.Fatalf("part %d of %d yields message %d of producer %d", k, count, i, p)
			}
			last = message{i, due}
			parts = append(parts, last)
		}
	}
	slices.SortFunc(parts, func(a, b message) int { return int(int64(a.Index) - int64(b.Index)) })
	if !slices.Equal(whole, parts) {
		t.Fatalf("%d parts together have %d messages, the whole has %d: %s", count, len(parts), len(whole), cmp.Diff(whole, parts))
	}
}

func TestPartsTogetherAreTheWhole(t *testing.T) {
	t.Parallel()
	for _, a := range arrivals {
		for _, producers := range []int{1, 7, 16, 1000} {
			s := mustNew(t, profile(a, producers))
			for _, count := range []int{1, 2, 3, 16, 1001} {
				checkParts(t, s, count, uint64(min(5_000, 100_000/count)))
			}
		}
	}
}

func TestAProfileAgreesWithRationalArithmetic(t *testing.T) {
	t.Parallel()
	spec := profile(Arrival{}, 3)
	if diff := cmp.Diff(exact(spec, 20_000), take(mustNew(t, spec).Due(Part{0, 1}), 20_000)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParts(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint16(3), uint16(2), uint64(2e6), uint64(3e12), uint64(5e9), uint64(2e9), uint64(1e8), uint16(10))
	f.Add(uint64(7), uint8(1), uint16(25), uint16(16), uint64(1), uint64(3_600_000_000_000), uint64(3_600_000_000_001), uint64(1e9), uint64(3), uint16(0))
	f.Add(uint64(0), uint8(5), uint16(1), uint16(9), uint64(2), uint64(MaxRate), uint64(1), uint64(1e6), uint64(1e3), uint16(900))
	f.Add(uint64(9), uint8(8), uint16(10), uint16(4), uint64(2), uint64(oneASecond), uint64(1), uint64(77), uint64(1e3), uint16(9))
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8, producers, count uint16, warmUp, r1, r2, d1, d2 uint64, burst uint16) {
		rate := func(r uint64) Rate { return Rate(r%uint64(MaxRate) + 1) }
		long := func(d uint64) time.Duration { return time.Duration(d%uint64(20*time.Hour) + 1) }
		spec := plain(Arrival{}, step(rate(r1), long(d1)), Phase{From: rate(r1), To: rate(r2), For: long(d2)},
			Phase{Burst: uint64(burst)%500 + 1, Every: long(r1) + 500, For: long(d1)}, step(rate(r2), long(d1)))
		spec.Seed, spec.WarmUp, spec.Producers = seed, long(warmUp), int(producers)+1
		switch n := int(kind) % (len(arrivals) + 2); {
		case n < len(arrivals):
			spec.Arrival = arrivals[n]
		case n == len(arrivals):
			spec.Phases, spec.Messages = spec.Phases[:1], uint64(burst)+1
		default:
			due := []int64{int64(spec.WarmUp)}
			for n := range uint64(burst) {
				due = append(due, due[n]+int64(stream(r2).at(n)%1000))
			}
			spec.Phases, spec.Arrival = nil, Arrival{Kind: Trace, Trace: due}
		}
		s, err := New(spec)
		if err != nil && spec.Messages > 0 {
			return // these messages take too long
		}
		if err != nil {
			t.Fatal(err)
		}
		const limit = 1000
		checkParts(t, s, int(count)%64+1, limit)
		if spec.Arrival.Kind == Constant && spec.Messages == 0 {
			golden.Equal(t, exact(spec, limit), take(s.Due(Part{0, 1}), limit), "against rational arithmetic")
		}
	})
}
