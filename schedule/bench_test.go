package schedule

import (
	"fmt"
	"iter"
	"testing"
	"time"
)

// benchSpecs are the arrivals and phases whose cost per message is measured.
func benchSpecs() map[string]Spec {
	specs := map[string]Spec{}
	for _, a := range []Arrival{{}, {Kind: Poisson}, {Kind: Gamma, CV: 0.5}, {Kind: Gamma, CV: 3}} {
		specs[name(a)] = plain(a, step(PerSecond(333_333_333), 1<<48))
	}
	specs["ramp"] = plain(Arrival{}, Phase{From: PerSecond(1000), To: PerSecond(333_333_333), For: 1 << 48})
	specs["bursts"] = plain(Arrival{}, Phase{Burst: 5000, Every: time.Second, For: 1 << 48})
	return specs
}

func BenchmarkDue(b *testing.B) {
	for what, spec := range benchSpecs() {
		spec.Producers = 10_000
		s := mustNew(b, spec)
		for _, p := range []Part{{0, 1}, {3, 16}} {
			b.Run(fmt.Sprintf("%s/part of %d", what, p.Count), func(b *testing.B) {
				b.ReportAllocs()
				n, sum := 0, int64(0)
				for i, due := range s.Due(p) {
					if n++; n > b.N {
						break
					}
					sum ^= int64(i) ^ due
				}
				if sum == -1 {
					b.Log(sum) // keeps sum used
				}
			})
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	spec := plain(Arrival{Kind: Poisson}, step(PerSecond(1), time.Second))
	spec.Producers, spec.BatchMax = 25, 10
	spec.Sizes = []WeightedSize{{256, 3}, {1024, 3}, {65536, 1}}
	spec.Keys = Keys{Kind: ZipfKeys, N: 10_000, S: 1.1}
	s := mustNew(b, spec)
	for what, draw := range map[string]func(i uint64) int{
		"producer": s.Producer,
		"size":     s.Size,
		"zipf key": func(i uint64) int { k, _ := s.Key(i); return int(k) },
		"batch":    func(i uint64) int { return s.BatchSize(int(i%25), i) },
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			i, sum := uint64(0), 0
			for b.Loop() {
				sum += draw(i)
				i++
			}
			if sum < 0 {
				b.Fatal(sum)
			}
		})
	}
}

func TestAMessageAllocatesNothing(t *testing.T) {
	specs := benchSpecs()
	specs["trace"] = plain(Arrival{Kind: Trace, Trace: make([]int64, 100_000)})
	for what, spec := range specs {
		spec.Keys = Keys{Kind: ZipfKeys, N: 1000, S: 1}
		s := mustNew(t, spec)
		sum := 0
		read := func(n int) func() {
			return func() {
				k := 0
				for i, due := range s.Due(Part{0, 1}) {
					if k++; k > n {
						break
					}
					key, _ := s.Key(i)
					sum += s.Producer(i) + s.Size(i) + int(key) + s.BatchSize(0, i) + s.Destination(0, i) + int(due) + int(s.Rate(due))
				}
			}
		}
		few, many := testing.AllocsPerRun(5, read(10)), testing.AllocsPerRun(5, read(10_000))
		if few != many || few > 10 {
			t.Errorf("%s: 10 messages cost %v allocations, 10,000 %v; want the same few", what, few, many)
		}
	}
}

func BenchmarkGap(b *testing.B) {
	s, sum := stream(1), u128{}
	for j := uint64(0); b.Loop(); j++ {
		sum = sum.plus(exponential(s.at(j)))
	}
	if sum.hi == 1 {
		b.Log(sum)
	}
}

func BenchmarkFloor(b *testing.B) {
	n, sum := 0, int64(0)
	s := func(yield func(uint64, int64) bool) {
		for i := uint64(0); yield(i, int64(i)); i++ {
		}
	}
	for i, due := range iter.Seq2[uint64, int64](s) {
		if n++; n > b.N {
			break
		}
		sum ^= int64(i) ^ due
	}
	if sum == -1 {
		b.Log(sum)
	}
}
