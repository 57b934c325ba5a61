package ledger

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// flat returns the spans in order, after checking the type's invariants.
func (s *spans) flat() ([]span, error) {
	n, end := 0, uint64(0)
	for i := range s.chunks {
		c := &s.chunks[i]
		n += c.cost()
		if b := c.bits; b != nil {
			members := 0
			for _, w := range b.words {
				members += bits.OnesCount64(w)
			}
			if members != b.n || b.n == 0 || len(c.list) > 0 || b.base%windowLen != 0 || b.base < end {
				return nil, fmt.Errorf("the window from %d, behind %d, has %d sequences and counts %d", b.base, end, members, b.n)
			}
			end = c.end()
			continue
		}
		if len(c.list) == 0 && len(s.chunks) > 1 || len(c.list) > chunkLen {
			return nil, fmt.Errorf("chunk %d of %d has %d spans", i, len(s.chunks), len(c.list))
		}
		for _, p := range c.list {
			if p.lo >= p.hi || p.lo < end {
				return nil, fmt.Errorf("span %v is empty, or not behind %d", p, end)
			}
			end = p.hi
		}
	}
	if n != s.n {
		return nil, fmt.Errorf("%d are counted as %d", n, s.n)
	}
	all := s.all(nil)
	for i, p := range all {
		if p.lo >= p.hi || i > 0 && p.lo <= all[i-1].hi {
			return nil, fmt.Errorf("span %d, %v, is empty or touches %v", i, p, all[max(i-1, 0)])
		}
	}
	return all, nil
}

// equal compares the set with a map.
func (s *spans) equal(want map[uint64]bool) error {
	all, err := s.flat()
	if err != nil {
		return err
	}
	n := 0
	for _, p := range all {
		for seq := p.lo; seq < p.hi; seq++ {
			if !want[seq] {
				return fmt.Errorf("%d is in the set and should not be", seq)
			}
			n++
		}
	}
	if n != len(want) {
		return fmt.Errorf("%d sequences are in the set; want %d", n, len(want))
	}
	return nil
}

func TestSpansMatchMap(t *testing.T) {
	needs.NoRace(t)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s spans
		want := map[uint64]bool{}
		top := uint64(rng.IntN([]int{3000, 60_000}[seed%2]) + 10) // small ones collide, large ones fill many chunks and windows
		for step := range 20_000 {
			seq := rng.Uint64N(top)
			grow := step/5000%2 == 0
			switch op := rng.IntN(1000); {
			case op < 700 == grow && op < 990:
				if got := s.add(seq); got == want[seq] {
					t.Fatalf("seed %d: add(%d) = %v; the set had it: %v", seed, seq, got, want[seq])
				}
				want[seq] = true
			case op < 990:
				if got := s.remove(seq); got != want[seq] {
					t.Fatalf("seed %d: remove(%d) = %v; want %v", seed, seq, got, want[seq])
				}
				delete(want, seq)
			case op == 990 && rng.IntN(10) == 0:
				s.cut(seq)
				for old := range want {
					if old < seq {
						delete(want, old)
					}
				}
			default:
				all := must.Get(s.flat())(t)
				lo := seq
				if len(all) > 0 {
					lo += all[len(all)-1].hi + 1
				}
				if lo > 4*top {
					continue
				}
				s.push(lo, lo+3)
				want[lo], want[lo+1], want[lo+2] = true, true, true
			}
			if got := s.contains(seq); got != want[seq] {
				t.Fatalf("seed %d: contains(%d) = %v; want %v", seed, seq, got, want[seq])
			}
			if step%500 == 0 {
				if err := s.equal(want); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
		}
		if err := s.equal(want); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		c := s.from(0)
		for seq := uint64(0); ; {
			in, next := c.at(seq)
			for x := seq; x < min(next, 5*top); x++ {
				if in != want[x] || next <= seq {
					t.Fatalf("seed %d: the cursor at %d = %v until %d; the set has %d: %v", seed, seq, in, next, x, want[x])
				}
			}
			if next == math.MaxUint64 {
				break
			}
			seq = next
		}
	}
}

func TestSpanMemoryIsProportionalToCount(t *testing.T) {
	// Many rounds: a long list, of which a random few stay.
	rng := rand.New(rand.NewPCG(1, 1))
	var s spans
	next := uint64(0)
	for range 20 {
		var fresh []uint64
		for range 20_000 {
			s.push(next, next+1)
			fresh = append(fresh, next)
			next += 2
		}
		rng.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
		for _, seq := range fresh[:len(fresh)-100] {
			s.remove(seq)
		}
	}
	if s.n != 2000 {
		t.Fatalf("%d spans stayed; want 2000", s.n)
	}
	if chunks := len(s.chunks); chunks > 8*s.n/chunkLen {
		t.Errorf("%d spans lie in %d chunks of %d", s.n, chunks, chunkLen)
	}
	if _, err := s.flat(); err != nil {
		t.Error(err)
	}
}

func TestSetReportsFirstInsertion(t *testing.T) {
	var s set
	for _, step := range []struct {
		seq   uint64
		first bool
		holes int
	}{
		{0, true, 0},
		{0, false, 0},
		{1, true, 0},
		{5, true, 1},
		{9, true, 2},
		{5, false, 2},
		{3, true, 3},
		{3, false, 3},
		{2, true, 2},
		{4, true, 1},
		{6, true, 1},
		{8, true, 1},
		{7, true, 0},
		{7, false, 0},
		{10, true, 0},
	} {
		if got := s.insert(step.seq); got != step.first || s.holes.n != step.holes {
			t.Fatalf("insert(%d) = %v with %d holes; want %v with %d", step.seq, got, s.holes.n, step.first, step.holes)
		}
	}
}

func TestWarmReorderedStreamDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var s set
	order := make([]uint64, 4096)
	for i := range order {
		order[i] = uint64(i)
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	base := uint64(0)
	run := func() {
		for _, seq := range order {
			s.insert(base + seq)
		}
		base += uint64(len(order))
	}
	run()
	if n := testing.AllocsPerRun(20, run); n > 20 { // of 4096 insertions, which come and go in some 20 chunks
		t.Errorf("%d insertions in random order allocate %v times", len(order), n)
	}
	if s.holes.n != 0 || s.head != base {
		t.Errorf("%d holes stayed below %d; want none below %d", s.holes.n, s.head, base)
	}
}

func BenchmarkSetInRandomOrder(b *testing.B) {
	for _, disorder := range []int{1, 100, 25_000} {
		b.Run(fmt.Sprint(disorder), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			order := make([]uint64, 100_000/disorder*disorder)
			for i := range order {
				order[i] = uint64(i)
			}
			for i := 0; i < len(order); i += disorder {
				part := order[i : i+disorder]
				rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			}
			var s set
			base, i := uint64(0), 0
			b.ReportAllocs()
			for b.Loop() {
				s.insert(base + order[i])
				if i++; i == len(order) {
					base, i = base+uint64(len(order)), 0
				}
			}
		})
	}
}
