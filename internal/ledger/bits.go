package ledger

import (
	"math"
	"math/bits"
	"slices"
)

// windowLen is the number of sequences in a window of bits: 2 KiB, as a full list. Windows begin at
// multiples of it.
const windowLen = 1 << 14

// bitsCost is what the bits of a window count in Config.MaxOpen. They take as much memory as 128
// spans; when encoded, as a list of up to 8192 spans, they take more.
const bitsCost = 1024

// The number of spans of a full list in one window from which they become bits, and the number of
// sequences at which bits become a list again.
const (
	manySpans = chunkLen / 2
	fewBits   = chunkLen / 2
)

// A bitset is the part of a set that lies in one window.
type bitset struct {
	base  uint64
	n     int // members
	words [windowLen / 64]uint64
}

func (b *bitset) has(seq uint64) bool {
	if seq < b.base {
		return false
	}
	at := seq - b.base
	return b.words[at/64]>>(at%64)&1 != 0
}

// set adds [lo, hi), which lies in the window.
func (b *bitset) set(lo, hi uint64) {
	b.each(lo, hi, func(word *uint64, mask uint64) {
		b.n += bits.OnesCount64(mask &^ *word)
		*word |= mask
	})
}

// unset removes everything below hi.
func (b *bitset) unset(hi uint64) {
	b.each(b.base, hi, func(word *uint64, mask uint64) {
		b.n -= bits.OnesCount64(mask & *word)
		*word &^= mask
	})
}

// each calls change for each word of [lo, hi), with a mask of the bits in it.
func (b *bitset) each(lo, hi uint64, change func(word *uint64, mask uint64)) {
	for at, end := lo-b.base, hi-b.base; at < end; {
		next := min(end, at/64*64+64)
		mask := uint64(math.MaxUint64) << (at % 64)
		if next%64 != 0 {
			mask &= 1<<(next%64) - 1
		}
		change(&b.words[at/64], mask)
		at = next
	}
}

// at reports whether seq, of the window, is in the set, and up to where in the window the answer is
// the same.
func (b *bitset) at(seq uint64) (in bool, next uint64) {
	at := seq - b.base
	word := b.words[at/64] >> (at % 64)
	in = word&1 != 0
	var other uint64
	if in {
		other = math.MaxUint64
	}
	if n := uint64(bits.TrailingZeros64(word ^ other)); at%64+n < 64 {
		return in, seq + n
	}
	for i := at/64 + 1; i < uint64(len(b.words)); i++ {
		if b.words[i] != other {
			return in, b.base + i*64 + uint64(bits.TrailingZeros64(b.words[i]^other))
		}
	}
	return in, b.base + windowLen
}

// gather turns what lies in the window of the middle span of a full list into bits, and reports
// whether there were enough spans.
func (s *spans) gather(at int) bool {
	list := s.chunks[at].list
	base := list[len(list)/2].lo &^ (windowLen - 1)
	end := base + windowLen
	inside := 0
	for _, x := range list {
		if x.hi > base && x.lo < end {
			inside++
		}
	}
	if inside < manySpans {
		return false
	}
	from, to := at, at+1 // the lists that overlap the window
	for from > 0 && s.chunks[from-1].bits == nil && s.chunks[from-1].end() > base {
		from--
	}
	for to < len(s.chunks) && s.chunks[to].bits == nil && s.chunks[to].lo() < end {
		to++
	}
	b := s.unused
	if s.unused = nil; b == nil {
		b = new(bitset)
	}
	*b = bitset{base: base}
	before, after := s.fresh(), s.fresh() // at most the contents of the first list and of the last
	for k := from; k < to; k++ {
		for _, x := range s.chunks[k].list {
			if x.lo < base {
				before = append(before, span{x.lo, min(x.hi, base)})
			}
			if lo, hi := max(x.lo, base), min(x.hi, end); lo < hi {
				b.set(lo, hi)
			}
			if x.hi > end {
				after = append(after, span{max(x.lo, end), x.hi})
			}
		}
		s.n -= len(s.chunks[k].list)
	}
	s.n += bitsCost + len(before) + len(after)
	s.spare = list[:0]
	made := make([]chunk, 0, 3)
	for _, c := range []chunk{{list: before}, {bits: b}, {list: after}} {
		if c.bits != nil || len(c.list) > 0 {
			made = append(made, c)
		} else {
			s.spare = c.list
		}
	}
	s.chunks = slices.Replace(s.chunks, from, to, made...)
	return true
}

// put adds a span of which no member is in the set yet, whatever windows it covers.
func (s *spans) put(p span) {
	for p.lo < p.hi {
		at, i := s.search(p.lo)
		if at == len(s.chunks) {
			s.push(p.lo, p.hi)
			return
		}
		until := p.hi
		if b := s.chunks[at].bits; b != nil {
			if p.lo >= b.base {
				until = min(until, b.base+windowLen)
				b.set(p.lo, until)
				p.lo = until
				continue
			}
			until = min(until, b.base)
		}
		s.insert(at, i, span{p.lo, until})
		p.lo = until
	}
}

// clear removes seq from the bits of a chunk, and reports whether it was there.
func (s *spans) clear(at int, seq uint64) bool {
	b := s.chunks[at].bits
	if !b.has(seq) {
		return false
	}
	b.n--
	b.words[(seq-b.base)/64] &^= 1 << ((seq - b.base) % 64)
	s.shrink(at)
	return true
}

// shrink turns bits into a list when few are left.
func (s *spans) shrink(at int) {
	b := s.chunks[at].bits
	if b.n > fewBits {
		return
	}
	list := s.fresh()
	for seq := b.base; seq < b.base+windowLen; {
		in, next := b.at(seq)
		if in {
			list = append(list, span{seq, next})
		}
		seq = next
	}
	s.n += len(list) - bitsCost
	s.chunks[at], s.unused = chunk{list: list}, b
	s.join(at)
}
