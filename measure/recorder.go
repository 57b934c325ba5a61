package measure

import (
	"sync"
	"sync/atomic"
)

// Config configures a Recorder.
type Config struct {
	SendShards    int   // shards for senders, one per pacer; 0: 1
	ReceiveShards int   // shards for receivers; 0: 1
	ReplyShards   int   // shards for goroutines that receive replies; 0: none
	Replied       bool  // replies confirm messages: Confirmed records a round trip
	From, To      int64 // the measured window [From, To), ns since the epoch
	Horizon       int64 // the schedule's end, for NotSent; 0: To
	Closed        bool  // closed loop: no due instants
	// Stages are the starts of the stages of the measured window, ascending, the first at From;
	// nil: stages are not recorded separately. At most MostStages, and none in a closed loop.
	Stages []int64
	Bytes  int // size of every message if all are equal; 0: sizes are summed individually, which costs an atomic add each
}

// A Recorder holds all counters and histograms of one worker: cumulative from the run's start,
// never reset. It is divided into shards to avoid contention; a sender shard takes 4.1 MiB, a
// receiver shard 2.1 MiB, of which only touched pages become resident.
type Recorder struct {
	cfg       Config
	senders   []Sender
	receivers []Receiver
	repliers  []Receiver
	hiccups   [NumPhases]*Histogram
	notSent   notSent

	histograms [NumKinds][NumPhases][]*Histogram // all of the above, by kind and phase
	staged     []staged                          // the stages of all shards

	mu    sync.Mutex        // one reader at a time
	last  Window            // of the last reading
	free  [NumPhases]uint64 // messages that were not blocked, at the last reading
	seen  Snapshot          // what Next has returned so far, except freed
	freed [NumPhases]uint64 // of free, what Next has returned
}

// NewRecorder returns a Recorder, with everything allocated that recording needs. A To below From
// counts as From.
func NewRecorder(cfg Config) *Recorder {
	cfg.SendShards, cfg.ReceiveShards = max(cfg.SendShards, 1), max(cfg.ReceiveShards, 1)
	cfg.To = max(cfg.To, cfg.From)
	if cfg.Horizon <= 0 {
		cfg.Horizon = cfg.To
	}
	cfg.checkStages()
	r := &Recorder{
		cfg:       cfg,
		senders:   make([]Sender, cfg.SendShards),
		receivers: make([]Receiver, cfg.ReceiveShards),
		repliers:  make([]Receiver, max(cfg.ReplyShards, 0)),
	}
	r.notSent.init(&cfg)
	for i := range r.senders {
		s := &r.senders[i]
		s.from, s.to, s.closed, s.bytes, s.notSent = cfg.From, cfg.To, cfg.Closed, cfg.Bytes, &r.notSent
		s.stages = newStages(&r.cfg)
		for p := range NumPhases {
			s.service[p], s.failed[p], s.hop[p] = NewHistogram(), NewHistogram(), NewHistogram()
			if !cfg.Closed {
				s.response[p], s.onTime[p] = NewHistogram(), NewHistogram()
				s.lateness[p], s.heldUp[p], s.blocked[p] = NewHistogram(), NewHistogram(), NewHistogram()
			}
		}
	}
	for _, shards := range [][]Receiver{r.receivers, r.repliers} {
		for i := range shards {
			s := &shards[i]
			s.from, s.to, s.closed, s.bytes = cfg.From, cfg.To, cfg.Closed, cfg.Bytes
			s.stages = newStages(&r.cfg)
			for p := range NumPhases {
				s.service[p], s.settle[p] = NewHistogram(), NewHistogram()
				if !cfg.Closed {
					s.response[p], s.onTime[p] = NewHistogram(), NewHistogram()
				}
			}
		}
	}
	for p := range NumPhases {
		r.hiccups[p] = NewHistogram()
	}
	r.sort()
	return r
}

// sort fills histograms, skipping what a shard does not have.
func (r *Recorder) sort() {
	hold := func(k Kind, of *[NumPhases]*Histogram) {
		for p, h := range of {
			if h != nil {
				r.histograms[k][p] = append(r.histograms[k][p], h)
			}
		}
	}
	keep := func(s *stages, response, onTime Kind) {
		if s == nil {
			return
		}
		r.staged = append(r.staged, staged{s, response, onTime})
		for i := range s.of { // the window is the sum of its stages
			r.histograms[response][Measure] = append(r.histograms[response][Measure], s.of[i].response)
			r.histograms[onTime][Measure] = append(r.histograms[onTime][Measure], s.of[i].onTime)
		}
	}
	response, onTime, service := SendResponse, SendOnTime, SendService
	if r.cfg.Replied {
		response, onTime, service = RTTResponse, RTTOnTime, RTTService
	}
	for i := range r.senders {
		s := &r.senders[i]
		keep(s.stages, response, onTime)
		hold(response, &s.response)
		hold(onTime, &s.onTime)
		hold(service, &s.service)
		hold(SendLateness, &s.lateness)
		hold(SendHeldUp, &s.heldUp)
		hold(SendBlocked, &s.blocked)
		hold(SendHop, &s.hop)
		hold(SendFailed, &s.failed)
	}
	receive := func(shards []Receiver, response, onTime, service Kind) {
		for i := range shards {
			s := &shards[i]
			keep(s.stages, response, onTime)
			hold(response, &s.response)
			hold(onTime, &s.onTime)
			hold(service, &s.service)
			hold(Settle, &s.settle)
		}
	}
	receive(r.receivers, E2EResponse, E2EOnTime, E2EService)
	receive(r.repliers, RTTResponse, RTTOnTime, RTTService)
	hold(Hiccups, &r.hiccups)
}

