package measure

import "math/bits"

// A histogram has tens of thousands of buckets, and the messages of a tenth of a second fill some
// hundred of them. Blocks of neighbouring buckets are marked when something is counted, so that
// reading, adding up and clearing can skip all others.
const (
	blockBits  = 4 // log2 of the buckets in a block: two cache lines of counts
	blockLen   = 1 << blockBits
	blockWords = (numCounts>>blockBits + 63) / 64
)

// blocks is a set of blocks, a bit for each.
type blocks [blockWords]uint64

// mark adds the block of a bucket.
func (s *blocks) mark(bucket int) { s[bucket>>(blockBits+6)] |= blockBit(bucket) }

// blockBit is the bit of a bucket's block in its word.
func blockBit(bucket int) uint64 { return 1 << (bucket >> blockBits & 63) }

// bounds returns the first bucket of the first block and the last bucket of the last one; there must be one.
func (s *blocks) bounds() (first, last int) {
	w := blockWords - 1
	for s[w] == 0 {
		w--
	}
	return s.next(0), (w*64+bits.Len64(s[w]))<<blockBits - 1
}

// next returns the first bucket of the first block at or after a bucket, which must be the first of
// its own block; -1 if there is none.
func (s *blocks) next(bucket int) int {
	block := bucket >> blockBits
	for w := block / 64; w < blockWords; w++ {
		m := s[w]
		if w == block/64 {
			m &= ^uint64(0) << (block % 64)
		}
		if m != 0 {
			return (w*64 + bits.TrailingZeros64(m)) << blockBits
		}
	}
	return -1
}
