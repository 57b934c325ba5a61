package jetstream

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// Bounds of fetching.
const (
	batchMost = 256                    // deliveries settled together
	fetchRest = 100 * time.Millisecond // after a failed fetch
	lastWait  = 50 * time.Millisecond  // for messages the server was still sending when Run was ending
)

// fetch repeatedly fetches from a durable, delivers each message as the client yields it, and
// settles together the messages at hand. It sends the first request before it returns.
func (r *running) fetch(d *held) error {
	messages, _, wait := r.x.request(d)
	next := func() (jetstream.MessageBatch, context.CancelFunc, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.life), wait)
		b, err := d.Fetch(messages, jetstream.FetchContext(ctx))
		if err != nil {
			cancel()
		}
		return b, cancel, err
	}
	b, cancel, err := next()
	if err != nil {
		return err
	}
	r.joined.Go(func() {
		h := handful{held: d, msgs: make([]jetstream.Msg, 0, batchMost), ds: make([]driver.Delivery, 0, batchMost)}
		for ; ; b, cancel, err = next() {
			if err == nil {
				for m := range r.arriving(b.Messages()) {
					h.take(r, m, b.Messages())
				}
				if r.life.Err() != nil {
					r.leave(b.Messages(), cancel)
					return
				}
				err = b.Error()
				cancel()
			}
			rest := fetchRest
			switch {
			case err == nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
				rest = 0
			case r.trouble(err):
				return
			case noResponders(err):
				rest = pullPause
			}
			if r.life.Err() != nil || rest > 0 && !retry.Pause(r.life, rest) {
				return
			}
		}
	})
	return nil
}

// arriving yields messages from ms until Run should end.
func (r *running) arriving(ms <-chan jetstream.Msg) iter.Seq[jetstream.Msg] {
	return func(yield func(jetstream.Msg) bool) {
		for {
			select {
			case m, ok := <-ms:
				if !ok || !yield(m) {
					return
				}
			case <-r.life.Done():
				return
			}
		}
	}
}

// leave collects messages that the server still sends for a request, and ends the request when no
// more come.
func (r *running) leave(ms <-chan jetstream.Msg, cancel context.CancelFunc) {
	quiet := time.AfterFunc(lastWait, cancel)
	defer quiet.Stop()
	for m := range ms {
		quiet.Reset(lastWait)
		r.mu.Lock()
		r.left = append(r.left, m)
		r.mu.Unlock()
	}
	cancel()
}

// A handful is a set of delivered messages that are settled together.
type handful struct {
	held     *held
	msgs     []jetstream.Msg
	ds       []driver.Delivery
	accepted [batchMost]bool
}

// take delivers m and all messages immediately available from ms, one by one, and then settles
// them.
func (h *handful) take(r *running, m jetstream.Msg, ms <-chan jetstream.Msg) {
	for ok := true; ok; {
		if !h.deliver(r, m) || len(h.msgs) == batchMost {
			break
		}
		select {
		case m, ok = <-ms:
		default:
			ok = false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range h.msgs {
		r.settle(m, &h.ds[i], h.accepted[i])
	}
	clear(h.msgs)
	h.msgs, h.ds = h.msgs[:0], h.ds[:0]
}

// deliver delivers one message, and reports whether Run should continue. A message that arrives
// while Run is ending goes to left.
func (h *handful) deliver(r *running, m jetstream.Msg) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		r.left = append(r.left, m)
		return false
	}
	i := len(h.msgs)
	h.msgs, h.ds = append(h.msgs, m), append(h.ds, h.held.delivery(m))
	h.accepted[i] = r.sink.Deliver(h.ds[i:]) == nil
	return true
}
