package iris

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/internal/latch"
)

// First byte of a tunnel message, in both directions.
const (
	opTunnelInit     = 0x09 // to the relay: create one; from it: one was created
	opTunnelConfirm  = 0x0a // to the relay: our number for it; from it: created, or not
	opTunnelAllow    = 0x0b // more bytes may be sent
	opTunnelTransfer = 0x0c // part of a message; the first has the size of the whole
	opTunnelClose    = 0x0d
)

const (
	tunnelWait = time.Second     // for a cluster member to accept a tunnel
	echoRoom   = 64 << 10        // bytes of markers that a consumer may have in transit back
	flushWait  = 2 * time.Second // how long Close waits for messages in flight
	leaving    = 1 << 63         // number of a tunnel's last marker
	partSize   = 64 << 10        // bytes of a part, unless the relay sets a size
	patience   = 5               // beats that a message may be in transit; four make up the option timeout
)

var (
	errNoMember = errors.New("no consumer takes a tunnel")
	errOver     = errors.New("the consumer has closed the tunnel")
)

// tunnelled reads the rest of a tunnel message.
func (s *session) tunnelled(e *event) (err error) {
	if e.id, err = binary.ReadUvarint(s.r); err != nil {
		return err
	}
	switch e.op {
	case opTunnelClose:
		_, err = s.text()
		return err
	case opTunnelConfirm:
		if late, err := s.r.ReadByte(); err != nil || late != 0 {
			return err // n is 0
		}
	}
	if e.n, err = binary.ReadUvarint(s.r); err == nil && e.op == opTunnelTransfer {
		e.body, err = s.bytes()
	}
	return err
}

// build asks for a tunnel to a member of a cluster.
func (s *session) build(id uint64, cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := text(binary.AppendUvarint(append(s.head[:0], opTunnelInit), id), cluster)
	return s.flush(binary.AppendUvarint(head, uint64(tunnelWait.Milliseconds())), nil)
}

// tell sends a tunnel message that contains only numbers.
func (s *session) tell(op byte, numbers ...uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := append(s.head[:0], op)
	for _, n := range numbers {
		head = binary.AppendUvarint(head, n)
	}
	return s.flush(head, nil)
}

// transfer sends a part of a message; size is that of the whole, or 0 after the first part. It may
// wait for a flush.
func (s *session) transfer(id uint64, size int, part []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := binary.AppendUvarint(append(s.head[:0], opTunnelTransfer), id)
	head = binary.AppendUvarint(binary.AppendUvarint(head, uint64(size)), uint64(len(part)))
	return s.put(head, part)
}

// flushed flushes buffered data.
func (s *session) flushed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out()
}

// A tunnel leads to a consumer and has its own connection. Its number is 0.
type tunnel struct {
	l      *outbox
	s      *session
	most   int           // bytes of a part
	turn   chan struct{} // holds a token while a message is written
	grew   chan struct{} // holds a token when there may be more room
	ended  chan struct{} // closed when the tunnel has failed its messages in flight
	echoes markers

	mu      sync.Mutex
	first   uint64 // bytes of room in the relay at the start
	allowed uint64 // total bytes allowed, including first
	written uint64 // bytes
	over    bool   // the consumer is leaving
	failed  error
	under   []pending // written, but not yet taken by the relay
	beats   uint64
	seen    uint64 // session.writes at the last beat
	still   uint64 // consecutive beats during the same write
}

// A pending message has been written and has not completed.
type pending struct {
	m    *driver.Message
	end  uint64 // bytes written, including this message
	beat uint64 // beat at which it was written
}

// connect opens a connection with a tunnel, and waits for a marker to come back through it: a relay
// reports a tunnel as created before the consumer has confirmed it.
func (l *outbox) connect(ctx context.Context) (*tunnel, error) {
	c := l.p.c
	s, err := c.cfg.dial(ctx, &l.sockets, l.at, "")
	if err != nil {
		return nil, unmade(err)
	}
	t := &tunnel{l: l, s: s, most: partSize, turn: make(chan struct{}, 1), grew: make(chan struct{}, 1), ended: make(chan struct{})}
	limited, cancel := context.WithTimeout(ctx, 2*tunnelWait)
	defer cancel()
	stop := context.AfterFunc(limited, func() { _ = s.Close() })
	err = t.begin(limited)
	if !stop() || errors.Is(err, errOver) {
		err = errNoMember
	}
	if err == nil {
		return t, nil
	}
	_ = s.Close()
	if errors.Is(err, errNoMember) {
		return nil, err
	}
	return nil, unmade(err)
}

func (t *tunnel) begin(ctx context.Context) error {
	number, marker := t.l.p.c.marker()
	came, forget := t.echoes.expect(number, 1)
	defer forget()
	err := t.s.build(0, t.l.target)
	for sent := false; err == nil; {
		var e event
		if err = t.s.next(&e); err == nil {
			err = t.take(&e)
		}
		switch {
		case err != nil:
		case t.isOver():
			err = errOver
		case latch.Closed(came):
			return nil
		case e.op == opTunnelConfirm && e.n == 0:
			err = errNoMember
		case e.op == opTunnelConfirm:
			t.most = int(min(e.n, largest))
			err = t.s.tell(opTunnelAllow, 0, echoRoom)
		case e.op == opTunnelAllow && !sent:
			sent = true
			if err = t.send(ctx, marker, nil); err == nil {
				t.flush()
			}
		}
	}
	return err
}