// Hiccup records that a thread that only sleeps woke late, ns after the instant due. One goroutine
// calls it.
func (r *Recorder) Hiccup(due, ns int64) { r.hiccups[r.Phase(due)].Record(ns) }

// Phase returns the phase of an instant: warm-up before the measured window, measured from its
// start on. Nothing is due after the window's end.
func (r *Recorder) Phase(instant int64) Phase { return phase(instant, r.cfg.From) }

func phase(instant, from int64) Phase {
	if instant < from {
		return WarmUp
	}
	return Measure
}

// Sender returns sender shard i modulo their number.
func (r *Recorder) Sender(i int) *Sender { return &r.senders[i%len(r.senders)] }

// Receiver returns receiver shard i modulo their number.
func (r *Recorder) Receiver(i int) *Receiver { return &r.receivers[i%len(r.receivers)] }

// Replier returns reply shard i modulo their number: a first delivery to it is the end of a round
// trip. There must be at least one.
func (r *Recorder) Replier(i int) *Receiver { return &r.repliers[i%len(r.repliers)] }

// A Sender records what senders do. Its methods may be called from any goroutine, take no lock and
// allocate nothing. What follows from the histograms is not counted again: a message costs one
// atomic add per distribution that it enters.
type Sender struct {
	from, to                          int64
	closed                            bool
	bytes                             int
	notSent                           *notSent
	stages                            *stages // nil: none
	response, onTime, service, failed [NumPhases]*Histogram
	lateness, heldUp, blocked, hop    [NumPhases]*Histogram

	// Written by goroutines that hand over.
	_         [64]byte
	scheduled [NumPhases]atomic.Uint64
	sent      [NumPhases]atomic.Uint64 // closed loop only; otherwise the count of lateness serves
	sentBytes atomic.Uint64            // in the window, if sizes differ
	sentEdge  edge

	// Written by goroutines that complete.
	_        [64]byte
	doneEdge edge
	slow     TopN
	_        [64]byte

	// Written on failures.
	dropped, unsent [NumPhases]atomic.Uint64
	_               [64]byte
}

// An edge turns a count by phase, which goes by the due instant, into a count of events with their
// own instant in the window. It counts only the rare events for which the two differ.
type edge struct {
	in  atomic.Uint64 // in the window but not of the measured phase
	out atomic.Uint64 // of the measured phase but not in the window
}

func (e *edge) note(instant, from, to int64, p Phase) {
	inside := instant >= from && instant < to
	switch {
	case inside && p != Measure:
		e.in.Add(1)
	case !inside && p == Measure:
		// Before the event itself is counted: see Recorder.Read.
		e.out.Add(1)
	}
}

// Scheduled counts a message that became due.
func (s *Sender) Scheduled(due int64) { s.scheduled[phase(due, s.from)].Add(1) }

// ScheduledN counts n messages of one phase that became due, for callers that keep their own count
// and report it now and then.
func (s *Sender) ScheduledN(p Phase, n uint64) { s.scheduled[p].Add(n) }

// Handed counts a message of that many bytes that was handed to the client library at start. Its
// pacer turned to it at ready; batchDue is the due instant of the last message of its batch, its
// own without batches. Lateness is ready - batchDue, blocked is start - ready. heldUp is the part
// of lateness, in ns, that existed when the pacer last woke from a wait with nothing else to do. In
// a closed loop only start and bytes count.
func (s *Sender) Handed(due, batchDue, ready, heldUp, start int64, bytes int) {
	if s.closed {
		p := phase(start, s.from)
		s.sentEdge.note(start, s.from, s.to, p)
		s.addBytes(start, bytes)
		s.sent[p].Add(1)
		return
	}
	p := phase(due, s.from)
	s.sentEdge.note(start, s.from, s.to, p)
	s.addBytes(start, bytes)
	if start != ready { // unblocked messages are counted as late less blocked: see Recorder.Read
		s.blocked[p].Record(start - ready)
	}
	if s.stages != nil {
		s.stages.handed(due, start)
	}
	s.heldUp[p].Record(heldUp)
	s.lateness[p].Record(ready - batchDue)
}

func (s *Sender) addBytes(start int64, bytes int) {
	if s.bytes == 0 && start >= s.from && start < s.to {
		s.sentBytes.Add(uint64(bytes))
	}
}

