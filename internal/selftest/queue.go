package selftest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
)

// A fault is the fault planted on a message.
type fault uint8

const (
	sound            fault = iota
	lose                   // confirmed, delivered to no subscription
	loseFirst              // confirmed, not delivered to the first subscription
	twice                  // delivered twice in a row, not flagged
	later                  // delivered again to the subscription's next consumer, flagged
	swap                   // delivered after the message behind it
	corrupt                // delivered with one bit of the body flipped
	corruptThenSound       // delivered corrupted, then as sent
	soundThenCorrupt       // the reverse
	foreign                // followed by two messages that are not of this run
	fail                   // rejected, not delivered
	failDeliver            // rejected and delivered
	forget                 // delivered, never completed
)

// period is the length of the pattern of planted faults. All messages of a producer's period go to one
// consumer, so that a swap is visible there.
const period = 50

// pattern returns the fault of message k of a period. Faults are far enough apart not to interact.
func pattern(k int) fault {
	switch k % period {
	case 3:
		return lose
	case 7:
		return loseFirst
	case 11:
		return twice
	case 15:
		return later
	case 19, 23:
		return swap
	case 27:
		return corrupt
	case 31:
		return corruptThenSound
	case 35:
		return soundThenCorrupt
	case 39:
		return foreign
	case 42:
		return fail
	case 45:
		return failDeliver
	case 48:
		if k < period {
			return forget
		}
	}
	return sound
}

// planted counts what a queue did, in the terms of DESIGN 2, summed over its subscriptions.
type planted struct {
	taken, confirmed, failed, forgotten   uint64
	delivered, lost, corrupted            uint64 // of the confirmed messages
	duplicated, redelivered, reordered    uint64
	foreign, failedDelivered, forgotDeliv uint64
}

// A queue is a system in memory that delivers every message to each subscription, except for planted
// faults. Publish never blocks: each consumer has room for everything the run can deliver.
type queue struct {
	room int // capacity for deliveries to one consumer

	mu    sync.Mutex
	subs  []*subscription
	count planted
}

type subscription struct {
	name      string
	consumers []chan driver.Delivery
}

func (q *queue) definition() driver.Definition {
	return driver.Definition{
		Name: "planted", Title: "a simulated system", Summary: "Loses, repeats, swaps and corrupts what it is told to.",
		Capabilities: driver.Capabilities{
			Consume: true, Subscriptions: true, Competing: true, InProcess: true, Settle: []driver.Settle{driver.SettleNone},
			Guarantees: []driver.Guarantee{driver.Buffered}, Delivery: driver.AtMostOnce,
		},
		New: func() driver.Config { return q },
	}
}

// Validate implements driver.Config.
func (q *queue) Validate() error { return nil }

// Open implements driver.Config.
func (q *queue) Open(context.Context, driver.Run) (driver.Conn, error) { return q, nil }

// Declare implements driver.Conn.
func (q *queue) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete implements driver.Conn.
func (q *queue) Delete(context.Context, ...driver.Destination) error { return nil }

// Facts implements driver.Conn.
func (q *queue) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{Name: "simulated", Version: "1", Confirms: driver.Confirms{Guarantee: driver.Buffered}}, nil
}

// Backlog implements driver.Backlogger with the number of messages in the consumers' channels.
func (q *queue) Backlog(_ context.Context, subscription string, _ []string) (n uint64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.subs {
		if s.name == subscription {
			for _, c := range s.consumers {
				n += uint64(len(c))
			}
		}
	}
	return n, nil
}

// Close implements driver.Conn.
func (q *queue) Close(context.Context) error { return nil }

// Consumer implements driver.Conn.
func (q *queue) Consumer(_ context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.subs, func(s *subscription) bool { return s.name == spec.Subscription })
	if i < 0 {
		i = len(q.subs)
		q.subs = append(q.subs, &subscription{name: spec.Subscription})
	}
	s := q.subs[i]
	c := &taker{in: make(chan driver.Delivery, q.room)}
	s.consumers = append(s.consumers, c.in)
	return c, nil
}

// A taker is one consumer.
type taker struct{ in chan driver.Delivery }

