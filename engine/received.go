package engine

// With Config.Received a message stays in flight until it is both confirmed and received.
// Goroutines of the driver report both, in any order; the second report frees the slot.

// message identifies a message of the run; never 0. A stream has fewer than 2^40 of them.
func message(stream uint32, seq uint64) uint64 { return uint64(stream+1)<<40 | seq&(1<<40-1) }

// await expects both reports for the message that is handed over next.
func (sl *slot) await() {
	sl.halves.Store(2)
	sl.awaited.Store(message(sl.stream, sl.seq))
}

// confirmed notes that the message was completed, and reports whether the slot is free. A failed
// message is not awaited.
func (sl *slot) confirmed(well bool) bool {
	if !well && sl.awaited.Swap(0) != 0 {
		sl.halves.Add(-1)
	}
	return sl.halves.Add(-1) == 0
}

// received notes that a message of the stream was received. Duplicates, and messages not in flight,
// have no effect.
func (s *sender) received(stream uint32, seq uint64) {
	m := message(stream, seq)
	for i := range s.slots {
		if sl := &s.slots[i]; sl.awaited.Load() == m && sl.awaited.CompareAndSwap(m, 0) {
			if sl.halves.Add(-1) == 0 {
				s.free.push(uint32(i))
				s.rouse()
			}
			return
		}
	}
}
