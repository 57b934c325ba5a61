package engine

// With Config.Received a message is in flight until it was confirmed and received. Both
// come from goroutines of the driver, in any order, and the second one frees the slot.

// message identifies a message of the run; never 0. A stream has fewer than 2^40 of them.
func message(stream uint32, seq uint64) uint64 { return uint64(stream+1)<<40 | seq&(1<<40-1) }

// await expects both halves of the message that is handed over next.
func (sl *slot) await() {
	sl.halves.Store(2)
	sl.awaited.Store(message(sl.stream, sl.seq))
}

// confirmed notes that the message was completed, and reports whether the slot is free. One
// that failed is not waited for.
func (sl *slot) confirmed(well bool) bool {
	if !well && sl.awaited.Swap(0) != 0 {
		sl.halves.Add(-1)
	}
	return sl.halves.Add(-1) == 0
}

// received notes that the message of a stream came back. One that came before, or that is
// not in flight, changes nothing.
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
