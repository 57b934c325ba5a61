package schedule

import (
	"math"
	"math/bits"
	"sort"
)

// Producer returns the producer of message i. With constant arrival and a trace
// producers take turns; with random arrival a seeded hash decides, so that the
// messages of each are a thinned Poisson (or gamma) process.
func (s *Schedule) Producer(i uint64) int {
	switch s.spec.Arrival.Kind {
	case Poisson, Gamma:
		return int(s.owner(i))
	}
	return int(i % uint64(s.spec.Producers))
}

// owner returns the producer of message i of random arrival.
func (s *Schedule) owner(i uint64) uint32 {
	return uint32(below(s.owners.at(i), uint64(s.spec.Producers)))
}

// BatchSize returns the size of the producer's n-th batch, counted from 0: uniform from BatchMin to
// BatchMax.
func (s *Schedule) BatchSize(producer int, n uint64) int {
	spread := uint64(s.spec.BatchMax - s.spec.BatchMin)
	if spread == 0 {
		return s.spec.BatchMin
	}
	return s.spec.BatchMin + int(below(s.batches.split(uint64(producer)).at(n), spread+1))
}

// Destination returns the destination of the producer's n-th batch, counted from 0. With at least
// as many producers as destinations a producer has one destination, its number modulo theirs; else
// it cycles through its own (DestinationsOf).
func (s *Schedule) Destination(producer int, n uint64) int {
	p, d := s.spec.Producers, s.spec.Destinations
	if p >= d {
		return producer % d
	}
	own := (d - producer + p - 1) / p
	return producer + int(n%uint64(own))*p
}

// DestinationsOf returns the destinations that the producer sends to, ascending: one, or, if there
// are fewer producers than destinations, each d with d % Producers equal to the producer. The slice
// is the caller's.
func (s *Schedule) DestinationsOf(producer int) []int {
	p, d := s.spec.Producers, s.spec.Destinations
	if p >= d {
		return []int{producer % d}
	}
	var own []int
	for ; producer < d; producer += p {
		own = append(own, producer)
	}
	return own
}

// Streams returns the number of streams: pairs of a producer and a destination
// that it sends to.
func (s *Schedule) Streams() int { return max(s.spec.Producers, s.spec.Destinations) }

// Stream returns the number, from 0 to Streams()-1, of the stream of a producer
// and one of its destinations.
func (s *Schedule) Stream(producer, destination int) uint32 {
	if s.spec.Producers >= s.spec.Destinations {
		return uint32(producer)
	}
	return uint32(destination)
}

// DestinationOf returns the destination of a stream.
func (s *Schedule) DestinationOf(stream uint32) int { return int(stream) % s.spec.Destinations }

// makeSizes fills the table of sizes.
func (s *Schedule) makeSizes() {
	total := uint64(0)
	for _, z := range s.spec.Sizes {
		total += uint64(z.Weight)
		s.sizeTable = append(s.sizeTable, total)
		s.maxSize = max(s.maxSize, z.Bytes)
	}
}

// Size returns the size of message i in bytes.
func (s *Schedule) Size(i uint64) int {
	n := len(s.sizeTable)
	if n == 1 {
		return s.spec.Sizes[0].Bytes
	}
	at := below(s.sizes.at(i), s.sizeTable[n-1])
	return s.spec.Sizes[sort.Search(n-1, func(k int) bool { return at < s.sizeTable[k] })].Bytes
}

// MaxSize returns the largest of the sizes in bytes.
func (s *Schedule) MaxSize() int { return s.maxSize }

// Key returns the key of message i, from 0 to Keys.N-1, and whether messages
// have keys at all.
func (s *Schedule) Key(i uint64) (uint64, bool) {
	switch s.spec.Keys.Kind {
	case UniformKeys:
		return below(s.keys.at(i), s.spec.Keys.N), true
	case ZipfKeys:
		return s.zipf.key(s.keys.at(i)), true
	case RoundRobinKeys:
		return i % s.spec.Keys.N, true
	}
	return 0, false
}

// A zipf is the cumulative distribution of Zipf's law with a finite number of
// keys.
type zipf struct {
	upTo  []uint64 // probability of a key up to this one, 63 fractional bits
	guide []uint32 // first key that a random number with these top bits can have
	shift int      // of a number of 63 bits, to its place in guide
}

func newZipf(n int, s float64) *zipf {
	z := &zipf{upTo: make([]uint64, n)}
	total := 0.0
	for k := range n {
		total += expMinus(mul(s, ln(float64(k+1)))) // (k+1)^-s
		z.upTo[k] = math.Float64bits(total)
	}
	for k, sum := range z.upTo {
		z.upTo[k] = uint64(int64(mul(math.Float64frombits(sum)/total, 0x1p62))) << 1
	}
	z.upTo[n-1] = 1 << 63

	width := min(bits.Len(uint(n)), 16)
	z.shift = 63 - width
	z.guide = make([]uint32, 1<<width+1)
	k := 0
	for b := range z.guide[:1<<width] {
		for z.upTo[k] <= uint64(b)<<z.shift {
			k++
		}
		z.guide[b] = uint32(k)
	}
	z.guide[1<<width] = uint32(n - 1)
	return z
}

// key returns the key of a random number: the first with a cumulative
// probability above it.
func (z *zipf) key(random uint64) uint64 {
	at := random >> 1
	b := at >> z.shift
	low, high := z.guide[b], z.guide[b+1]
	for low < high {
		mid := low + (high-low)/2
		if z.upTo[mid] > at {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return uint64(low)
}
