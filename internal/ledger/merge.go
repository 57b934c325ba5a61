package ledger

// handBack is after how many events of a ring Merge returns their places within a pass.
const handBack = 64

// Merge takes what the readers had received when it began, for each subscription in order of At
// (ties in order of the consumers, each consumer's in the order received), and classifies it: the
// earlier of two deliveries of a message is the first one, as far as they are in one pass. It calls
// first for every first delivery that is not corrupted; the Event is valid until first returns.
// first may be nil. Merge returns how many events it took.
//
// It must be called by one goroutine at a time, regularly, even without consumers, because it
// enforces the memory bound. It waits for nobody, except briefly for a stream's completions. It
// allocates only if deliveries are more widely out of order than ever before, or if a consumer sees
// a stream for the first time.
func (l *Ledger) Merge(first func(sub int, e *Event)) int {
	n := 0
	for i := range l.subs {
		n += l.merge(i, first)
	}
	if l.open() > l.maxOpen {
		l.evict()
	}
	return n
}

// A next is a reader's next event in the heap.
type next struct {
	at     int64
	reader int32
}

func (a next) before(b next) bool {
	return a.at < b.at || a.at == b.at && a.reader < b.reader
}

// merge is Merge for one subscription.
func (l *Ledger) merge(i int, first func(sub int, e *Event)) int {
	sub := &l.subs[i]
	h := sub.queue[:0]
	for c, r := range sub.readers {
		if r.limit = r.tail.Load(); r.limit > r.taken {
			h = append(h, next{r.slots[r.taken&r.mask].At, int32(c)})
		}
	}
	for j := len(h)/2 - 1; j >= 0; j-- {
		sink(h, j)
	}
	total := 0
	last := sub.last.Load()
	for len(h) > 0 {
		r := sub.readers[h[0].reader]
		alone := len(h) == 1
		var rival next // the smallest of the others
		if !alone {
			rival = h[1]
			if len(h) > 2 && h[2].before(rival) {
				rival = h[2]
			}
		}
		for {
			e := &r.slots[r.taken&r.mask]
			last = max(last, e.At)
			l.take(i, r, e, first)
			total++
			r.taken++
			if r.taken == r.limit {
				r.head.Store(r.taken)
				h[0] = h[len(h)-1]
				h = h[:len(h)-1]
				break
			}
			if r.taken%handBack == 0 {
				r.head.Store(r.taken)
			}
			h[0].at = r.slots[r.taken&r.mask].At
			if !alone && rival.before(h[0]) {
				break
			}
		}
		if len(h) > 1 {
			sink(h, 0)
		}
	}
	if total > 0 {
		sub.last.Store(last)
		n := uint64(0)
		for _, c := range sub.counts {
			n += c.first + c.late
		}
		sub.distinct.Store(n)
		sub.passed.Store(sub.reached - min(sub.reached, n))
	}
	return total
}

// sink restores the heap below h[i].
func sink(h []next, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// take classifies one delivery.
func (l *Ledger) take(i int, r *Reader, e *Event, first func(sub int, e *Event)) {
	sub := &l.subs[i]
	if uint64(e.Stream) >= uint64(len(sub.streams)) {
		sub.foreign++
		return
	}
	d := &sub.streams[e.Stream]
	phase := warmUp
	if e.Due >= l.from {
		phase = measured
	}
	c := &sub.counts[phase]
	if e.Misrouted { // not a delivery of the message: it was meant for another place
		c.misrouted++
		return
	}
	if phase == measured {
		d.measured = min(d.measured, e.Seq)
	}
	if e.Redelivered {
		c.redelivered++
	}
	above := r.seen.raise(e.Stream, e.Partition, e.Seq)
	isFirst := e.Seq == d.head
	if e.Seq >= d.head {
		d.newest = point{e.Due, e.Start}
	}
	if isFirst { // in order, as nearly always
		d.head++
		sub.reached++
	} else {
		before, head := d.holes.n, d.head
		isFirst = d.insert(e.Seq)
		l.held += d.holes.n - before
		sub.reached += d.head - head
	}
	if !isFirst {
		// Whether a message closed by the bound had arrived is unknown; but deliveries beyond the
		// number of messages that had not are certainly duplicates.
		if d.late < d.lacked && e.Seq < max(d.floor, l.streams[e.Stream].closed) {
			d.late++
			c.late++
		} else {
			c.duplicated++
		}
		return
	}
	c.first++
	d.first.count(phase, e.Corrupted, 1)
	if e.Seq+1 < above && !e.Redelivered {
		c.reordered++
	}
	if e.Corrupted {
		before := d.corrupted.n
		d.corrupted.add(e.Seq)
		l.held += d.corrupted.n - before
		return
	}
	if first != nil {
		first(i, e)
	}
}
