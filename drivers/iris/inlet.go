package iris

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// The inlets are the tunnels to a feed over one connection.
type inlets struct {
	f *feed
	s *session

	mu    sync.Mutex
	open  map[uint64]*inlet
	made  uint64 // number created
	leave bool   // the feed is leaving
}

// An inlet is the consumer's end of a tunnel.
type inlet struct {
	s     *session
	id    uint64
	size  uint64 // of a message that arrives in parts
	parts []byte // the parts received so far
	taken int64  // bytes accepted by Deliver and not yet reported to the relay
}

// take handles one message from the relay.
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
			return nil // already closed
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
			k.f.arrivals.Put(arrival{x, message})
			return nil
		}
		if err == nil { // undelivered messages free their room at once
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

// of returns the tunnel with a number, and whether the feed is leaving.
func (k *inlets) of(id uint64) (x *inlet, left bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open[id], k.leave
}

// drop removes a tunnel. Dropping the last one releases a feed that is leaving.
func (k *inlets) drop(id uint64) {
	k.mu.Lock()
	delete(k.open, id)
	last := k.leave && len(k.open) == 0
	k.mu.Unlock()
	if last {
		k.s.leave()
	}
}

// end tells the producers that the feed is leaving: each sends a last marker after everything else,
// and then uses another tunnel. Producers that do not answer are ignored.
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
		_ = k.s.tell(opTunnelAllow, id, uint64(k.f.conn.cfg.TunnelBuffer)) // the feed accepts nothing more
		_ = k.s.transfer(id, len(last), last)
	}
	_ = k.s.flushed()
}

// whole returns the message completed by a part; nil: more parts follow. The caller owns the
// message.
func (x *inlet) whole(e *event) ([]byte, error) {
	n := uint64(len(e.body))
	switch {
	case e.n > largest:
		x.parts, x.size = nil, 0
		return nil, fmt.Errorf("%w: a message of %d bytes, of at most %d", errRelay, e.n, largest)
	case e.n > 0:
		x.parts, x.size = bytes.Clone(e.body), e.n
	case x.size == 0: // the rest of an oversized message
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

// accepted counts bytes that Deliver has accepted. The relay is told in larger steps.
func (x *inlet) accepted(bytes, buffer int64) {
	if x.taken += bytes; x.taken >= buffer/2 {
		_ = x.s.tell(opTunnelAllow, x.id, uint64(x.taken)) // the connection's reader finds the error
		x.taken = 0
	}
}

// An arrival is a message that came through a tunnel.
type arrival struct {
	by      *inlet
	message []byte
}

// deliverArrivals delivers messages that came through tunnels. The relay limits how many wait: it
// sends at most the option tunnel-buffer through each tunnel.
func (f *feed) deliverArrivals(ctx context.Context, sink driver.Sink) {
	defer context.AfterFunc(ctx, f.arrivals.Close)()
	for a := range f.arrivals.All() {
		if ctx.Err() != nil {
			return
		}
		if err := f.deliver(sink, a.message); err != nil {
			sink.Fault(err)
		}
		f.owed.Add(-1)
		a.by.accepted(int64(len(a.message)), f.conn.cfg.TunnelBuffer)
	}
}
