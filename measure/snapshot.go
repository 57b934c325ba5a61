package measure

import "math"

// Counters are outcomes by phase.
type Counters struct {
	Scheduled, Sent, Dropped, Unsent, Confirmed, Failed uint64
	Settled                                             uint64
	Received                                            uint64 // by their own instant, not the due one
}

// Window counts the events with their own instant in the measured window.
type Window struct {
	Sent, SentBytes, Confirmed, Received, ReceivedBytes uint64
}

// A Snapshot is what a Recorder has recorded up to an instant, over all shards. The zero value is
// that of the run's start. It is reused from read to read and takes up to 7.3 MiB.
type Snapshot struct {
	At       int64 // ns since the epoch, as given to Read
	Kinds    [NumKinds][NumPhases]Counts
	Counters [NumPhases]Counters
	Window   Window
}

// An Interval is what was recorded between two readings.
type Interval struct {
	From, To int64 // ns since the epoch
	Kinds    [NumKinds][NumPhases]Counts
	Counters [NumPhases]Counters
	Window   Window
	Backlog  Backlog // set by the caller
}

// Read sets into to what has been recorded so far; at is the instant of the reading. It may be
// called while others record, from any goroutine, one at a time; no figure of a later reading is
// smaller than in an earlier one. While others record, a message may be in one distribution and not
// yet in another; once recording has stopped a reading is exact. It reads the whole touched range
// of each histogram: some 10 µs for a distribution.
func (r *Recorder) Read(at int64, into *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	into.At = at
	for k := range into.Kinds { // lateness before blocked: see free
		for p := range into.Kinds[k] {
			c := &into.Kinds[k][p]
			c.Reset()
			for _, h := range r.histograms[k][p] {
				h.addTo(c)
			}
		}
	}
	var totals [NumKinds][NumPhases]uint64
	for k := range totals {
		for p := range totals[k] {
			totals[k][p] = into.Kinds[k][p].total
		}
	}
	free := r.unblocked(&totals)
	for p := range free {
		into.Kinds[SendBlocked][p].Add(0, free[p])
	}
	into.Counters, into.Window = r.outcomes(&totals)
}

// Next sets iv to what has been recorded since the previous call (the first time: since the run's
// start); at is the instant of the reading, as in Read. Over all calls the intervals add up exactly
// to Read's result at the end. It visits only blocks of buckets that changed, so that reading ten
// times a second leaves the caches to the system. It clears Backlog.
func (r *Recorder) Next(at int64, iv *Interval) {
	r.mu.Lock()
	defer r.mu.Unlock()
	iv.From, iv.To, iv.Backlog = r.seen.At, at, iv.Backlog[:0]
	r.seen.At = at
	for k := range iv.Kinds { // lateness before blocked: see free
		for p := range iv.Kinds[k] {
			advance(r.histograms[k][p], &r.seen.Kinds[k][p], &iv.Kinds[k][p])
		}
	}
	var totals [NumKinds][NumPhases]uint64
	for k := range totals {
		for p := range totals[k] {
			totals[k][p] = r.seen.Kinds[k][p].total
		}
	}
	free := r.unblocked(&totals)
	for p := range free {
		iv.Kinds[SendBlocked][p].Add(0, free[p]-r.freed[p])
	}
	r.freed = free
	iv.Counters, iv.Window = r.outcomes(&totals)
	counters, window := iv.Counters, iv.Window
	for p := range iv.Counters {
		iv.Counters[p].sub(&r.seen.Counters[p])
	}
	iv.Window.sub(&r.seen.Window)
	r.seen.Counters, r.seen.Window = counters, window
}

