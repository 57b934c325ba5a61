package ledger

import (
	"math"
	"slices"
	"sort"
)

// chunkLen is the maximum number of spans in a chunk. Inserting into a full list of a million spans
// moves at most one chunk (2 KiB) and, once in chunkLen insertions, the list of chunks.
const chunkLen = 128

// A span is the sequences [lo, hi).
type span struct{ lo, hi uint64 }

// spans is a set of sequences in ascending order, in chunks so that a change anywhere is cheap. A
// chunk is a list of disjoint, non-adjacent spans or, if a window of sequences has many, the bits
// of that window: then all members in the window are in its bits, and a span that extends beyond is
// split. So a partition that lags behind others costs a bit per message, whatever the pattern of
// its messages among theirs. Memory is proportional to the number of spans, not of sequences:
// neighbouring lists that together fill less than half of one are joined. Once grown it allocates
// nothing while the number of spans does not increase. The zero value is empty. It is not for
// concurrent use.
type spans struct {
	chunks []chunk // none empty, except possibly the only one
	n      int     // cost in Config.MaxOpen: the spans of lists, and bitsCost for each window of bits
	spare  []span  // an emptied list, for reuse
	unused *bitset // likewise
}

// A chunk is either a list or the bits of a window.
type chunk struct {
	list []span
	bits *bitset
}

// lo returns where a nonempty chunk begins.
func (c *chunk) lo() uint64 {
	if c.bits != nil {
		return c.bits.base
	}
	return c.list[0].lo
}

// end returns where it ends.
func (c *chunk) end() uint64 {
	if c.bits != nil {
		return c.bits.base + windowLen
	}
	return c.list[len(c.list)-1].hi
}

