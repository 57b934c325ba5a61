package natsconn

import (
	"context"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// ticks is how many ticks make up a timeout, which fires up to one tick late.
const ticks = 8

// Replies is a table of requests in flight. Each has its own reply subject, so that replies may
// come in any order. A request ends exactly once: by its reply, its timeout, the loss of its
// connection, Drop, or Close. If a reply is known to be the only one, the next request reuses its
// subject. Otherwise the next request gets a new subject, which costs an allocation.
type Replies[T any] struct {
	end    func(v T, m *nats.Msg, err error) // result of a request; m is nil on error; called without the lock
	only   func(m *nats.Msg) bool            // whether this is the last reply to its request; nil: never
	prefix string
	sub    *nats.Subscription
	room   chan struct{} // holds a token after a slot was freed
	quit   chan struct{}
	joined sync.WaitGroup
	open   *blocking.Outstanding // requests that have not ended, or whose end call is running

	mu     sync.Mutex
	slots  []slot[T]
	free   []int32
	now    uint32 // ticks so far
	closed bool
}

// A slot holds at most one request.
type slot[T any] struct {
	value T
	reply string // its subject: constant as long as every request gets exactly one reply
	gen   uint32 // counts requests that ended otherwise; a late reply carries an older number
	tick  uint32 // when the request was made
	epoch uint64 // of the link, before the request was sent
	taken bool
}

// A Ticket identifies a request's slot in the table.
type Ticket struct {
	i   int32
	gen uint32
}

// NewReplies subscribes to replies on link. At most size requests are in flight; a request without
// a reply ends with ErrTimeout after timeout. only reports whether a reply is the last one to its
// request; nil: never.
func NewReplies[T any](link *Link, size int, timeout time.Duration, end func(T, *nats.Msg, error), only func(*nats.Msg) bool) (*Replies[T], error) {
	r := &Replies[T]{
		end: end, only: only, prefix: link.NewInbox() + ".",
		room: make(chan struct{}, 1), quit: make(chan struct{}), open: blocking.NewOutstanding(),
		slots: make([]slot[T], size), free: make([]int32, size),
	}
	for i := range r.slots {
		r.slots[i].reply = r.subject(int32(i), 0)
		r.free[i] = int32(size - 1 - i)
	}
	var err error
	if r.sub, err = link.Subscribe(r.prefix+"*", r.received); err != nil {
		return nil, err
	}
	r.joined.Go(func() {
		t := time.NewTicker(max(timeout/ticks, time.Millisecond))
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.expire()
			case <-r.quit:
				return
			}
		}
	})
	return r, nil
}

// Room limits the unread replies in the client, in bytes; the client drops any excess. Its default
// is 64 MiB.
func (r *Replies[T]) Room(bytes int) error {
	return r.sub.SetPendingLimits(math.MaxInt32, bytes)
}

func (r *Replies[T]) subject(i int32, gen uint32) string {
	b := append(make([]byte, 0, 64), r.prefix...) // on the stack: the string is the only allocation
	b = append(strconv.AppendInt(b, int64(i), 10), '-')
	return string(strconv.AppendUint(b, uint64(gen), 10))
}

// Take creates a request for v and returns its reply subject. It waits for a free slot until ctx
// ends.
func (r *Replies[T]) Take(ctx context.Context, v T, epoch uint64) (string, Ticket, error) {
	for {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return "", Ticket{}, driver.ErrClosed
		}
		if n := len(r.free); n > 0 {
			i := r.free[n-1]
			r.free = r.free[:n-1]
			s := &r.slots[i]
			s.value, s.taken, s.tick, s.epoch = v, true, r.now, epoch
			r.open.Add(1)
			reply, gen := s.reply, s.gen
			r.mu.Unlock()
			return reply, Ticket{i, gen}, nil
		}
		r.mu.Unlock()
		select {
		case <-r.room:
		case <-r.quit:
			return "", Ticket{}, driver.ErrClosed
		case <-ctx.Done():
			return "", Ticket{}, ctx.Err()
		}
	}
}

// release frees slot i and returns its value. With over, no further reply to it can arrive. The
// lock is held.
func (r *Replies[T]) release(i int32, over bool) T {
	s := &r.slots[i]
	v := s.value
	var none T
	s.value, s.taken = none, false
	if !over {
		s.gen++
		s.reply = r.subject(i, s.gen)
	}
	r.free = append(r.free, i)
	select {
	case r.room <- struct{}{}:
	default:
	}
	return v
}

// Drop withdraws a request that was not sent, and reports whether it was still open.
func (r *Replies[T]) Drop(t Ticket) bool {
	r.mu.Lock()
	s := &r.slots[t.i]
	if !s.taken || s.gen != t.gen {
		r.mu.Unlock()
		return false
	}
	r.release(t.i, false)
	r.mu.Unlock()
	r.open.Done(1)
	return true
}

// received is the subscription's callback.
func (r *Replies[T]) received(m *nats.Msg) {
	if len(m.Subject) <= len(r.prefix) {
		return
	}
	first, second, _ := strings.Cut(m.Subject[len(r.prefix):], "-")
	i, err1 := strconv.ParseUint(first, 10, 31)
	gen, err2 := strconv.ParseUint(second, 10, 32)
	if err1 != nil || err2 != nil || i >= uint64(len(r.slots)) {
		return
	}
	r.mu.Lock()
	if s := &r.slots[i]; !s.taken || s.gen != uint32(gen) {
		r.mu.Unlock()
		return // late: the request has already ended
	}
	v := r.release(int32(i), r.only != nil && r.only(m))
	r.mu.Unlock()
	r.end(v, m, nil)
	r.open.Done(1)
}

// fail ends all matching requests with err.
func (r *Replies[T]) fail(err error, match func(*slot[T]) bool) {
	var failed []T
	r.mu.Lock()
	for i := range r.slots {
		if s := &r.slots[i]; s.taken && match(s) {
			failed = append(failed, r.release(int32(i), false))
		}
	}
	r.mu.Unlock()
	for _, v := range failed {
		r.end(v, nil, err)
	}
	r.open.Done(len(failed))
}

// expire counts a tick and ends requests that are too old.
func (r *Replies[T]) expire() {
	r.mu.Lock()
	r.now++
	now := r.now
	r.mu.Unlock()
	r.fail(driver.ErrTimeout, func(s *slot[T]) bool { return now-s.tick > ticks })
}

// Lost ends requests sent on a connection other than the epoch's.
func (r *Replies[T]) Lost(epoch uint64, err error) {
	up := sockets.Up(epoch)
	r.fail(err, func(s *slot[T]) bool { return !up || s.epoch != epoch })
}

// Wait waits until no request is in flight and every end call has returned, or returns ctx's error.
// Only the goroutine that takes, or one after it, may call it.
func (r *Replies[T]) Wait(ctx context.Context) error { return r.open.Wait(ctx) }

// Close ends the remaining requests with ErrClosed, and accepts no more. It is idempotent.
func (r *Replies[T]) Close() {
	r.mu.Lock()
	already := r.closed
	r.closed = true
	r.mu.Unlock()
	if already {
		return
	}
	close(r.quit)
	r.joined.Wait()
	_ = r.sub.Unsubscribe()
	r.fail(driver.ErrClosed, func(*slot[T]) bool { return true })
}

// NoResponders reports whether a reply is the server's message that the subject has no subscriber:
// no data, and status 503. (https://docs.nats.io/nats-concepts/core-nats/reqreply, no responders)
func NoResponders(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get("Status") == "503"
}

// Responds reports whether a reply comes from a subscriber.
func Responds(m *nats.Msg) bool { return !NoResponders(m) }
