package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirmq/weir/driver"
)

// memConsumer takes up to memFetch messages at a time.
type memConsumer struct {
	scrap  []byte // its last useless allocation
	c      *memConn
	m      *memory
	spec   driver.ConsumerSpec
	cuts   int
	number int // of the connection's consumers
	source int // which destination the last batch is of
	out    int // messages taken and not settled; under m.mu

	answers bool // a responder
}

const memFetch = 8

// delivering is the buffer that a sink is looking at, and how many messages were published
// meanwhile, for the fault that reuses it too early.
type delivering struct {
	buf       []byte
	published int
}

// name is the subscription's name in the system.
func (r *memConsumer) name() string {
	switch r.m.fault {
	case "lets every responder answer":
		if r.answers {
			return fmt.Sprintf("%s#%d", r.spec.Subscription, r.spec.Index)
		}
	case "gives every consumer everything":
		if r.answers {
			break
		}
		return fmt.Sprintf("%s#%d", r.spec.Subscription, r.spec.Index)
	case "has one subscription":
		return "the only one"
	}
	return r.spec.Subscription
}

// subscribe registers the subscription; m.mu must be held.
func (r *memConsumer) subscribe() {
	for _, d := range r.spec.Destinations {
		again := r.m.fault == "begins again wherever the next consumer should" && r.spec.From.At != driver.AtDefault
		if t := r.m.topics[r.c.name(d)]; t != nil && (t.subs[r.name()] == nil || again) {
			t.subs[r.name()] = &memSub{queue: r.begins(t.log)}
		}
	}
}

// begins returns the part of a log from the consumer's position on.
func (r *memConsumer) begins(log []memStored) []*memStored {
	from := r.spec.From
	if from.At != driver.AtDefault && r.m.fault == "begins at the start, wherever it should" {
		from.At = driver.AtEarliest
	}
	first := len(log)
	switch from.At {
	case driver.AtEarliest:
		first = 0
	case driver.AtOffset:
		first, _ = strconv.Atoi(from.Offset)
		if r.m.fault == "takes the offset for that of the last it had" {
			first++
		}
	case driver.AtTime:
		first = slices.IndexFunc(log, func(s memStored) bool { return !s.at.Before(from.Time) })
	}
	var queue []*memStored
	for _, s := range log[first:] {
		queue = append(queue, &s)
	}
	return queue
}

// late reports whether it subscribes only after reporting that it is ready.
func (r *memConsumer) late() bool { return r.m.fault == "is ready too early" && r.number > 3 }

func (r *memConsumer) Run(ctx context.Context, sink driver.Sink) error {
	if r.late() {
		sink.Ready()
		time.Sleep(50 * time.Millisecond)
	}
	r.m.mu.Lock()
	r.subscribe()
	r.m.mu.Unlock()
	if !r.late() {
		sink.Ready()
	}
	if r.m.fault == "is ready twice" {
		sink.Ready()
	}
	var lazy []*memStored // accepted, not yet acknowledged: the fault that forgets to
	for {
		batch, cut, err := r.take(ctx)
		if cut && r.m.fault != "reconnects in silence" {
			sink.Fault(driver.ErrDisconnected)
			run := r.c.run.For(&r.spec)
			if r.m.fault == "does not say whose connection is back" {
				run = r.c.run
			}
			run.Tell(driver.Reconnect, "consumer")
		}
		switch {
		case ctx.Err() != nil:
			r.back(batch, false)
			r.back(lazy, false)
			if r.m.fault == "returns the context's error from Run" {
				return ctx.Err()
			}
			return nil
		case err != nil:
			return err
		case len(batch) == 0:
			continue
		}
		ds, buf := r.m.yield(batch, r.source)
		if r.m.fault == "allocates in small pieces" {
			for range 64 {
				r.scrap = make([]byte, 4<<10)
			}
		}
		if r.m.fault == "copies before it delivers" {
			for i := range ds {
				ds[i].Payload = bytes.Clone(ds[i].Payload)
			}
		}
		r.m.look(buf)
		refused := sink.Deliver(ds)
		r.m.look(nil)
		for i := range buf {
			buf[i] = poison // the bytes are the driver's again
		}
		r.answer(batch, refused)
		if r.spec.Settle == driver.SettleAuto {
			continue
		}
		if refused != nil {
			if r.m.fault != "takes a nack for an ack" {
				r.back(batch, true)
			}
			continue
		}
		if r.m.fault == "forgets the last acknowledgements" {
			lazy = batch
		}
		r.settled(sink, ds)
	}
}

