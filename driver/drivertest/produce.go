package drivertest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
)

// The sentences of the contract that several checks begin with.
const (
	ruleOnce  = "Complete is called exactly once for each message published"
	ruleBound = "Publish does not block after ctx ends, Flush returns with ctx's error, Run delivers until ctx ends and then returns nil"
)

// produceChecks test the producing side. They apply to every driver; if it has a consumer side they
// check what arrives too.
func produceChecks() []check {
	return []check{
		{name: "RoundTripBytes", rule: "The driver sends the bytes of the payload unchanged", run: roundTripBytes},
		{
			name:  "TooLarge",
			rule:  "ErrTooLarge: the system does not take a message of this size",
			lacks: func(d driver.Definition) string { return lackIf(d.Capabilities.MaxPayload == 0, "MaxPayload") },
			run:   tooLarge,
		},
		{name: "ExactlyOneCompletion", rule: ruleOnce, run: exactlyOneCompletion},
		{name: "NoTouchAfterComplete", rule: "Once Complete was called with a message the driver does not touch it", run: noTouchAfterComplete},
		{
			name: "PublishDoesNotBlock",
			rule: "Publish returns without waiting for the network, a lock held over it, or a full buffer, unless PublishBlocks is declared",
			lacks: func(d driver.Definition) string {
				return lackIf(d.Capabilities.PublishBlocks, "that Publish does not block")
			},
			run: publishDoesNotBlock,
		},
		{
			name: "StalledDestination",
			rule: "A destination that stands still delays no message of another",
			lacks: func(d driver.Definition) string {
				return lackIf(d.Capabilities.PublishBlocks, "that Publish does not block")
			},
			without: func(h *Harness) string { return lackIf(h.Hold == nil, "Hold") },
			run:     stalledDestination,
		},
		{name: "FlushMeansAll", rule: "Flush returns when every message published before it has completed", run: flushMeansAll},
		{name: "CloseCompletesAll", rule: "Close completes what is outstanding, with ErrClosed if it must, before it returns, and is idempotent", run: closeCompletesAll},
		{name: "CancelUnblocks", rule: ruleBound, run: cancelUnblocks},
		{
			name:  "BatchEqualsSingles",
			rule:  "PublishBatch is Publish for all of ms, in order; ms is the caller's again on return",
			lacks: func(d driver.Definition) string { return lackIf(!d.Capabilities.Batch, "Batch") },
			run:   batchEqualsSingles,
		},
	}
}

// roundTripSizes are the payload sizes tried, in bytes; MaxPayload up to
// roundTripLargest joins them.
var roundTripSizes = []int{1, 32, 1 << 10, 64 << 10}

const roundTripLargest = 1 << 20

func roundTripBytes(e *env) {
	s := e.open()
	s.declare("d")
	var r *receiver
	if e.caps.Consume {
		r = s.receive(e.spec("s", "d"), nil)
	}
	x := s.sender("d")
	largest := roundTripLargest
	if e.caps.MaxPayload > 0 {
		largest = min(largest, e.caps.MaxPayload)
	}
	var want []string
	var kept []*driver.Message
	for _, size := range append(slices.Clone(roundTripSizes), largest) {
		if size > largest {
			continue
		}
		// As many messages as needed for every byte value to occur.
		for first := 0; first < 256; first += size {
			p := make([]byte, size)
			for i := range p {
				p[i] = byte(first + i)
			}
			want = append(want, string(p))
			kept = append(kept, &driver.Message{Destination: "d", Payload: p})
		}
	}
	sent := 0
	for chunk := range slices.Chunk(kept, inFlight/2) {
		x.send(chunk...)
		sent += len(chunk)
		if r != nil && !eventually(func() bool { return len(r.texts()) >= sent }) {
			break
		}
	}
	for i, m := range kept[:sent] {
		if string(m.Payload) != want[i] {
			e.errorf("the driver changed the caller's %d bytes", len(want[i]))
		}
	}
	if r != nil {
		e.expect("the subscription", want[:sent], r)
	}
}

func tooLarge(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	big := &driver.Message{Destination: "d", Payload: bytes.Repeat([]byte("x"), e.caps.MaxPayload+1)}
	x.publish(big)
	x.await(big)
	if f := x.fate(big); !errors.Is(f.err, driver.ErrTooLarge) {
		e.errorf("a message of MaxPayload+1 = %d bytes completed with: %v", len(big.Payload), f.err)
	}
	x.send(messages("d", "after", 1, 32)...)
}

func exactlyOneCompletion(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	const rounds = 2
	ms := messages("d", "once", 500, 64)
	for round := range rounds {
		x.publish(ms...) // the same messages again: they are pooled
		if !eventually(func() bool { return x.completed(ms, round+1) == len(ms) }) {
			e.fatalf("%d of %d messages were completed for the %d. time", x.completed(ms, round+1), len(ms), round+1)
		}
	}
	late := messages("d", "late", inFlight/2, 64)
	x.publish(late...)
	e.must("flush", x.p.Flush)
	e.must("close", x.p.Close)
	e.quiet()
	for _, m := range ms {
		if f := x.fate(m); f.completions != rounds {
			e.fatalf("a message published %d times was completed %d times (last error: %v)", rounds, f.completions, f.err)
		}
	}
	for _, m := range late {
		if f := x.fate(m); f.completions != 1 {
			e.fatalf("a message published just before Flush was completed %d times (last error: %v)", f.completions, f.err)
		}
	}
}

