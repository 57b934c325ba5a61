package engine

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
)

// A sender drives one producer: its slots, its backlog, its sequences. One goroutine hands messages
// over (the pacer, or the sender's own behind it); completions may come on any.
type sender struct {
	run      *run
	index    int
	producer driver.Producer
	batcher  driver.BatchProducer // nil if batches have one message, or are published one by one
	shard    *measure.Sender
	targets  []target // by destination
	only     *target  // the target, if there is just one

	slots []slot
	free  *freeList
	queue backlog
	taken []*slot           // free slots gathered for the next batch
	batch []*driver.Message // scratch of a batch

	batches uint64 // handed over, or abandoned because a message was dropped
	inside  Inside // of work
	listed  bool   // in the pacer's list of senders with a backlog

	shut      bool         // closed by closeProducers
	refused   atomic.Int64 // consecutive failed completions, in a closed loop
	lastDone  atomic.Int64 // of the latest completion, if a counted closed loop needs it
	parked    atomic.Bool  // the goroutine sleeps until wake
	wake      chan struct{}
	closed    atomic.Bool // nothing more will be put in queue
	finished  atomic.Bool // everything in queue was handed over, and nothing more comes
	abandoned atomic.Uint64
	twice     atomic.Uint64                    // completions of a message that was not out
	corrupted atomic.Uint64                    // replies that arrived corrupted
	foreign   atomic.Uint64                    // replies to no message of the run
	misrouted [measure.NumPhases]atomic.Uint64 // replies to another request
}

// A target is one destination of a sender: a stream.
type target struct {
	name     string
	stream   uint32
	next     uint64 // next sequence number
	measured bool   // the ledger knows where the window begins
}

func newSender(r *run, index int, pool *chunkPool) *sender {
	s := &sender{
		run: r, index: index, shard: r.recorder.Sender(index),
		slots: make([]slot, r.cfg.InFlight), free: newFreeList(r.cfg.InFlight),
		batch: make([]*driver.Message, 0, r.cfg.Plan.BatchMax),
		wake:  make(chan struct{}, 1), queue: backlog{pool: pool},
		// Both are written for each message. Room for 8 pointers fills a cache line, room for 3 targets two:
		// lines that no other producer writes to.
		taken:   make([]*slot, 0, max(8, r.cfg.Plan.BatchMax)),
		targets: make([]target, len(r.names), max(3, len(r.names))),
	}
	for i := range s.slots {
		s.slots[i].msg.Token = uint64(i)
		r.bodies.fill(&s.slots[i], uint64(index)<<32|uint64(i))
	}
	own := r.plan.DestinationsOf(index)
	for _, d := range own {
		s.targets[d] = target{name: r.names[d], stream: r.plan.Stream(index, d)}
	}
	if len(own) == 1 {
		s.only = &s.targets[own[0]]
	}
	return s
}

// spec returns what the driver needs to know about the producer.
func (s *sender) spec() driver.ProducerSpec {
	spec := driver.ProducerSpec{Index: s.index, InFlight: s.run.cfg.InFlight, Largest: s.run.sizes[len(s.run.sizes)-1]}
	for _, d := range s.run.plan.DestinationsOf(s.index) {
		spec.Destinations = append(spec.Destinations, s.run.names[d])
	}
	return spec
}

// need returns the size of the next batch.
func (s *sender) need() int {
	if s.run.cfg.Plan.BatchMax == 1 {
		return 1
	}
	return s.run.plan.BatchSize(s.index, s.batches)
}

// gather tries to get n free slots into s.taken.
func (s *sender) gather(n int) bool {
	for len(s.taken) < n {
		i, ok := s.free.pop()
		if !ok {
			return false
		}
		s.taken = append(s.taken, &s.slots[i])
	}
	return true
}

// handQueued hands over the n oldest items of the queue as one batch, in the gathered slots. ready
// is the instant the generator turned to it, or -1: each item's own.
func (s *sender) handQueued(n int, ready, start int64) {
	last := s.queue.peek(n - 1)
	at := &instants{due: last.due, ready: last.ready, held: last.held, start: start}
	if ready >= 0 {
		at.ready = ready
		if last.due >= s.run.from {
			s.inside.WokenNS += int64(n) * (ready - last.ready)
		}
	}
	t := s.target()
	for i := range n {
		s.hand(s.taken[i], t, s.queue.take(), at)
	}
	s.dispatch()
	s.taken = s.taken[:0]
}

// Instants are those of a batch at its hand-over, and the part of its lateness that the generator
// cannot have caused.
type instants struct {
	due   int64 // of its last message
	ready int64
	held  int64 // ns
	start int64
}