// settled calls Settled, if that is declared.
func (r *memConsumer) settled(sink driver.Sink, ds []driver.Delivery) {
	if !r.m.caps.SettleConfirmed && r.m.fault != "settles undeclared" {
		return
	}
	switch r.m.fault {
	case "never reports settlement":
		return
	case "reports settlement twice":
		sink.Settled(ds, nil)
	case "loses the token":
		for i := range ds {
			ds[i].Token = 0
		}
	case "fails to settle":
		sink.Settled(ds, errors.New("refused"))
		return
	}
	sink.Settled(ds, nil)
}

// look records what a sink is looking at.
func (m *memory) look(buf []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looking = delivering{buf: buf}
}

// overwrite reuses receive buffers at a publication, for the fault that does so too early.
func (m *memory) overwrite() {
	if m.fault != "reuses the buffer too early" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looking.published++
	if m.looking.published > inFlight+inFlight/2 && len(m.looking.buf) > 0 {
		m.looking.buf[0] = poison
	}
}

// longest returns the largest number of messages that any subscription holds; m.mu must be held.
func (m *memory) longest() int {
	n := 0
	for _, t := range m.topics {
		for _, s := range t.subs {
			n = max(n, len(s.queue))
		}
	}
	return n
}

// take waits for messages. It returns none if the connections were cut.
func (r *memConsumer) take(ctx context.Context) (batch []*memStored, cut bool, err error) {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	r.out = 0 // earlier messages have been settled, or given back
	var sub *memSub
	if ctx.Err() != nil {
		return nil, false, nil
	}
	gone := false
	err = m.wait(ctx, func() bool {
		gone = true
		for i, d := range r.spec.Destinations {
			t := m.topics[r.c.name(d)]
			if t == nil || t.subs[r.name()] == nil {
				continue
			}
			gone = false
			if len(t.subs[r.name()].queue) > 0 {
				sub, r.source = t.subs[r.name()], i
				return true
			}
		}
		return gone || m.cuts > r.cuts
	})
	if m.cuts > r.cuts {
		r.cuts = m.cuts
		return nil, true, nil
	}
	if err != nil || sub == nil {
		if gone {
			err = errors.New("subscription deleted")
		}
		return nil, false, err
	}
	n := min(len(sub.queue), memFetch)
	if m.fault == "gathers what several calls yield" {
		n = min(len(sub.queue), 2*memFetch)
	}
	if r.spec.Prefetch > 0 {
		n = min(n, r.spec.Prefetch)
	}
	batch = sub.queue[:n:n]
	r.out = n
	sub.queue = sub.queue[n:]
	m.change()
	return batch, false, nil
}

// back returns messages to the front of the subscription.
func (r *memConsumer) back(batch []*memStored, again bool) {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topics[r.c.name(r.spec.Destinations[r.source])]
	if t == nil || t.subs[r.name()] == nil || len(batch) == 0 {
		return
	}
	var kept []*memStored
	for _, s := range batch {
		s.again = again
		if again {
			s.refused++
		}
		if dead := m.topics[t.dead]; again && t.refusals > 0 && s.refused >= t.refusals && m.fault != "delivers again for ever" {
			if dead != nil && m.fault != "drops dead letters" {
				for _, sub := range dead.subs {
					sub.queue = append(sub.queue, &memStored{key: s.key, payload: s.payload, partition: s.partition})
				}
			}
			continue
		}
		kept = append(kept, s)
	}
	sub := t.subs[r.name()]
	sub.queue = append(kept, sub.queue...)
	m.change()
}

// yield returns the deliveries of batch in one receive buffer, as a client library would.
func (m *memory) yield(batch []*memStored, source int) ([]driver.Delivery, []byte) {
	n := 0
	for _, s := range batch {
		n += len(s.payload)
	}
	buf := make([]byte, 0, n)
	ds := make([]driver.Delivery, len(batch))
	for i, s := range batch {
		start := len(buf)
		buf = append(buf, s.payload...)
		ds[i] = driver.Delivery{Key: bytes.Clone(s.key), Payload: buf[start:len(buf):len(buf)], Partition: s.partition, Source: int32(source), Redelivered: s.again}
		if m.fault == "takes every destination for its first" {
			ds[i].Source = 0
		}
		if !m.caps.Partitions && m.fault != "invents a partition" {
			ds[i].Partition = -1
		}
	}
	return ds, buf
}

func (r *memConsumer) Close(context.Context) error {
	if r.m.fault != "forgets a subscription that nobody consumes" {
		return nil
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if t := r.m.topics[r.c.name(r.spec.Destinations[0])]; t != nil {
		delete(t.subs, r.name())
	}
	return nil
}