// poison overwrites bytes that the driver must not use.
const poison = 0xDB

// A plug blocks a consumer: its sink waits in Deliver, with the first message, until the plug is
// pulled. What arrives later waits behind it.
type plug struct {
	taken  chan struct{} // closed when Deliver was entered
	pulled chan struct{}
	held   atomic.Bool
}

func (p *plug) deliver([]driver.Delivery) error {
	if p.held.CompareAndSwap(false, true) {
		close(p.taken)
		<-p.pulled
	}
	return nil
}

// pull releases the consumer. It must be called on the check's goroutine.
func (p *plug) pull() {
	select {
	case <-p.pulled:
	default:
		close(p.pulled)
	}
}

// stopUp opens a subscription of destination and blocks it with a message of x, so that what is
// published next stays inside the driver and the system. Deliver then blocks until the plug is
// pulled.
func (s *session) stopUp(x *sender, destination string, prefetch int) (*plug, *receiver) {
	p := &plug{taken: make(chan struct{}), pulled: make(chan struct{})}
	spec := s.spec("s", destination)
	spec.Prefetch = prefetch
	r := s.receive(spec, p.deliver)
	s.cleanup(p.pull) // runs before the cleanup of the receiver, which waits for Deliver
	x.send(messages(destination, "plug", 1, 64)...)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.taken:
	case <-timer.C:
		s.fatalf("the first message was not delivered within %v", patience)
	}
	return p, r
}

func noTouchAfterComplete(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	var p *plug
	var r *receiver
	if e.caps.Consume {
		p, r = s.stopUp(x, "d", 0)
	}
	ms := messages("d", "clean", inFlight/2, 200)
	want := payloads(ms)
	x.mu.Lock()
	x.complete = func(m *driver.Message, err error) {
		if errors.Is(err, driver.ErrAbandoned) {
			return
		}
		for i := range m.Payload {
			m.Payload[i] = poison
		}
		m.Destination = "poisoned"
	}
	x.mu.Unlock()
	x.publish(ms...)
	x.await(ms...)
	if r != nil {
		p.pull()
		e.expect("the subscription, when the payloads were overwritten in Complete", append(want, textOf("d", "plug")), r)
	} else {
		e.must("flush", x.p.Flush)
		e.quiet()
	}
	for _, m := range ms {
		if f := x.fate(m); f.err == nil && !bytes.Equal(m.Payload, bytes.Repeat([]byte{poison}, len(m.Payload))) {
			e.fatalf("the driver wrote to a payload after Complete: %s", sample([]string{string(m.Payload)}))
		}
	}
}

// textOf returns the payload of stopUp's message.
func textOf(destination, label string) string {
	return payloads(messages(destination, label, 1, 64))[0]
}

func publishDoesNotBlock(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	if e.caps.Consume {
		s.stopUp(x, "d", 1)
	}
	if e.s.h.Stall != nil {
		resume, err := e.s.h.Stall()
		if err != nil {
			e.fatalf("the harness cannot stall the system: %v", err)
		}
		e.cleanup(resume)
	}
	// Everything that may be in flight and, if the system confirms without its consumer moving,
	// several times that: more than any buffer of the limit's size.
	size := 4 << 10
	if e.caps.MaxPayload > 0 {
		size = min(size, e.caps.MaxPayload)
	}
	ms := messages("d", "more", 4*inFlight, size)
	var calls, returns atomic.Int64
	within(patience, func() {
		for _, m := range ms {
			ctx, cancel := context.WithTimeout(e.ctx, time.Second)
			ok := x.reserve(ctx)
			cancel()
			if !ok {
				return // the system confirms no more: all that is allowed is in flight
			}
			calls.Add(1)
			x.p.Publish(e.ctx, m)
			returns.Add(1)
		}
	})
	if c, r := calls.Load(), returns.Load(); c != r {
		e.errorf("call %d, with at most %d messages in flight and a consumer that does not move, has not returned after %v", c, inFlight, patience)
	}
}

// stalledDestination holds one destination, and alternates between it and another.
func stalledDestination(e *env) {
	s := e.open()
	s.declare("held", "free")
	x := s.sender("held", "free")
	x.send(messages("held", "before", 1, 64)...)
	x.send(messages("free", "before", 1, 64)...)
	release, err := e.s.h.Hold(s.run, "held")
	if err != nil {
		e.fatalf("the harness cannot hold a destination: %v", err)
	}
	release = sync.OnceFunc(release)
	e.cleanup(release)
	held, free := messages("held", "while", inFlight/2, 64), messages("free", "while", inFlight/2, 64)
	for i := range held {
		x.publish(held[i], free[i])
	}
	if !eventually(func() bool { return x.completed(free, 1) == len(free) }) {
		e.errorf("%d of %d messages of one destination are confirmed while another stands still", x.completed(free, 1), len(free))
	}
	if n := x.completed(held, 1); n > 0 {
		e.errorf("%d messages of the destination that the harness holds are confirmed", n)
	}
	release()
	x.await(held...)
}

