package iris

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// The inlets are the tunnels to a feed, on one connection.
type inlets struct {
	f *feed
	s *session

	mu    sync.Mutex
	open  map[uint64]*inlet
	made  uint64 // so many
	leave bool   // the feed leaves
}

// An inlet is the consumer's end of a tunnel.
type inlet struct {
	s     *session
	id    uint64
	size  uint64 // of a message that comes in parts
	parts []byte // of it, so far
	taken int64  // bytes that Deliver has accepted, and that the relay was not told of
}

// take takes one message from the relay.
func (k *inlets) take(e *event) error {
	switch e.op {
	case opRequest:
		_, marked := k.f.conn.number(e.body)
		return k.s.reply(e.id, []byte{1}, !marked)
	case opTunnelInit:
		return k.accept(e.id)
	case opTunnelClose:
		k.drop(e.id)
	case opTunnelTransfer:
		x, left := k.of(e.id)
		if x == nil {
			return nil // it was closed
		}
		message, err := x.whole(e)
		if message == nil {
			return err
		}
		number, marked := k.f.conn.number(message)
		switch {
		case marked && number == leaving:
			err = k.s.tell(opTunnelClose, x.id)
			k.drop(x.id)
			return err
		case marked:
			if err = k.s.transfer(x.id, len(message), message); err == nil {
				err = k.s.flushed()
			}
		case !left:
			k.f.owed.Add(1)
			k.f.arrivals.add(arrival{x, message})
			return nil
		}
		if err == nil { // what is not delivered leaves its room at once
			err = k.s.tell(opTunnelAllow, x.id, uint64(len(message)))
		}
		return err
	}
	return nil
}

// accept confirms a tunnel.
func (k *inlets) accept(id uint64) error {
	k.mu.Lock()
	if k.leave {
		k.mu.Unlock()
		return nil
	}
	k.made++
	x := &inlet{s: k.s, id: k.made}
	k.open[x.id] = x
	k.mu.Unlock()
	if err := k.s.tell(opTunnelConfirm, id, x.id); err != nil {
		return err
	}
	return k.s.tell(opTunnelAllow, x.id, uint64(k.f.conn.cfg.TunnelBuffer))
}

// of returns the tunnel of a number, and whether the feed leaves.
func (k *inlets) of(id uint64) (x *inlet, left bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open[id], k.leave
}

// drop forgets a tunnel. The last one lets a feed go that leaves.
func (k *inlets) drop(id uint64) {
	k.mu.Lock()
	delete(k.open, id)
	last := k.leave && len(k.open) == 0
	k.mu.Unlock()
	if last {
		k.s.leave()
	}
}

// end lets the producers know that the feed leaves: each sends a last marker, behind all
// else, and uses another tunnel from then on. It goes without those that do not answer.
func (k *inlets) end() {
	k.mu.Lock()
	k.leave = true
	var ids []uint64
	for id := range k.open {
		ids = append(ids, id)
	}
	k.mu.Unlock()
	if len(ids) == 0 {
		k.s.leave()
		return
	}
	time.AfterFunc(leaveLimit, k.s.leave)
	last := k.f.conn.markerOf(leaving)
	for _, id := range ids {
		_ = k.s.tell(opTunnelAllow, id, uint64(k.f.conn.cfg.TunnelBuffer)) // the feed takes nothing more
		_ = k.s.transfer(id, len(last), last)
	}
	_ = k.s.flushed()
}

// whole returns the message that a part completes; nil: there is more to come. The message
// is the caller's.
func (x *inlet) whole(e *event) ([]byte, error) {
	n := uint64(len(e.body))
	switch {
	case e.n > largest:
		x.parts, x.size = nil, 0
		return nil, fmt.Errorf("%w: a message of %d bytes, of at most %d", errRelay, e.n, largest)
	case e.n > 0:
		x.parts, x.size = bytes.Clone(e.body), e.n
	case x.size == 0: // the rest of one that was too large
		return nil, x.s.tell(opTunnelAllow, x.id, n)
	default:
		x.parts = append(x.parts, e.body...)
	}
	if uint64(len(x.parts)) < x.size {
		return nil, nil
	}
	message := x.parts
	x.parts, x.size = nil, 0
	return message, nil
}

// accepted notes that Deliver has had so many bytes. The relay learns of it when they are
// many.
func (x *inlet) accepted(bytes, buffer int64) {
	if x.taken += bytes; x.taken >= buffer/2 {
		_ = x.s.tell(opTunnelAllow, x.id, uint64(x.taken)) // an error is that of the connection, which its reader finds
		x.taken = 0
	}
}

// An arrival is a message that came by a tunnel.
type arrival struct {
	by      *inlet
	message []byte
}

// The arrivals are those that wait for Deliver. A relay bounds them, since it sends no more
// than the option tunnel-buffer by each tunnel.
type arrivals struct {
	mu      sync.Mutex
	waiting []arrival
	some    chan struct{} // holds a token when there are
}

func (a *arrivals) add(x arrival) {
	a.mu.Lock()
	a.waiting = append(a.waiting, x)
	a.mu.Unlock()
	select {
	case a.some <- struct{}{}:
	default:
	}
}

// swap returns those that wait, and has the next ones wait in spare.
func (a *arrivals) swap(spare []arrival) []arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.waiting
	a.waiting = spare[:0]
	return all
}

// deliverArrivals delivers what comes by tunnels.
func (f *feed) deliverArrivals(ctx context.Context, sink driver.Sink) {
	var all []arrival
	for {
		select {
		case <-f.arrivals.some:
		case <-ctx.Done():
			return
		}
		all = f.arrivals.swap(all)
		for i := range all {
			if ctx.Err() != nil {
				return
			}
			if err := f.deliver(sink, all[i].message); err != nil {
				sink.Fault(err)
			}
			f.owed.Add(-1)
			all[i].by.accepted(int64(len(all[i].message)), f.conn.cfg.TunnelBuffer)
			all[i] = arrival{}
		}
	}
}
