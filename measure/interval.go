package measure

// Assign makes iv a copy of o, reusing iv's memory.
func (iv *Interval) Assign(o *Interval) {
	for k := range iv.Kinds {
		for p := range iv.Kinds[k] {
			iv.Kinds[k][p].Assign(&o.Kinds[k][p])
		}
	}
	iv.From, iv.To, iv.Counters, iv.Window = o.From, o.To, o.Counters, o.Window
	iv.Backlog = append(iv.Backlog[:0], o.Backlog...)
}

// Merge combines iv and o: two successive intervals of one recorder, or those of two recorders over
// about the same time. The result reaches from the earlier From to the later To. Backlog is a state
// and cannot be summed: Merge takes that of the interval that ends later, iv's if both end at once,
// and a caller that merges intervals of several processes must set it.
func (iv *Interval) Merge(o *Interval) {
	if o.To > iv.To {
		iv.To, iv.Backlog = o.To, append(iv.Backlog[:0], o.Backlog...)
	}
	iv.From = min(iv.From, o.From)
	for k := range iv.Kinds {
		for p := range iv.Kinds[k] {
			iv.Kinds[k][p].Merge(&o.Kinds[k][p])
		}
	}
	for p := range iv.Counters {
		iv.Counters[p].add(&o.Counters[p])
	}
	iv.Window.add(&o.Window)
}

// Seconds combines intervals shorter than a second, in order of time, into intervals of about a
// second. The zero value is ready. It is used by one goroutine at a time.
type Seconds struct {
	open Interval
	any  bool
}

// Add takes an interval. If it reaches into the next second, Add returns what has been combined,
// which is valid until the next Add; else nil.
func (s *Seconds) Add(iv *Interval) *Interval {
	if s.any {
		s.open.Merge(iv)
	} else {
		s.open.Assign(iv)
		s.any = true
	}
	if iv.To/1e9 <= s.open.From/1e9 {
		return nil
	}
	return s.Rest()
}

// Rest returns what has been combined since the last second was returned, or nil if nothing has.
func (s *Seconds) Rest() *Interval {
	if !s.any {
		return nil
	}
	s.any = false
	return &s.open
}

// Add adds an interval, so that a becomes the snapshot at its end: after all intervals of a
// recorder, from the first to the last, a is the recorder's last snapshot. Its extremes may be
// narrower than that snapshot's while others record (see Extremes). Intervals of several recorders
// may be added to one snapshot, in any order: it becomes what Merge makes of the recorders' own. At
// becomes the interval's end if that is later.
func (a *Snapshot) Add(iv *Interval) {
	a.Merge(&Snapshot{iv.To, iv.Kinds, iv.Counters, iv.Window})
}

// fields returns every count of c.
func (c *Counters) fields() [8]*uint64 {
	return [...]*uint64{
		&c.Scheduled, &c.Sent, &c.Dropped, &c.Unsent, &c.Confirmed, &c.Failed, &c.Settled, &c.Received,
	}
}

func (c *Counters) add(o *Counters) {
	from := o.fields()
	for i, v := range c.fields() {
		*v += *from[i]
	}
}

func (c *Counters) sub(o *Counters) {
	from := o.fields()
	for i, v := range c.fields() {
		*v -= *from[i]
	}
}

// fields returns every count of w.
func (w *Window) fields() [5]*uint64 {
	return [...]*uint64{&w.Sent, &w.SentBytes, &w.Confirmed, &w.Received, &w.ReceivedBytes}
}

func (w *Window) add(o *Window) {
	from := o.fields()
	for i, v := range w.fields() {
		*v += *from[i]
	}
}

func (w *Window) sub(o *Window) {
	from := o.fields()
	for i, v := range w.fields() {
		*v -= *from[i]
	}
}