// isOver reports whether the consumer is leaving.
func (t *tunnel) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// hold receives until the connection or the tunnel ends.
func (t *tunnel) hold(ctx context.Context) error {
	defer retry.Every(t.l.p.c.cfg.Timeout/4, t.beat)()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(leaveLimit, func() { _ = t.s.Close() })
		_ = t.s.tell(opTunnelClose, 0)
		t.s.leave()
	})()
	defer func() { _ = t.s.Close() }()
	var e event
	for {
		err := t.s.next(&e)
		if err == nil {
			err = t.take(&e)
		}
		if err != nil && (ctx.Err() == nil || !errors.Is(err, errOver)) {
			return err
		}
	}
}

// take handles one message from the relay.
func (t *tunnel) take(e *event) error {
	switch e.op {
	case opTunnelAllow:
		t.allow(e.n)
	case opTunnelClose:
		return errOver
	case opTunnelTransfer:
		switch number, _ := t.l.p.c.number(e.body); number {
		case leaving:
			t.end()
		default:
			t.echoes.add(number)
		}
		return t.s.tell(opTunnelAllow, 0, uint64(len(e.body)))
	}
	return nil
}

// allow adds bytes taken by the relay, and completes the messages that it has taken.
func (t *tunnel) allow(bytes uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.allowed += bytes; t.first == 0 {
		t.first = bytes
	}
	n := 0
	for ; n < len(t.under) && t.under[n].end <= t.allowed-t.first; n++ {
		t.l.p.Complete(t.under[n].m, nil)
	}
	t.drop(n)
	t.wake()
}

// drop removes the n oldest messages. t.mu is held.
func (t *tunnel) drop(n int) {
	t.under = t.under[:copy(t.under, t.under[n:])]
}

// wake wakes the callers that wait for room.
func (t *tunnel) wake() {
	select {
	case t.grew <- struct{}{}:
	default:
	}
}

// beat is called four times per option timeout. It fails messages in transit for longer than that,
// and closes a connection that has taken nothing for as long.
func (t *tunnel) beat() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beats++
	n := 0
	for ; n < len(t.under) && t.under[n].beat+patience <= t.beats; n++ {
		t.l.p.Complete(t.under[n].m, fmt.Errorf("%w: the relay has not taken the message within %v", driver.ErrTimeout, t.l.p.c.cfg.Timeout))
	}
	t.drop(n)
	writes := t.s.writes.Load()
	if t.still++; writes != t.seen || writes%2 == 0 {
		t.still = 0
	}
	if t.seen = writes; t.still == patience {
		_ = t.s.Close()
	}
}

// fail completes all messages in flight, and all later ones, with why.
func (t *tunnel) fail(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over, t.failed = true, why
	for _, x := range t.under {
		t.l.p.Complete(x.m, why)
	}
	t.under = nil
	close(t.ended)
}

// end ends a tunnel whose consumer is leaving: after everything else, it sends the marker that the
// consumer waits for.
func (t *tunnel) end() {
	t.mu.Lock()
	was := t.over
	t.over = true
	t.mu.Unlock()
	if was {
		return
	}
	t.l.set(nil, false) // waiting messages now wait for the next tunnel
	t.wake()
	time.AfterFunc(leaveLimit, func() { _ = t.s.Close() })
	t.l.p.all.Go(func() {
		_ = t.send(context.Background(), t.l.p.c.markerOf(leaving), nil)
		t.flush()
	})
}

// ask sends a marker, and waits until it comes back.
func (t *tunnel) ask(ctx context.Context) error {
	number, marker := t.l.p.c.marker()
	came, forget := t.echoes.expect(number, 1)
	defer forget()
	if err := t.send(ctx, marker, nil); err != nil {
		return err
	}
	t.flush()
	select {
	case <-came:
		return nil
	case <-t.ended:
		return fmt.Errorf("%w: %w", driver.ErrDisconnected, errOver)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send writes a message, or a marker if m is nil. On success, the tunnel completes the message
// later. With errOver, nothing was written.
func (t *tunnel) send(ctx context.Context, payload []byte, m *driver.Message) error {
	select {
	case t.turn <- struct{}{}:
	case <-t.ended:
		return errOver
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.turn }()
	size := len(payload)
	for rest := payload; len(rest) > 0; size = 0 {
		part := rest[:min(len(rest), t.most)]
		if err := t.room(ctx, len(part), size > 0 && m != nil); err != nil {
			return err
		}
		if err := t.s.transfer(0, size, part); err != nil {
			_ = t.s.Close()
			return failure.Map{}.Lost(err)
		}
		rest = rest[len(part):]
	}
	if m != nil {
		t.sent(m)
	}
	return nil
}

// room waits until the relay has room for that many bytes. The first part of a message is refused
// if the consumer is leaving.
func (t *tunnel) room(ctx context.Context, bytes int, first bool) error {
	var late *time.Timer
	for {
		t.mu.Lock()
		over, failed, enough := t.over, t.failed, t.allowed-t.written >= uint64(bytes)
		if enough && (!over || !first) {
			t.written += uint64(bytes)
		}
		t.mu.Unlock()
		switch {
		case over && first:
			return errOver
		case failed != nil:
			return failed
		case enough:
			return nil
		case late == nil:
			late = time.NewTimer(t.l.p.c.cfg.Timeout)
			defer late.Stop()
		}
		t.flush()
		select {
		case <-t.grew:
		case <-t.ended:
		case <-late.C:
			return fmt.Errorf("%w: the relay has no room for the message within %v", driver.ErrTimeout, t.l.p.c.cfg.Timeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sent records a written message.
func (t *tunnel) sent(m *driver.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch end := t.written; {
	case end <= t.allowed-t.first:
		t.l.p.Complete(m, nil)
	case t.failed != nil:
		t.l.p.Complete(m, t.failed)
	default:
		t.under = append(t.under, pending{m, end, t.beats})
	}
}

// flush sends buffered data. An error ends the connection, which hold reports.
func (t *tunnel) flush() {
	if err := t.s.flushed(); err != nil {
		_ = t.s.Close()
	}
}