// dispatch ends a batch: all of its messages were given to hand.
func (s *sender) dispatch() {
	s.batches++
	if s.batcher != nil {
		s.publishBatch()
	}
}

func (s *sender) publishBatch() {
	s.batcher.PublishBatch(s.run.sending, s.batch)
	s.batch = s.batch[:0]
}

func (s *sender) target() *target {
	if s.only != nil {
		return s.only
	}
	return &s.targets[s.run.plan.Destination(s.index, s.batches)]
}

// hand writes the message's header, accounts for it, and hands it over; if the driver takes whole
// batches, dispatch does that.
func (s *sender) hand(sl *slot, t *target, it item, at *instants) {
	r := s.run
	size, class := r.sizes[0], 0
	if len(r.sizes) > 1 {
		size = r.plan.Size(it.index)
		for r.sizes[class] != size {
			class++
		}
	}
	seq := t.next
	t.next++
	if !t.measured && it.due >= r.from {
		t.measured = true
		r.ledger.MeasureFrom(t.stream, seq)
	}
	sl.due, sl.start, sl.late, sl.seq, sl.stream = it.due, at.start, at.ready-at.due, seq, t.stream
	var crc uint32
	if sl.crcs != nil {
		crc = sl.crcs[class]
	} else {
		crc = r.bodies.choose(sl, it.index, class)
	}
	// Field by field: a literal is built elsewhere and copied in wider words than it was written in, for
	// which the processor waits.
	var st stamp.Stamp
	st.Run, st.Stream, st.CRC, st.Seq, st.Due, st.Start = r.cfg.Run, t.stream, crc, seq, it.due, at.start
	st.Share = stamp.Share(sl.late, at.start-it.due)
	stamp.Put(sl.bytes, &st)
	sl.msg.Destination = t.name
	sl.msg.Payload = sl.bytes[:size]
	if r.keyed {
		if k, ok := r.plan.Key(it.index); ok {
			end := len(sl.bytes)
			sl.msg.Key = strconv.AppendUint(sl.bytes[end-keyRoom:end-keyRoom:end], k, 10)
		}
	}
	r.ledger.Sent(t.stream, seq, it.due, at.start)
	sl.wired = r.wire != nil && r.wire.Handed(at.start)
	s.shard.Handed(it.due, at.due, at.ready, at.held, at.start, size)
	if r.cfg.Received {
		sl.await()
	}
	sl.turn++ // from here on it counts as sent
	if s.batcher == nil {
		s.producer.Publish(r.sending, &sl.msg)
		return
	}
	s.batch = append(s.batch, &sl.msg)
}

// Complete implements driver.Completer.
func (s *sender) Complete(m *driver.Message, err error) {
	now := s.run.now()
	i := uint32(m.Token)
	sl := &s.slots[i]
	if !sl.done.CompareAndSwap(sl.turn-1, sl.turn) {
		s.twice.Add(1)
		return
	}
	if s.run.native && err == nil {
		err = s.verify(sl, m.Reply)
		m.Reply = nil // the driver may reuse it
	}
	if sl.wired {
		s.run.sampled(sl, now, err)
	}
	switch {
	case s.run.ended.Load(), err != nil && s.run.sending.Err() != nil:
		// Past the end of the run: it stays unconfirmed.
	case err == nil:
		if s.run.cfg.Messages > 0 {
			s.lastDone.Store(now)
		}
		if s.shard.Confirmed(sl.due, sl.start, now, sl.late) {
			s.shard.Timed(sl.due, sl.start, now, sl.stream, sl.seq)
		}
		if m.Took > 0 {
			s.shard.Hop(sl.due, sl.start, now, int64(m.Took))
		}
		s.run.ledger.Confirmed(sl.stream, sl.seq)
		if s.refused.Load() > 0 {
			s.refused.Store(0)
		}
	default:
		switch {
		case errors.Is(err, errCorruptedReply):
			s.corrupted.Add(1)
		case errors.Is(err, errForeignReply):
			s.foreign.Add(1)
		case errors.Is(err, errMisroutedReply):
			s.misrouted[s.run.recorder.Phase(sl.due)].Add(1)
		}
		s.shard.Failed(sl.due, sl.start, now)
		s.run.ledger.Failed(sl.stream, sl.seq)
		if s.run.closed() {
			s.refused.Add(1)
		}
		s.run.stall.fail(err)
		if s.run.errs.fail(err) {
			s.run.event("error", err.Error())
		}
	}
	if err != nil && errors.Is(err, driver.ErrAbandoned) {
		// The client may still read the old bytes, so they are never used again.
		s.run.bodies.fill(sl, uint64(s.index)<<32|uint64(i))
		s.abandoned.Add(1)
	}
	if s.run.cfg.Received && !sl.confirmed(err == nil) {
		return // until it is received
	}
	s.free.push(i)
	s.rouse()
}

