package measure

// Counters are outcomes by phase.
type Counters struct {
	Scheduled, Sent, Dropped, Unsent, Confirmed, Failed uint64
	Settled                                             uint64
	Received                                            uint64 // by their own instant, not the due one
}

// Window counts the events whose own instant lies in the measured window.
type Window struct {
	Sent, SentBytes, Confirmed, Received, ReceivedBytes uint64
}

// A Snapshot is what a Recorder has recorded up to an instant, over all shards.
// The zero value is that of the run's start. It is reused from read to read and
// takes up to 7.3 MiB.
type Snapshot struct {
	At       int64 // ns since the epoch, as given to Read
	Kinds    [NumKinds][NumPhases]Counts
	Counters [NumPhases]Counters
	Window   Window
}

// An Interval is the difference of two snapshots.
type Interval struct {
	From, To int64 // ns since the epoch
	Kinds    [NumKinds][NumPhases]Counts
	Counters [NumPhases]Counters
	Window   Window
	Backlog  uint64 // set by the caller; nothing here knows it
}

// Read sets into to what has been recorded so far, at being the instant of the
// reading. It may be called while others record, from any goroutine, one at a
// time; no figure of a later reading is less than in an earlier one, so that
// intervals sum up exactly. While others record, a message may be in one
// distribution and not yet in another; once recording has stopped a reading is
// exact. It reads only the touched range of each histogram: some 10 µs for a
// distribution.
func (r *Recorder) Read(at int64, into *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	into.At = at
	for k := range into.Kinds {
		for p := range into.Kinds[k] {
			into.Kinds[k][p].Reset()
		}
	}
	into.Counters, into.Window = [NumPhases]Counters{}, Window{}
	// The window is derived from counts by phase and the edges. Writers note
	// an edge's out before they count, and here counts are read before edges:
	// so the difference may fall short of the truth for a moment but never
	// exceeds it, and the largest so far is kept.
	response, onTime, service := SendResponse, SendOnTime, SendService
	if r.cfg.Replied {
		response, onTime, service = RTTResponse, RTTOnTime, RTTService
	}
	var w Window
	var sentOut, doneOut, after uint64
	for i := range r.senders {
		s := &r.senders[i]
		for p := range NumPhases {
			c := &into.Counters[p]
			s.service[p].addTo(&into.Kinds[service][p])
			s.failed[p].addTo(&into.Kinds[SendFailed][p])
			if r.cfg.Closed {
				c.Sent += s.sent[p].Load()
			} else {
				s.response[p].addTo(&into.Kinds[response][p])
				s.onTime[p].addTo(&into.Kinds[onTime][p])
				s.lateness[p].addTo(&into.Kinds[SendLateness][p])
				s.heldUp[p].addTo(&into.Kinds[SendHeldUp][p])
				s.blocked[p].addTo(&into.Kinds[SendBlocked][p])
			}
			c.Scheduled += s.scheduled[p].Load()
			c.Dropped += s.dropped[p].Load()
			c.Unsent += s.unsent[p].Load()
		}
		w.Sent += s.sentEdge.in.Load()
		w.Confirmed += s.doneEdge.in.Load()
		w.SentBytes += s.sentBytes.Load()
		sentOut += s.sentEdge.out.Load()
		doneOut += s.doneEdge.out.Load()
	}
	receive := func(shards []Receiver, response, onTime, service Kind) {
		for i := range shards {
			s := &shards[i]
			for p := range NumPhases {
				s.service[p].addTo(&into.Kinds[service][p])
				s.settle[p].addTo(&into.Kinds[Settle][p])
				if !r.cfg.Closed {
					s.response[p].addTo(&into.Kinds[response][p])
					s.onTime[p].addTo(&into.Kinds[onTime][p])
				}
				into.Counters[p].Received += s.received[p].Load()
			}
			w.ReceivedBytes += s.receivedBytes.Load()
			after += s.after.Load()
		}
	}
	var confirmed [NumPhases]uint64 // before the replies join them, which confirm nothing
	for p := range NumPhases {
		confirmed[p] = into.Kinds[service][p].total
	}
	receive(r.receivers, E2EResponse, E2EOnTime, E2EService)
	receive(r.repliers, RTTResponse, RTTOnTime, RTTService)
	for p := range NumPhases {
		if !r.cfg.Closed {
			// Handed leaves out what was not blocked at all. It counts blocked
			// before late and here the late are read before the blocked: again
			// the difference never exceeds the truth.
			late, blocked := &into.Kinds[SendLateness][p], &into.Kinds[SendBlocked][p]
			r.free[p] = max(r.free[p], less(late.total, blocked.total))
			blocked.Add(0, r.free[p])
		}
		c := &into.Counters[p]
		c.Confirmed = confirmed[p]
		c.Failed = into.Kinds[SendFailed][p].total
		c.Settled = into.Kinds[Settle][p].total
		if !r.cfg.Closed {
			c.Sent = into.Kinds[SendLateness][p].total
		}
	}
	m := &into.Counters[Measure]
	w.Sent = max(r.last.Sent, less(w.Sent+m.Sent, sentOut))
	w.Confirmed = max(r.last.Confirmed, less(w.Confirmed+m.Confirmed, doneOut))
	w.Received = max(r.last.Received, less(m.Received, after))
	if r.cfg.Bytes > 0 {
		w.SentBytes = w.Sent * uint64(r.cfg.Bytes)
		w.ReceivedBytes = w.Received * uint64(r.cfg.Bytes)
	}
	into.Window, r.last = w, w
}

// less is a - b, or 0 where b is more.
func less(a, b uint64) uint64 { return a - min(a, b) }

// Interval sets into to what a holds beyond prev, an earlier snapshot of the
// same recorder. Over successive snapshots the intervals sum up to the last
// exactly. Backlog becomes 0.
func (a *Snapshot) Interval(prev *Snapshot, into *Interval) {
	into.From, into.To, into.Backlog = prev.At, a.At, 0
	for k := range a.Kinds {
		for p := range a.Kinds[k] {
			into.Kinds[k][p].Assign(&a.Kinds[k][p])
			into.Kinds[k][p].Sub(&prev.Kinds[k][p])
		}
	}
	into.Counters, into.Window = a.Counters, a.Window
	for p := range into.Counters {
		into.Counters[p].sub(&prev.Counters[p])
	}
	into.Window.sub(&prev.Window)
}

// Merge adds o, another process's part of the same run, to a. At becomes the
// later one.
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