func flushMeansAll(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	e.must("flush of nothing", x.p.Flush)
	for range 5 {
		ms := messages("d", "flush", inFlight/2, 64)
		x.publish(ms...)
		e.must("flush", x.p.Flush)
		if n := x.completed(ms, 1); n != len(ms) {
			e.fatalf("Flush returned with %d of %d messages completed", n, len(ms))
		}
	}
}

func closeCompletesAll(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	ms := messages("d", "close", inFlight, 64)
	x.publish(ms...)
	e.must("close", x.p.Close)
	if n := x.completed(ms, 1); n != len(ms) {
		e.fatalf("Close returned with %d of %d messages completed", n, len(ms))
	}
	for _, m := range ms {
		if f := x.fate(m); f.err != nil && !errors.Is(f.err, driver.ErrClosed) {
			e.errorf("a message outstanding at Close completed with an error that is not ErrClosed: %v", f.err)
			break
		}
	}
	e.must("close again", x.p.Close)
}

// fillMost is the maximum number of messages that CancelUnblocks publishes to find out whether a
// Publish that may block does.
const fillMost = 20_000

func cancelUnblocks(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	if e.caps.Consume {
		r := s.receive(e.spec("s", "d"), nil)
		if !r.end() {
			e.fatalf("Run, with nothing to deliver, has not returned %v after its context ended", patience)
		}
		if err := r.runErr(); err != nil {
			e.errorf("Run returned an error when its context ended: %v", err)
		}
		e.must("close the consumer", r.c.Close)
		s.stopUp(x, "d", 1)
	}
	if e.s.h.Stall != nil {
		resume, err := e.s.h.Stall()
		if err != nil {
			e.fatalf("the harness cannot stall the system: %v", err)
		}
		e.cleanup(resume)
	}
	n := 2 * inFlight
	if e.caps.PublishBlocks {
		n = fillMost
	}
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	ms := messages("d", "fill", n, 64)
	var calls, returns atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, m := range ms {
			if !x.reserve(ctx) {
				return
			}
			calls.Add(1)
			x.p.Publish(ctx, m)
			returns.Add(1)
		}
	}()
	// Until it seems to block, or all is published.
	for last := int64(-1); ; {
		e.quiet()
		now := returns.Load()
		if now == last || now == int64(n) {
			break
		}
		last = now
	}
	blocked := calls.Load() != returns.Load()
	cancel()
	if !eventually(func() bool { return latch.Closed(ended) }) {
		e.fatalf("call %d of Publish has not returned %v after its context ended", calls.Load(), patience)
	}
	published := ms[:calls.Load()]
	if blocked {
		// The message that was stuck has failed with the context; those before it may still be
		// under way.
		last := published[len(published)-1]
		x.await(last)
		if f := x.fate(last); f.err != nil && !errors.Is(f.err, context.Canceled) {
			e.errorf("the message that was blocked in Publish when ctx ended completed with: %v", f.err)
		}
	}
	over, end := context.WithCancel(e.ctx)
	end()
	if !within(patience, func() { _ = x.p.Flush(over) }) {
		e.errorf("Flush with a context that has ended has not returned after %v", patience)
	}
	one := messages("d", "over", 1, 64)
	if !within(patience, func() { x.p.Publish(over, one[0]) }) {
		e.errorf("Publish with a context that has ended has not returned after %v", patience)
	}
}

func batchEqualsSingles(e *env) {
	s := e.open()
	s.declare("d")
	var r *receiver
	if e.caps.Consume {
		r = s.receive(e.spec("s", "d"), nil)
	}
	x := s.sender("d")
	b, ok := x.p.(driver.BatchProducer)
	if !ok {
		e.fatalf("Batch is declared, and a %T has no PublishBatch", x.p)
	}
	singles := messages("d", "single", 10, 64)
	x.send(singles...)
	want := payloads(singles)
	for i, size := range []int{1, 2, 7, inFlight / 2} {
		ms := messages("d", "batch-"+string(rune('a'+i)), size, 100*i)
		want = append(want, payloads(ms)...)
		call := slices.Clone(ms)
		for range ms {
			if !x.reserve(e.ctx) {
				e.fatalf("batches do not complete")
			}
		}
		if !within(patience, func() { b.PublishBatch(e.ctx, call) }) {
			e.fatalf("PublishBatch of %d messages has not returned after %v", size, patience)
		}
		clear(call)
		x.await(ms...)
		for _, m := range ms {
			if f := x.fate(m); f.err != nil || f.completions != 1 {
				e.fatalf("a message of a batch of %d was completed %d times, with: %v", size, f.completions, f.err)
			}
		}
	}
	if r == nil {
		return
	}
	if e.expect("the subscription", want, r) && e.caps.Ordering == driver.PerDestination {
		if got := r.texts(); !slices.Equal(got, want) {
			e.errorf("the messages of the batches came in another order than they were published in")
		}
	}
}
