package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// fullFrame is the size of a publish frame, in bytes, from which the next message starts a new one.
const fullFrame = 256 << 10

// A producer writes messages to its connection. Messages published during a write are sent together
// in one frame by the next write.
type producer struct {
	*blocking.Outgoing
	child   *child
	conn    *peer
	targets *driver.Targets[uint16]
	wake    chan struct{} // holds a token when there is something to write
	over    chan struct{} // closed when reading has ended
	all     sync.WaitGroup

	mu       sync.Mutex        // held for copying, never during I/O
	pending  []byte            // frames to write; the last is open
	open     int               // start of the open frame in pending; -1: none
	messages uint32            // in the open frame
	slots    []*driver.Message // in flight
	free     []uint32          // indexes of free slots
	err      error             // why messages are no longer accepted
}

// Producer makes the child open a producer.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	next := -1
	targets, err := driver.NewTargets(spec.Destinations, func(string) (uint16, error) {
		if next++; next >= nowhere {
			return 0, fmt.Errorf("more than %d destinations: %w", nowhere, driver.ErrUnsupported)
		}
		return uint16(next), nil
	})
	if err != nil {
		return nil, err
	}
	conn, got, err := c.child.channel(ctx, "producer", fields{
		"destination": spec.Destinations, "index": {strconv.Itoa(spec.Index)}, "in-flight": {strconv.Itoa(spec.InFlight)},
	})
	if err != nil {
		return nil, err
	}
	most, err := number(got, "max-payload", largest, largest)
	if err == nil {
		err = driver.CheckSize(spec.Largest, most, "the child's limit")
	}
	if err != nil {
		c.child.drop(conn)
		return nil, err
	}
	targets.Limit(most, "the child's limit")
	return newProducer(c.child, conn, targets, spec.InFlight, done), nil
}

func newProducer(c *child, conn *peer, targets *driver.Targets[uint16], inFlight int, done driver.Completer) *producer {
	p := &producer{
		Outgoing: blocking.NewOutgoing(done), child: c, conn: conn, targets: targets,
		wake: make(chan struct{}, 1), over: make(chan struct{}), open: -1, slots: make([]*driver.Message, max(inFlight, 1)),
	}
	for i := range p.slots {
		p.free = append(p.free, uint32(i))
	}
	p.all.Go(p.write)
	p.all.Go(p.read)
	return p
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	destination, err := p.targets.Of(ctx, m)
	if !p.Admit(m, err) {
		return
	}
	if err := p.enqueue(destination, m); err != nil {
		p.Complete(m, err)
	}
}

// enqueue appends the message to the open frame.
func (p *producer) enqueue(destination uint16, m *driver.Message) error {
	p.mu.Lock()
	if p.err != nil {
		defer p.mu.Unlock()
		return p.err
	}
	if len(p.free) == 0 { // more than spec.InFlight
		p.free = append(p.free, uint32(len(p.slots)))
		p.slots = append(p.slots, nil)
	}
	slot := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.slots[slot] = m
	if p.open >= 0 && len(p.pending)-p.open >= fullFrame {
		p.shut()
	}
	if p.open < 0 {
		p.open, p.messages = len(p.pending), 0
		p.pending = append(begin(p.pending, publish), 0, 0, 0, 0)
	}
	p.pending = appendMessage(p.pending, slot, destination, m)
	p.messages++
	p.mu.Unlock()
	p.rouse()
	return nil
}

// shut closes the open frame. p.mu is held.
func (p *producer) shut() {
	if p.open >= 0 {
		binary.BigEndian.PutUint32(p.pending[p.open+header:], p.messages)
		finish(p.pending, p.open)
		p.open = -1
	}
}

// rouse wakes the writing goroutine.
func (p *producer) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write writes pending frames until the connection has ended.
func (p *producer) write() {
	var out []byte
	for {
		select {
		case <-p.wake:
		case <-p.over:
			return
		}
		p.mu.Lock()
		p.shut()
		out, p.pending = p.pending, out[:0]
		p.mu.Unlock()
		if len(out) == 0 {
			continue
		}
		if _, err := p.conn.Write(out); err != nil {
			return // read notices it too
		}
	}
}

// read reads outcomes of messages until the connection ends, and then fails the rest.
func (p *producer) read() {
	defer close(p.over)
	var fates []fate
	var ms []*driver.Message
	for {
		k, body, err := p.conn.in.next()
		if err == nil && k != complete {
			err = fmt.Errorf("%w: kind %d on the connection of a producer", errMalformed, k)
		}
		if err == nil {
			fates, ms, err = p.fates(body, fates[:0], ms[:0])
		}
		if err != nil {
			p.child.drop(p.conn)
			p.mu.Lock()
			closing := errors.Is(p.err, driver.ErrClosed)
			p.mu.Unlock()
			if !closing {
				p.abandon(p.child.why(err))
			}
			return
		}
		for i, f := range fates {
			ms[i].Took = time.Duration(f.took)
			p.Complete(ms[i], f.err)
		}
	}
}

// fates reads a complete frame and looks up its messages.
func (p *producer) fates(body []byte, fs []fate, ms []*driver.Message) ([]fate, []*driver.Message, error) {
	c := cursor{b: body}
	for len(c.b) > 0 && !c.failed {
		fs = append(fs, readFate(&c))
	}
	if err := c.err(complete); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range fs {
		if f.took < 0 || int(f.slot) >= len(p.slots) || p.slots[f.slot] == nil {
			for j, m := range ms { // still in flight, for abandon
				p.slots[fs[j].slot] = m
			}
			return nil, nil, fmt.Errorf("%w: message %d of a complete frame is not in flight, or took %d ns", errMalformed, f.slot, f.took)
		}
		ms = append(ms, p.slots[f.slot])
		p.slots[f.slot] = nil
	}
	for _, f := range fs {
		p.free = append(p.free, f.slot)
	}
	return fs, ms, nil
}

// abandon fails the messages in flight and all later ones.
func (p *producer) abandon(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	var left []*driver.Message
	for i, m := range p.slots {
		if m != nil {
			left = append(left, m)
			p.slots[i] = nil
		}
	}
	p.mu.Unlock()
	for _, m := range left {
		p.Complete(m, err)
	}
}

// Close makes the child complete the messages in flight and close the connection, within ctx and
// the option timeout. The rest completes with driver.ErrClosed.
func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	if p.err == nil {
		p.err = driver.ErrClosed
		p.shut()
		start := len(p.pending)
		p.pending = begin(p.pending, end)
		finish(p.pending, start)
	}
	p.mu.Unlock()
	p.rouse()
	timer := time.NewTimer(p.child.limit)
	defer timer.Stop()
	select {
	case <-p.over:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.child.drop(p.conn)
	p.all.Wait()
	p.abandon(driver.ErrClosed)
	return nil
}