// Confirmed counts a message that the system confirmed at done. lateness, in ns, is that of its
// hand-over; it is ignored in a closed loop. If it reports true, the message may be one of the
// slowest: also pass it to Timed.
func (s *Sender) Confirmed(due, start, done, lateness int64) (slow bool) {
	if s.closed {
		p := phase(start, s.from)
		s.doneEdge.note(done, s.from, s.to, p)
		s.service[p].Record(done - start)
		return done-start > s.slow.least.Load()
	}
	p := phase(due, s.from)
	s.doneEdge.note(done, s.from, s.to, p)
	response, onTime := s.response[p], s.onTime[p]
	if s.stages != nil {
		if g := s.stages.at(done); g != nil {
			g.confirmed.Add(1)
		}
		if g := s.stages.at(due); g != nil {
			response, onTime = g.response, g.onTime
		}
	}
	response.Record(done - due)
	onTime.Record(done - due - lateness)
	s.service[p].Record(done - start)
	return done-due > s.slow.least.Load()
}

// Hop counts the overhead of a confirmed message's way through the driver's child process: its
// service time less took, which the child reports.
func (s *Sender) Hop(due, start, done, took int64) {
	if s.closed {
		due = start
	}
	s.hop[phase(due, s.from)].Record(max(0, done-start-took))
}

// Failed counts a message that failed at done.
func (s *Sender) Failed(due, start, done int64) {
	if s.closed {
		due = start
	}
	s.failed[phase(due, s.from)].Record(done - due)
}

// Dropped counts a message that was dropped because no slot was free.
func (s *Sender) Dropped(due int64) {
	p := phase(due, s.from)
	s.notSent.bin(due).Add(1)
	s.dropped[p].Add(1)
}

// Unsent counts a message that was due and left unsent at the run's end.
func (s *Sender) Unsent(due int64) {
	p := phase(due, s.from)
	s.notSent.bin(due).Add(1)
	s.unsent[p].Add(1)
}

// UnsentBetween counts the messages due in [from, to) that were left unsent at the run's end:
// before returns how many of those are due before an instant, and must not decrease. It returns
// their number per phase. before is called once for each bin of NotSent that they lie in.
func (s *Sender) UnsentBetween(from, to int64, before func(t int64) uint64) (sum [NumPhases]uint64) {
	for last := before(from); from < to; {
		p, next := phase(from, s.from), s.notSent.after(from, to)
		if n := before(next) - last; n > 0 {
			s.notSent.bin(from).Add(n)
			s.unsent[p].Add(n)
			sum[p] += n
			last += n
		}
		from = next
	}
	return sum
}

// A Receiver records what receivers see. Its methods take no lock and allocate nothing. Any
// goroutine may call them, except Delivered and Timed: those are for one goroutine at a time, which
// decides which delivery was the first.
type Receiver struct {
	from, to                          int64
	closed                            bool
	bytes                             int
	stages                            *stages // nil: none
	response, onTime, service, settle [NumPhases]*Histogram

	// Written by consumers.
	_             [64]byte
	received      [NumPhases]atomic.Uint64 // by their own instant
	after         atomic.Uint64            // at the window's end or later
	receivedBytes atomic.Uint64            // in the window, if sizes differ

	// Written by the caller of Timed.
	_    [64]byte
	slow slowRing
	_    [64]byte
}

// Received counts n deliveries of that many bytes in all, yielded by one client call at at: every
// delivery of this run, including duplicates and corrupted ones.
func (s *Receiver) Received(at int64, n, bytes int) {
	p := phase(at, s.from)
	if at >= s.to {
		s.after.Add(uint64(n)) // before they are counted themselves: see Recorder.Read
	} else if s.bytes == 0 && p == Measure {
		s.receivedBytes.Add(uint64(bytes))
	}
	if s.stages != nil {
		if g := s.stages.at(at); g != nil {
			g.received.Add(uint64(n))
		}
	}
	s.received[p].Add(uint64(n))
}

// Delivered counts a first delivery at at of an intact message. lateness, in ns, is that of the
// hand-over, from the header; it is ignored in a closed loop. If it reports true, the message may
// be one of the slowest: also pass it to Timed.
func (s *Receiver) Delivered(due, start, at, lateness int64) (slow bool) {
	if s.closed {
		s.service[phase(start, s.from)].Record(at - start)
		return at-start > s.slow.least
	}
	p := phase(due, s.from)
	response, onTime := s.response[p], s.onTime[p]
	if s.stages != nil {
		if g := s.stages.at(due); g != nil {
			response, onTime = g.response, g.onTime
		}
	}
	response.Record(at - due)
	onTime.Record(at - due - lateness)
	s.service[p].Record(at - start)
	return at-due > s.slow.least
}

// Settled counts a settlement that the system confirmed at settled, of a
// message of phase p received at at.
func (s *Receiver) Settled(at, settled int64, p Phase) { s.settle[p].Record(settled - at) }
