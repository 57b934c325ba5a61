package ledger

// seen maps a stream and partition to one above the highest sequence that a consumer has seen of
// it: an open-addressing table that takes 16 bytes per entry and, if a consumer sees few streams, a
// nanosecond per lookup. It grows by doubling, up to the streams and partitions that the consumer
// sees. The zero value is empty.
type seen struct {
	entries []seenEntry // a power of two, at most three quarters used
	used    int
	shift   uint // of the hash, so that it fits
}

type seenEntry struct {
	key   uint64
	above uint64 // 0: the entry is free
}

// raise records that seq was seen and returns one above the highest before it, 0 for none.
func (s *seen) raise(stream uint32, partition int32, seq uint64) (before uint64) {
	key := uint64(stream)<<32 | uint64(uint32(partition))
	for {
		if len(s.entries) > 0 {
			e := s.find(key)
			if e.above > 0 {
				before = e.above
				e.above = max(before, seq+1)
				return before
			}
			if 4*(s.used+1) <= 3*len(s.entries) {
				*e = seenEntry{key, seq + 1}
				s.used++
				return 0
			}
		}
		s.grow()
	}
}

// find returns the entry of key, or the free one where it belongs.
func (s *seen) find(key uint64) *seenEntry {
	// Multiplicative hashing: Knuth, The Art of Computer Programming, volume 3,
	// section 6.4; the factor is 2^64 divided by the golden ratio.
	i := key * 0x9e3779b97f4a7c15 >> s.shift
	mask := uint64(len(s.entries) - 1)
	for ; ; i++ {
		if e := &s.entries[i&mask]; e.above == 0 || e.key == key {
			return e
		}
	}
}

func (s *seen) grow() {
	old := s.entries
	if len(old) == 0 {
		s.entries, s.shift = make([]seenEntry, 8), 61
		return
	}
	s.entries = make([]seenEntry, 2*len(old))
	s.shift--
	for _, e := range old {
		if e.above > 0 {
			*s.find(e.key) = e
		}
	}
}