// advance brings seen, a sum of histograms, up to date, and sets fresh to the difference.
func advance(of []*Histogram, seen, fresh *Counts) {
	fresh.Reset()
	var touched blocks
	for _, h := range of {
		for w := range touched {
			if h.fresh[w].Load() != 0 { // a bit is set after its count
				touched[w] |= h.fresh[w].Swap(0)
			}
		}
	}
	first, last := -1, -1
	for b := touched.next(0); b >= 0; b = touched.next(b + blockLen) {
		seen.cover(b, b+blockLen-1)
		fresh.cover(b, b+blockLen-1)
		before, added := seen.block(b), fresh.block(b)
		for i := range before {
			var n uint64
			for _, h := range of {
				n += h.n[b+i].Load()
			}
			if n == before[i] {
				continue
			}
			added[i] = n - before[i]
			fresh.total += added[i]
			before[i] = n
			if last = b + i; first < 0 {
				first = last
			}
		}
		seen.used.mark(b)
		fresh.used.mark(b)
	}
	var over uint64
	for _, h := range of {
		over += h.over.Load()
	}
	fresh.over, seen.over = over-seen.over, over
	if fresh.total == 0 {
		return
	}
	seen.total += fresh.total
	// After the counts: the extremes are updated before them (see Histogram.Record).
	bottom, top := int64(math.MaxInt64), int64(-1)
	for _, h := range of {
		bottom, top = min(bottom, h.min.Load()), max(top, h.max.Load())
	}
	seen.min, seen.max = bottom, top
	fresh.min, fresh.max = max(bottom, BucketLowest(first)), top
	if fresh.over == 0 {
		fresh.max = min(top, highestOf(last))
	}
}

// unblocked returns how many messages were not blocked at all, given readings in which lateness
// came before blocked. Senders count blocked before late, so that the difference never exceeds the
// truth; the largest so far is kept.
func (r *Recorder) unblocked(totals *[NumKinds][NumPhases]uint64) [NumPhases]uint64 {
	for p := range r.free {
		if !r.cfg.Closed {
			r.free[p] = max(r.free[p], less(totals[SendLateness][p], totals[SendBlocked][p]))
		}
	}
	return r.free
}

// outcomes returns the counters and the window; totals are of distributions read just before.
//
// The window is derived from counts by phase and the edges. Writers record an edge's out before
// they count, and counts are read here before edges: so the difference may be briefly too small but
// never too large, and the largest so far is kept.
func (r *Recorder) outcomes(totals *[NumKinds][NumPhases]uint64) (counters [NumPhases]Counters, w Window) {
	service := SendService
	if r.cfg.Replied {
		service = RTTService
	}
	for p := range NumPhases {
		c := &counters[p]
		for i := range r.senders {
			s := &r.senders[i]
			c.Scheduled += s.scheduled[p].Load()
			c.Dropped += s.dropped[p].Load()
			c.Unsent += s.unsent[p].Load()
			c.Sent += s.sent[p].Load() // closed loop
		}
		for _, shards := range [...][]Receiver{r.receivers, r.repliers} {
			for i := range shards {
				c.Received += shards[i].received[p].Load()
			}
		}
		c.Confirmed, c.Failed, c.Settled = totals[service][p], totals[SendFailed][p], totals[Settle][p]
		if !r.cfg.Closed {
			c.Sent = totals[SendLateness][p]
		}
	}
	var sentOut, doneOut, after uint64
	for i := range r.senders {
		s := &r.senders[i]
		w.Sent += s.sentEdge.in.Load()
		w.Confirmed += s.doneEdge.in.Load()
		w.SentBytes += s.sentBytes.Load()
		sentOut += s.sentEdge.out.Load()
		doneOut += s.doneEdge.out.Load()
	}
	for _, shards := range [...][]Receiver{r.receivers, r.repliers} {
		for i := range shards {
			w.ReceivedBytes += shards[i].receivedBytes.Load()
			after += shards[i].after.Load()
		}
	}
	m := &counters[Measure]
	w.Sent = max(r.last.Sent, less(w.Sent+m.Sent, sentOut))
	w.Confirmed = max(r.last.Confirmed, less(w.Confirmed+m.Confirmed, doneOut))
	w.Received = max(r.last.Received, less(m.Received, after))
	if r.cfg.Bytes > 0 {
		w.SentBytes = w.Sent * uint64(r.cfg.Bytes)
		w.ReceivedBytes = w.Received * uint64(r.cfg.Bytes)
	}
	r.last = w
	return counters, w
}

// less returns a - b, or 0 if b is larger.
func less(a, b uint64) uint64 { return a - min(a, b) }

// Merge adds o, another worker's snapshot of the same run, to a. At becomes the later one.
func (a *Snapshot) Merge(o *Snapshot) {
	a.At = max(a.At, o.At)
	for k := range a.Kinds {
		for p := range a.Kinds[k] {
			a.Kinds[k][p].Merge(&o.Kinds[k][p])
		}
	}
	for p := range a.Counters {
		a.Counters[p].add(&o.Counters[p])
	}
	a.Window.add(&o.Window)
}
