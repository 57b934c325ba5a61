package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
)

// Mode Request has two forms. If the driver supports requests, a reply confirms its message and the
// consumers are responders; the engine only checks the reply. Otherwise each consumer has an echo:
// a producer that publishes every request unchanged to the reply destination of the producer that
// sent it. The consumers of those destinations are a second subscription to the same messages.

// Subscriptions of a run in mode Request.
const (
	requests = 0
	replies  = 1 // only if the engine echoes
)

// Failures of a request that received the reply to another.
var (
	errCorruptedReply = errors.New("the reply arrived corrupted")
	errForeignReply   = errors.New("the reply belongs to no message of this run")
	errMisroutedReply = errors.New("the reply belongs to another message")
)

// openEnds opens the receiving side, replies before requests.
func (r *run) openEnds(ctx context.Context, subs int) error {
	if !r.echoing {
		return r.subscribe(ctx, 0, subs)
	}
	if err := r.subscribe(ctx, replies, replies+1); err != nil {
		return err
	}
	if err := r.openEchoes(ctx); err != nil {
		return err
	}
	return r.subscribe(ctx, requests, requests+1)
}

// openConsumer opens a consumer, or a responder.
func (r *run) openConsumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	if !r.native {
		return r.conn.Consumer(ctx, spec)
	}
	q, ok := r.conn.(driver.Requester)
	if !ok {
		return nil, fmt.Errorf("%w: it declares requests and has none", ErrContract)
	}
	return q.Responder(ctx, spec)
}

// openProducer opens a producer, or a requester.
func (r *run) openProducer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if !r.native {
		return r.conn.Producer(ctx, spec, done)
	}
	q, ok := r.conn.(driver.Requester)
	if !ok {
		return nil, fmt.Errorf("%w: it declares requests and has none", ErrContract)
	}
	return q.Requester(ctx, spec, done)
}

// verify returns why a reply does not confirm the request in sl.
func (s *sender) verify(sl *slot, reply []byte) error {
	var st stamp.Stamp
	status := stamp.Read(reply, s.run.cfg.Run, &st)
	switch {
	case status == stamp.Foreign, int(st.Stream) >= s.run.plan.Streams():
		return errForeignReply
	case st.Stream != sl.stream, st.Seq != sl.seq:
		return errMisroutedReply
	case status == stamp.Corrupted:
		return errCorruptedReply
	}
	return nil
}

// An echo answers the requests that one consumer receives. That consumer's goroutine publishes;
// completions may come on any.
type echo struct {
	run      *run
	index    int
	producer driver.Producer
	slots    []echoSlot
	free     *freeList
	wake     chan struct{}
	parked   atomic.Bool // the goroutine waits for a slot
	busy     atomic.Bool // a reply is being handed over, or waits for that
	shut     bool        // closed by closeEchoes

	abandoned atomic.Uint64
	twice     atomic.Uint64 // completions of a reply that was not out
}

// An echoSlot holds one reply from hand-over to completion.
type echoSlot struct {
	msg   driver.Message
	turn  uint64        // number of hand-overs; owned by the consumer
	done  atomic.Uint64 // number of completions: turn-1 while the driver has it
	bytes []byte        // room for the largest message
}

// newEcho returns the echo of consumer i. All echoes together have as many slots as fit in
// SlotBytes, each as many as a producer has by default: the scenario's in_flight does not limit
// replies in flight, which should not delay the consumers.
func newEcho(r *run, i int) *echo {
	largest := r.sizes[len(r.sizes)-1]
	n := max(1, min(MaxInFlight, SlotBytes/(r.cfg.Consumers*largest)))
	e := &echo{run: r, index: i, slots: make([]echoSlot, n), free: newFreeList(n), wake: make(chan struct{}, 1)}
	slab := make([]byte, n*largest) // only used pages become resident
	for j := range e.slots {
		e.slots[j].msg.Token = uint64(j)
		e.slots[j].bytes = slab[j*largest : j*largest : (j+1)*largest]
	}
	return e
}

// openEchoes opens an echo for each consumer of requests.
func (r *run) openEchoes(ctx context.Context) error {
	for _, i := range r.assigned.ownConsumers(r.cfg.Consumers) {
		e := newEcho(r, i)
		spec := driver.ProducerSpec{
			Index: r.cfg.Plan.Producers + i, Destinations: r.replyNames, InFlight: len(e.slots), Largest: r.sizes[len(r.sizes)-1],
		}
		p, err := bounded(ctx, func(ctx context.Context) (driver.Producer, error) { return r.conn.Producer(ctx, spec, e) }, closeLate[driver.Producer])
		if err != nil {
			return fmt.Errorf("opening the producer of replies %d: %w", i, err)
		}
		e.producer = p
		r.echoes = append(r.echoes, e)
	}
	return nil
}

// reply publishes a request's bytes to the producer that sent it. Without a free slot it waits, as
// a slow consumer would, until the run's end.
func (e *echo) reply(request []byte, stream uint32) {
	r := e.run
	e.busy.Store(true)
	defer e.busy.Store(false)
	sl := e.take()
	if sl == nil {
		return
	}
	sl.msg.Destination = r.replyNames[r.owners[stream]]
	sl.msg.Payload = append(sl.bytes, request...)
	sl.turn++
	e.producer.Publish(r.sending, &sl.msg)
}

// take returns a free slot, or nil if the run ends first.
func (e *echo) take() *echoSlot {
	for e.run.sending.Err() == nil {
		if i, ok := e.free.pop(); ok {
			return &e.slots[i]
		}
		e.parked.Store(true)
		// Look again: freeing a slot before parked was set woke no goroutine.
		if i, ok := e.free.pop(); ok {
			e.parked.Store(false)
			return &e.slots[i]
		}
		select {
		case <-e.wake:
		case <-e.run.sending.Done():
		}
		e.parked.Store(false)
	}
	return nil
}

// Complete implements driver.Completer. A reply that could not be sent is missing at its producer,
// where the message accounting shows it; here the reason is reported.
func (e *echo) Complete(m *driver.Message, err error) {
	r := e.run
	i := uint32(m.Token)
	sl := &e.slots[i]
	if !sl.done.CompareAndSwap(sl.turn-1, sl.turn) {
		e.twice.Add(1)
		return
	}
	if err != nil && !r.ended.Load() && r.sending.Err() == nil {
		if err := fmt.Errorf("sending a reply: %w", err); r.errs.add(err) {
			r.event("error", err.Error())
		}
	}
	if err != nil && errors.Is(err, driver.ErrAbandoned) {
		// The client may still read the old bytes, so they are never used again. The slot is
		// reused: an echo without slots would block its consumer for good.
		sl.bytes = make([]byte, 0, cap(sl.bytes))
		e.abandoned.Add(1)
	}
	e.free.push(i)
	if e.parked.Load() {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// replying reports whether a consumer of requests is about to send a reply, so that replies may
// still come.
func (r *run) replying() bool {
	return slices.ContainsFunc(r.echoes, func(e *echo) bool { return e.busy.Load() })
}

// closeEchoes closes the echoes once, when their consumers have stopped.
func (r *run) closeEchoes() {
	var open []func(context.Context) error
	for _, e := range r.echoes {
		if !e.shut {
			e.shut = true
			open = append(open, e.producer.Close)
		}
	}
	r.closeAll("closing a producer of replies", open)
}