// Run implements driver.Consumer.
func (t *taker) Run(ctx context.Context, sink driver.Sink) error {
	sink.Ready()
	batch := make([]driver.Delivery, 0, 16)
	for {
		batch = batch[:0]
		select {
		case <-ctx.Done():
			return nil
		case d := <-t.in:
			batch = append(batch, d)
		}
		for len(batch) < cap(batch) && len(t.in) > 0 {
			batch = append(batch, <-t.in)
		}
		if err := sink.Deliver(batch); err != nil {
			return fmt.Errorf("delivering: %w", err)
		}
	}
}

// Close implements driver.Consumer.
func (t *taker) Close(context.Context) error { return nil }

// Producer implements driver.Conn.
func (q *queue) Producer(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &giver{queue: q, done: done, index: spec.Index}, nil
}

// A giver is one producer.
type giver struct {
	queue     *queue
	done      driver.Completer
	index     int
	taken     int
	held      []byte // a message to deliver after the next one
	forgotten []*driver.Message
}

// Publish implements driver.Producer. It counts what will happen from the pattern alone: that is the
// truth.
func (g *giver) Publish(_ context.Context, m *driver.Message) {
	q := g.queue
	q.mu.Lock()
	k := g.taken
	g.taken++
	body := slices.Clone(m.Payload)
	f := pattern(k)
	subs := uint64(len(q.subs))
	n := &q.count
	n.taken++

	var err error
	switch f {
	case fail, failDeliver:
		n.failed++
		err = driver.ErrOverloaded
	case forget:
		n.forgotten++
		g.forgotten = append(g.forgotten, m)
	default:
		n.confirmed++
		n.delivered += subs // corrected below
	}
	before := g.held
	g.held = nil
	switch f {
	case sound:
		g.send(k, body)
	case lose:
		n.delivered -= subs
		n.lost += subs
	case loseFirst:
		n.delivered--
		n.lost++
		for _, s := range q.subs[1:] {
			s.to(g.slot(k), body, false)
		}
	case twice:
		g.send(k, body)
		g.send(k, body)
		n.duplicated += subs
	case later:
		g.send(k, body)
		for _, s := range q.subs {
			s.to(g.slot(k)+1, body, true)
		}
		n.duplicated += subs
		n.redelivered += subs
	case swap:
		g.held = body
		n.reordered += subs
	case corrupt:
		g.send(k, spoilt(body))
		n.delivered -= subs
		n.corrupted += subs
	case corruptThenSound:
		g.send(k, spoilt(body))
		g.send(k, body)
		n.delivered -= subs
		n.corrupted += subs
		n.duplicated += subs
	case soundThenCorrupt:
		g.send(k, body)
		g.send(k, spoilt(body))
		n.duplicated += subs
	case foreign:
		g.send(k, body)
		g.send(k, []byte("not of weir"))
		other := slices.Clone(body)
		stamp.Put(other, &stamp.Stamp{Run: runNumber + 1, CRC: stamp.Checksum(other[stamp.Size:])})
		g.send(k, other)
		n.foreign += 2 * subs
	case failDeliver:
		g.send(k, body)
		n.failedDelivered += subs
	case forget:
		g.send(k, body)
		n.forgotDeliv += subs
	}
	if before != nil {
		g.send(k, before)
	}
	q.mu.Unlock()
	if f != forget {
		g.done.Complete(m, err)
	}
}

// slot returns the consumer that message k goes to, in round-robin order.
func (g *giver) slot(k int) int { return g.index + k/period }

// send delivers to every subscription.
func (g *giver) send(k int, body []byte) {
	for _, s := range g.queue.subs {
		s.to(g.slot(k), body, false)
	}
}

func (s *subscription) to(slot int, body []byte, redelivered bool) {
	s.consumers[slot%len(s.consumers)] <- driver.Delivery{Payload: body, Partition: -1, Redelivered: redelivered}
}

// spoilt returns body with its last bit flipped.
func spoilt(body []byte) []byte {
	b := slices.Clone(body)
	b[len(b)-1] ^= 1
	return b
}

// Flush implements driver.Producer: all but the forgotten messages are complete.
func (g *giver) Flush(context.Context) error { return nil }

// Close implements driver.Producer.
func (g *giver) Close(context.Context) error {
	for _, m := range g.forgotten {
		g.done.Complete(m, driver.ErrClosed)
	}
	g.forgotten = nil
	return nil
}