// rouse wakes the sender's goroutine if it sleeps.
func (s *sender) rouse() {
	if s.parked.Load() && s.parked.Swap(false) {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// park sleeps until roused or ctx ends. It returns at once if ready reports that there is no reason
// to sleep; ready is called after the flag is set, so that no wake-up is missed.
func (s *sender) park(ctx context.Context, ready func(*sender) bool) {
	s.parked.Store(true)
	if ready(s) {
		s.parked.Store(false)
		return
	}
	select {
	case <-s.wake:
	case <-ctx.Done():
	}
	s.parked.Store(false)
}

// full reports whether a message would exceed the in-flight limit. Only the pacer asks, for
// policies other than Wait.
func (s *sender) full() bool { return s.queue.len() >= s.free.len() }

// work is the goroutine of a producer whose Publish can block.
func (s *sender) work(ctx context.Context) {
	defer s.finished.Store(true)
	for last := int64(-1); ctx.Err() == nil; {
		n, slept, full := s.need(), false, int64(0)
		for s.queue.len() < n && !s.closed.Load() {
			s.park(ctx, func(s *sender) bool { return s.queue.len() >= n || s.closed.Load() })
			if ctx.Err() != nil {
				return
			}
			slept = true
		}
		if have := s.queue.len(); have < n {
			if have == 0 {
				return
			}
			n = have // the plan's last batch of this producer is shorter
		}
		for !s.gather(n) {
			before := s.run.now()
			s.park(ctx, func(s *sender) bool { return s.gather(n) })
			if ctx.Err() != nil {
				return
			}
			slept, full = false, full+s.run.now()-before
		}
		// A goroutine that had nothing else to do was late because it woke late: that is the
		// generator's lateness, not blocking by the system.
		if watched := !slept && s.queue.len() > n && s.watch(); !watched {
			now, ready := s.run.now(), int64(-1)
			if slept {
				ready = now
			} else {
				s.inside.waited(last, now, full)
			}
			last = now
			s.handQueued(n, ready, now)
			continue
		}
		last = s.handWatched(n, last, full)
	}
}

// closedLoop hands over as fast as completions free slots.
func (s *sender) closedLoop(ctx context.Context) {
	defer s.finished.Store(true)
	r := s.run
	step, batches := uint64(r.cfg.Plan.Producers), r.cfg.Plan.BatchMax > 1
	for index := uint64(s.index); !r.stop.Load(); {
		n, slots := 1, 1
		if batches {
			n = s.need()
			slots = n
			if r.cfg.InFlight == r.cfg.Plan.BatchMax {
				slots = r.cfg.InFlight // all that was in flight has completed
			}
		}
		if !s.gather(slots) && !s.await(ctx, slots) {
			return
		}
		if s.refused.Load() > 0 {
			s.relent(ctx)
		}
		start := r.clock.Load().NowUnordered()
		if start >= r.to {
			return
		}
		if limit := r.cfg.Messages; limit > 0 && start >= r.from {
			if n = r.claim(n); n == 0 {
				return
			}
		}
		t, at := s.target(), &instants{due: start, ready: start, start: start}
		for i := range n {
			s.hand(s.taken[i], t, item{index: index, due: start}, at)
			index += step
		}
		s.dispatch()
		if n == len(s.taken) {
			s.taken = s.taken[:0]
			continue
		}
		s.taken = append(s.taken[:0], s.taken[n:]...) // gathered beyond the batch
	}
}

// A closed loop slows down when its messages fail one after the other. Otherwise it would only
// produce failures, as fast as it can, while the system is away.
const (
	relentAfter = 100                    // consecutive failures
	relentMost  = 100 * time.Millisecond // between two messages
)

// relent waits a millisecond after relentAfter consecutive failures, and twice as long after each
// further one, up to relentMost; less if the run ends.
func (s *sender) relent(ctx context.Context) {
	over := s.refused.Load() - relentAfter
	if over < 0 {
		return
	}
	t := time.NewTimer(min(relentMost, time.Millisecond<<min(over, 10)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.run.stopCh:
	case <-ctx.Done():
	}
}

// await sleeps until n slots are gathered; false if the run ends first.
func (s *sender) await(ctx context.Context, n int) bool {
	for {
		got := false
		s.park(ctx, func(s *sender) bool {
			got = s.gather(n)
			return got || s.run.stop.Load()
		})
		if ctx.Err() != nil || s.run.stop.Load() {
			return false
		}
		if got || s.gather(n) {
			return true
		}
	}
}