// search returns the place of the first span in a list that ends after seq, or of the chunk of bits
// whose window does; len(s.chunks) if there is none.
func (s *spans) search(seq uint64) (chunk, i int) {
	if s.n == 0 {
		return len(s.chunks), 0
	}
	// Nearly all operations are at the newest or the oldest spans.
	switch last := len(s.chunks) - 1; {
	case s.chunks[last].lo() <= seq:
		chunk = last
	case seq < s.chunks[0].end():
		chunk = 0
	default:
		chunk = sort.Search(last, func(c int) bool { return seq < s.chunks[c].end() })
	}
	if s.chunks[chunk].end() <= seq {
		return len(s.chunks), 0 // only in the last chunk
	}
	if s.chunks[chunk].bits != nil {
		return chunk, 0
	}
	c := s.chunks[chunk].list
	lo, hi := 0, len(c)-1 // the answer is in [lo, hi]
	for lo < hi {
		if mid := (lo + hi) / 2; c[mid].hi <= seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return chunk, lo
}

// contains reports whether seq is in the set.
func (s *spans) contains(seq uint64) bool {
	c, i := s.search(seq)
	if c == len(s.chunks) {
		return false
	}
	if b := s.chunks[c].bits; b != nil {
		return b.has(seq)
	}
	return s.chunks[c].list[i].lo <= seq
}

// push adds all of [lo, hi), which must lie after the end of the set and not
// touch it.
func (s *spans) push(lo, hi uint64) {
	if s.n > 0 {
		if b := s.chunks[len(s.chunks)-1].bits; b != nil && lo < b.base+windowLen {
			b.set(lo, min(hi, b.base+windowLen))
			if lo = b.base + windowLen; lo >= hi {
				return
			}
		}
	}
	s.insert(len(s.chunks), 0, span{lo, hi})
}

// extend is push for a span that may touch the end of the set.
func (s *spans) extend(lo, hi uint64) {
	if s.n > 0 {
		if c := s.chunks[len(s.chunks)-1].list; len(c) > 0 && c[len(c)-1].hi == lo {
			c[len(c)-1].hi = hi
			return
		}
	}
	s.push(lo, hi)
}

// load sets the empty set to all, which must be sorted, disjoint and non-adjacent. It does not keep
// all.
func (s *spans) load(all []span) {
	for _, x := range all {
		s.push(x.lo, x.hi)
	}
}

// add adds seq and reports whether it was missing.
func (s *spans) add(seq uint64) bool {
	c, i := s.search(seq)
	var next, prev *span
	if c < len(s.chunks) {
		if b := s.chunks[c].bits; b != nil && b.base <= seq {
			had := b.has(seq)
			b.set(seq, seq+1)
			return !had
		} else if b == nil {
			if next = &s.chunks[c].list[i]; next.lo <= seq {
				return false
			}
		}
	}
	switch {
	case i > 0:
		prev = &s.chunks[c].list[i-1]
	case c > 0 && s.n > 0:
		if before := s.chunks[c-1].list; len(before) > 0 {
			prev = &before[len(before)-1]
		}
	}
	touchesNext := next != nil && next.lo == seq+1
	touchesPrev := prev != nil && prev.hi == seq
	switch {
	case touchesNext && touchesPrev:
		prev.hi = next.hi
		s.delete(c, i)
	case touchesNext:
		next.lo = seq
	case touchesPrev:
		prev.hi++
	default:
		s.insert(c, i, span{seq, seq + 1})
	}
	return true
}

// remove removes seq and reports whether it was there.
func (s *spans) remove(seq uint64) bool {
	c, i := s.search(seq)
	if c == len(s.chunks) {
		return false
	}
	if s.chunks[c].bits != nil {
		return s.clear(c, seq)
	}
	p := &s.chunks[c].list[i]
	switch {
	case seq < p.lo:
		return false
	case p.lo+1 == p.hi:
		s.delete(c, i)
	case p.lo == seq:
		p.lo++
	case p.hi == seq+1:
		p.hi--
	default:
		rest := span{seq + 1, p.hi}
		p.hi = seq
		s.insert(c, i+1, rest)
	}
	return true
}

// cut removes everything below seq.
func (s *spans) cut(seq uint64) {
	if s.n == 0 {
		return
	}
	c, i := s.search(seq)
	if c == len(s.chunks) {
		s.chunks, s.n = nil, 0
		return
	}
	for k := range s.chunks[:c] {
		s.n -= s.chunks[k].cost()
	}
	s.chunks = slices.Delete(s.chunks, 0, c)
	if b := s.chunks[0].bits; b != nil {
		if b.base < seq {
			b.unset(seq)
			s.shrink(0)
		}
		return
	}
	s.n -= i
	s.chunks[0].list = slices.Delete(s.chunks[0].list, 0, i)
	first := &s.chunks[0].list[0]
	first.lo = max(first.lo, seq)
	s.join(0)
}

// cost returns what a chunk adds to spans.n.
func (c *chunk) cost() int {
	if c.bits != nil {
		return bitsCost
	}
	return len(c.list)
}

// endOf returns the end of the oldest part of the set that costs more than k.
func (s *spans) endOf(k int) uint64 {
	for i := range s.chunks {
		c := &s.chunks[i]
		if k < c.cost() {
			if c.bits != nil {
				return c.end()
			}
			return c.list[k].hi
		}
		k -= c.cost()
	}
	return 0
}

// all returns the set as disjoint, non-adjacent spans, appended to into.
func (s *spans) all(into []span) []span {
	from := len(into)
	add := func(x span) {
		if last := len(into) - 1; last >= from && into[last].hi == x.lo {
			into[last].hi = x.hi
			return
		}
		into = append(into, x)
	}
	for i := range s.chunks {
		b := s.chunks[i].bits
		for _, x := range s.chunks[i].list {
			add(x)
		}
		if b == nil {
			continue
		}
		for at := b.base; at < b.base+windowLen; {
			in, next := b.at(at)
			if in {
				add(span{at, next})
			}
			at = next
		}
	}
	return into
}

// insert puts p, which lies outside all windows of bits, before span i of the chunk, or before a
// chunk of bits; at may be len(s.chunks).
func (s *spans) insert(at, i int, p span) {
	s.n++
	if at == len(s.chunks) || s.chunks[at].bits != nil { // after the previous list, if there is one
		switch {
		case at == 0 && len(s.chunks) == 0:
			s.chunks = append(s.chunks, chunk{}) // grows with its contents: most sets stay small
		case at == 0 || s.chunks[at-1].bits != nil:
			s.chunks = slices.Insert(s.chunks, at, chunk{list: s.fresh()})
		default:
			at--
		}
		i = len(s.chunks[at].list)
	}
	c := s.chunks[at].list
	if len(c) == chunkLen {
		if s.gather(at) {
			s.n--
			s.put(p)
			return
		}
		if i == chunkLen && at == len(s.chunks)-1 {
			s.chunks = append(s.chunks, chunk{list: append(s.fresh(), p)})
			return
		}
		const half = chunkLen / 2
		upper := append(s.fresh(), c[half:]...)
		s.chunks[at].list = c[:half]
		s.chunks = slices.Insert(s.chunks, at+1, chunk{list: upper})
		if i > half {
			at, i = at+1, i-half
		}
	}
	s.chunks[at].list = slices.Insert(s.chunks[at].list, i, p)
}

// delete removes span i of the chunk.
func (s *spans) delete(at, i int) {
	s.n--
	s.chunks[at].list = slices.Delete(s.chunks[at].list, i, i+1)
	s.join(at)
}

// join drops the list if it is empty, and joins it with a neighbour if both are small. The only
// chunk stays.
func (s *spans) join(at int) {
	n := len(s.chunks[at].list)
	switch {
	case len(s.chunks) == 1 || n > chunkLen/4:
		return
	case n == 0:
		s.drop(at)
		return
	}
	for left := max(at-1, 0); left <= at && left+1 < len(s.chunks); left++ {
		a, b := &s.chunks[left], &s.chunks[left+1]
		if a.bits == nil && b.bits == nil && len(a.list)+len(b.list) <= chunkLen/2 {
			a.list = append(a.list, b.list...)
			s.drop(left + 1)
			return
		}
	}
}

// drop removes the list, whose spans have been moved.
func (s *spans) drop(at int) {
	s.spare = s.chunks[at].list[:0]
	s.chunks = slices.Delete(s.chunks, at, at+1)
}

// fresh returns an empty chunk.
func (s *spans) fresh() []span {
	c := s.spare
	s.spare = nil
	if cap(c) < chunkLen {
		c = make([]span, 0, chunkLen)
	}
	return c
}

// A cursor iterates over spans once, upwards.
type cursor struct {
	s        *spans
	chunk, i int
}

// from returns a cursor for sequences from seq on.
func (s *spans) from(seq uint64) cursor {
	c, i := s.search(seq)
	return cursor{s, c, i}
}

// at reports whether seq is in the set, and up to where the answer certainly stays the same; where
// bits begin or end it may continue beyond. seq must not decrease from call to call.
func (c *cursor) at(seq uint64) (in bool, next uint64) {
	for ; c.chunk < len(c.s.chunks); c.chunk, c.i = c.chunk+1, 0 {
		if b := c.s.chunks[c.chunk].bits; b != nil {
			if seq < b.base {
				return false, b.base
			}
			if seq < b.base+windowLen {
				return b.at(seq)
			}
			continue
		}
		list := c.s.chunks[c.chunk].list
		for ; c.i < len(list); c.i++ {
			switch p := list[c.i]; {
			case seq < p.lo:
				return false, p.lo
			case seq < p.hi:
				return true, p.hi
			}
		}
	}
	return false, math.MaxUint64
}

// A set is a set of sequences of which nearly all below head are members; the others are its holes.
// The zero value is empty.
type set struct {
	head  uint64 // one above the highest member ever
	holes spans
}

// insert adds seq and reports whether it was missing.
func (s *set) insert(seq uint64) bool {
	switch {
	case seq == s.head:
		s.head++
		return true
	case seq > s.head:
		s.holes.push(s.head, seq)
		s.head = seq + 1
		return true
	case s.holes.n == 0:
		return false
	}
	return s.holes.remove(seq)
}

// fill adds everything below seq.
func (s *set) fill(seq uint64) {
	s.head = max(s.head, seq)
	s.holes.cut(seq)
}
