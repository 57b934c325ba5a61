package jetstream

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
)

// Bounds of fetching.
const (
	batchMost = 256                    // deliveries in one call of Deliver
	fetchRest = 100 * time.Millisecond // after one that failed
	lastWait  = 50 * time.Millisecond  // for more of what the server was sending when Run was to end
)

// fetch fetches from a durable again and again, and delivers together what the
// client has at hand. The first request is sent before it returns.
func (r *running) fetch(d *held) error {
	most := r.x.request(d)
	next := func() (jetstream.MessageBatch, context.CancelFunc, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.life), most.wait)
		b, err := d.Fetch(most.messages, jetstream.FetchContext(ctx))
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
		msgs := make([]jetstream.Msg, 0, batchMost)
		ds := make([]driver.Delivery, 0, batchMost)
		for {
			if b != nil {
				for m := range r.arriving(b.Messages()) {
					msgs = r.atHand(append(msgs[:0], m), b.Messages())
					ds = r.deliverBatch(d, ds[:0], msgs)
					clear(msgs)
				}
				if r.life.Err() != nil {
					r.leave(b.Messages(), cancel)
					return
				}
				err = b.Error()
				cancel()
			}
			if r.life.Err() != nil {
				return
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
				if r.trouble(err) {
					return
				}
				rest := fetchRest
				if errors.Is(err, nats.ErrNoResponders) {
					rest = pullPause
				}
				if !pause(r.life, rest) {
					return
				}
			}
			b, cancel, err = next()
			if err != nil {
				b = nil
			}
		}
	})
	return nil
}

// arriving yields what ms does, until Run is to end.
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

// leave takes what the server still sends of a request, and ends that when
// nothing more comes.
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

// atHand adds to msgs what ms yields without waiting.
func (r *running) atHand(msgs []jetstream.Msg, ms <-chan jetstream.Msg) []jetstream.Msg {
	for len(msgs) < batchMost {
		select {
		case m, ok := <-ms:
			if !ok {
				return msgs
			}
			msgs = append(msgs, m)
		default:
			return msgs
		}
	}
	return msgs
}

// deliverBatch hands over msgs together and settles them.
func (r *running) deliverBatch(d *held, ds []driver.Delivery, msgs []jetstream.Msg) []driver.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		r.left = append(r.left, msgs...)
		return ds
	}
	for _, m := range msgs {
		ds = append(ds, d.delivery(m))
	}
	err := r.sink.Deliver(ds)
	for i, m := range msgs {
		r.settle(m, &ds[i], err == nil)
	}
	return ds
}
