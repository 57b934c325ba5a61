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

// ticks is how many ticks make up a timeout: it strikes up to one tick late.
const ticks = 8

// Replies is a table of requests in flight, each with a reply subject of its own,
// by which its reply is found in any order. A request ends exactly once: by its
// reply, its timeout, the loss of the connection that carried it, Drop, or Close.
// Where a reply is surely the only one of its request, its subject serves the next request.
// Otherwise the next one has a new subject, which is an allocation.
type Replies[T any] struct {
	end    func(v T, m *nats.Msg, err error) // how it ended; m is nil with an error; called without the lock
	only   func(m *nats.Msg) bool            // whether no other reply can come after this one; nil: never
	prefix string
	sub    *nats.Subscription
	room   chan struct{} // holds a token after a slot was freed
	quit   chan struct{}
	joined sync.WaitGroup
	open   *blocking.Outstanding // requests that have not ended, or where end has not returned

	mu     sync.Mutex
	slots  []slot[T]
	free   []int32
	now    uint32 // ticks so far
	closed bool
}

// A slot holds one request, or none.
type slot[T any] struct {
	value T
	reply string // its subject: constant as long as every request has its only reply
	gen   uint32 // counts the requests that ended otherwise; a late reply carries an older number
	tick  uint32 // when it was made
	epoch uint64 // of the link, before it was sent
	taken bool
}

// A Ticket is a request's place in the table.
type Ticket struct {
	i   int32
	gen uint32
}

// NewReplies subscribes to the replies on link. At most size requests are in flight
// at a time; one that has no reply after timeout ends with ErrTimeout. only reports whether
// a reply is surely the only one of its request; nil: none is.
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

// Room says how many bytes of replies may have been received and not been told
// yet; the client drops what comes on top. Its own default is 64 MiB.
func (r *Replies[T]) Room(bytes int) error {
	return r.sub.SetPendingLimits(math.MaxInt32, bytes)
}

func (r *Replies[T]) subject(i int32, gen uint32) string {
	b := append(make([]byte, 0, 64), r.prefix...) // on the stack: the string is the only allocation
	b = append(strconv.AppendInt(b, int64(i), 10), '-')
	return string(strconv.AppendUint(b, uint64(gen), 10))
}

// Take makes a request for v and returns its reply subject. It waits for a place
// until ctx ends.
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

// release frees slot i and returns what it held. With over, no reply to it can come any
// more. The lock is held.
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

// Drop takes a request back that was not sent, and reports whether it had not
// ended already.
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
		return // late: the request has ended
	}
	v := r.release(int32(i), r.only != nil && r.only(m))
	r.mu.Unlock()
	r.end(v, m, nil)
	r.open.Done(1)
}

// fail ends all requests that match with err.
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

// expire counts a tick and ends what is too old.
func (r *Replies[T]) expire() {
	r.mu.Lock()
	r.now++
	now := r.now
	r.mu.Unlock()
	r.fail(driver.ErrTimeout, func(s *slot[T]) bool { return now-s.tick > ticks })
}

// Lost ends what was sent on another connection than that of the epoch.
func (r *Replies[T]) Lost(epoch uint64, err error) {
	up := sockets.Up(epoch)
	r.fail(err, func(s *slot[T]) bool { return !up || s.epoch != epoch })
}

// Wait returns when no request is in flight and every end was told, or with ctx's
// error. Only the goroutine that takes, or one after it, calls it.
func (r *Replies[T]) Wait(ctx context.Context) error { return r.open.Wait(ctx) }

// Close ends what is left with ErrClosed, and takes no more. It is idempotent.
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

// NoResponders reports whether a reply is the server's word that no subscriber takes the
// requests of that subject: no data, and a status of 503.
// (https://docs.nats.io/nats-concepts/core-nats/reqreply, no responders)
func NoResponders(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get("Status") == "503"
}

// Responds reports whether a reply is a subscriber's.
func Responds(m *nats.Msg) bool { return !NoResponders(m) }
