package ledger

import (
	"math"
	"slices"
	"sort"
)

// chunkLen is how many spans a chunk holds at most. Inserting into a full list
// of a million spans moves at most one chunk (2 KiB) and, once in chunkLen
// insertions, the list of chunks.
const chunkLen = 128

// A span is the sequences from lo up to, not including, hi.
type span struct{ lo, hi uint64 }

// spans is a set of sequences as disjoint, non-adjacent spans in ascending
// order, in chunks so that a change anywhere stays cheap. Its memory follows the
// number of spans, not that of sequences: neighbouring chunks that together
// would fill less than half of one are joined. Once grown it allocates nothing
// while the number of spans stays where it is. The zero value is empty. It is
// not for concurrent use.
type spans struct {
	chunks [][]span // none empty, but perhaps the only one
	n      int      // spans in all
	spare  []span   // an emptied chunk, kept for the next
}

// search returns the place of the first span that ends after seq;
// len(s.chunks) where there is none.
func (s *spans) search(seq uint64) (chunk, i int) {
	if s.n == 0 {
		return len(s.chunks), 0
	}
	// Nearly all that happens, happens at the newest or the oldest spans.
	switch last := len(s.chunks) - 1; {
	case s.chunks[last][0].lo <= seq:
		chunk = last
	case seq < end(s.chunks[0]):
		chunk = 0
	default:
		chunk = sort.Search(last, func(c int) bool { return seq < end(s.chunks[c]) })
	}
	c := s.chunks[chunk]
	if end(c) <= seq {
		return len(s.chunks), 0 // only in the last chunk
	}
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

// end returns where the last span of c ends.
func end(c []span) uint64 { return c[len(c)-1].hi }

// contains reports whether seq is in the set.
func (s *spans) contains(seq uint64) bool {
	c, i := s.search(seq)
	return c < len(s.chunks) && s.chunks[c][i].lo <= seq
}

// push adds all of [lo, hi), which must lie after the end of the set and not
// touch it.
func (s *spans) push(lo, hi uint64) { s.insert(len(s.chunks), 0, span{lo, hi}) }

// extend is push for a span that may touch the end of the set.
func (s *spans) extend(lo, hi uint64) {
	if s.n > 0 {
		c := s.chunks[len(s.chunks)-1]
		if last := &c[len(c)-1]; last.hi == lo {
			last.hi = hi
			return
		}
	}
	s.push(lo, hi)
}

// load makes the empty set that of all, which are as in a set. It keeps nothing
// of them.
func (s *spans) load(all []span) {
	s.n = len(all)
	for c := range slices.Chunk(all, chunkLen) {
		s.chunks = append(s.chunks, slices.Clone(c))
	}
}

// add adds seq and reports whether it was missing.
func (s *spans) add(seq uint64) bool {
	c, i := s.search(seq)
	var next, prev *span
	if c < len(s.chunks) {
		if next = &s.chunks[c][i]; next.lo <= seq {
			return false
		}
	}
	switch {
	case i > 0:
		prev = &s.chunks[c][i-1]
	case c > 0 && s.n > 0:
		before := s.chunks[c-1]
		prev = &before[len(before)-1]
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

// remove takes seq out and reports whether it was there.
func (s *spans) remove(seq uint64) bool {
	c, i := s.search(seq)
	if c == len(s.chunks) {
		return false
	}
	p := &s.chunks[c][i]
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

// cut takes everything below seq out.
func (s *spans) cut(seq uint64) {
	if s.n == 0 {
		return
	}
	c, i := s.search(seq)
	if c == len(s.chunks) {
		s.chunks, s.n = nil, 0
		return
	}
	for _, gone := range s.chunks[:c] {
		s.n -= len(gone)
	}
	s.n -= i
	s.chunks = slices.Delete(s.chunks, 0, c)
	s.chunks[0] = slices.Delete(s.chunks[0], 0, i)
	first := &s.chunks[0][0]
	first.lo = max(first.lo, seq)
	s.join(0)
}

// endOf returns where span k ends, counted from 0.
func (s *spans) endOf(k int) uint64 {
	for _, c := range s.chunks {
		if k < len(c) {
			return c[k].hi
		}
		k -= len(c)
	}
	return 0
}

// insert puts p before span i of the chunk; chunk may be len(s.chunks).
func (s *spans) insert(chunk, i int, p span) {
	s.n++
	if chunk == len(s.chunks) {
		if chunk == 0 {
			s.chunks = append(s.chunks, nil) // grows with what it holds: most sets stay small
		}
		if last := len(s.chunks) - 1; len(s.chunks[last]) < chunkLen {
			s.chunks[last] = append(s.chunks[last], p)
		} else {
			s.chunks = append(s.chunks, append(s.fresh(), p))
		}
		return
	}
	c := s.chunks[chunk]
	if len(c) == chunkLen {
		const half = chunkLen / 2
		upper := append(s.fresh(), c[half:]...)
		s.chunks[chunk] = c[:half]
		s.chunks = slices.Insert(s.chunks, chunk+1, upper)
		if i > half {
			chunk, i = chunk+1, i-half
		}
	}
	s.chunks[chunk] = slices.Insert(s.chunks[chunk], i, p)
}

// delete takes span i of the chunk out.
func (s *spans) delete(chunk, i int) {
	s.n--
	s.chunks[chunk] = slices.Delete(s.chunks[chunk], i, i+1)
	s.join(chunk)
}

// join drops the chunk where it is empty, and joins it with a neighbour where
// both are small. The only chunk stays as it is.
func (s *spans) join(chunk int) {
	n := len(s.chunks[chunk])
	switch {
	case len(s.chunks) == 1 || n > chunkLen/4:
		return
	case n == 0:
		s.drop(chunk)
		return
	}
	for left := max(chunk-1, 0); left <= chunk && left+1 < len(s.chunks); left++ {
		if len(s.chunks[left])+len(s.chunks[left+1]) <= chunkLen/2 {
			s.chunks[left] = append(s.chunks[left], s.chunks[left+1]...)
			s.drop(left + 1)
			return
		}
	}
}

// drop takes the chunk out, whose spans are elsewhere by now.
func (s *spans) drop(chunk int) {
	s.spare = s.chunks[chunk][:0]
	s.chunks = slices.Delete(s.chunks, chunk, chunk+1)
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

// A cursor goes through spans once, upwards.
type cursor struct {
	s        *spans
	chunk, i int
}

// from returns a cursor for sequences of seq and above.
func (s *spans) from(seq uint64) cursor {
	c, i := s.search(seq)
	return cursor{s, c, i}
}

// at reports whether seq is in the set, and the next sequence of which the
// answer differs. seq does not decrease from call to call.
func (c *cursor) at(seq uint64) (in bool, next uint64) {
	for ; c.chunk < len(c.s.chunks); c.chunk, c.i = c.chunk+1, 0 {
		for ; c.i < len(c.s.chunks[c.chunk]); c.i++ {
			switch p := c.s.chunks[c.chunk][c.i]; {
			case seq < p.lo:
				return false, p.lo
			case seq < p.hi:
				return true, p.hi
			}
		}
	}
	return false, math.MaxUint64
}

// A set is a set of sequences of which nearly all below head are members: the
// rest of those are its holes. The zero value is empty.
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

// fill makes members of everything below seq.
func (s *set) fill(seq uint64) {
	s.head = max(s.head, seq)
	s.holes.cut(seq)
}
