package natsconn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/known"
)

// A Receiver is a consumer's connection. It reports faults to the Sink of Run, and knows how many
// messages the client holds for Run's subscriptions.
type Receiver struct {
	*Link
	Lost chan struct{} // holds a token after the connection breaks
	Gone chan error    // holds the client's reason for giving up

	options *Options
	run     driver.Run
	sink    atomic.Pointer[driver.Sink]
	mu      sync.Mutex
	subs    []pending
}

// pending is common to the subscriptions of both clients.
type pending interface {
	Pending() (messages, bytes int, err error)
}

// Receive connects, as Connect does.
func Receive(ctx context.Context, o *Options, run driver.Run, spec *driver.ConsumerSpec) (*Receiver, error) {
	r := &Receiver{Lost: make(chan struct{}, 1), Gone: make(chan error, 1), options: o, run: run}
	var err error
	r.Link, err = Connect(ctx, o, run.For(spec), spec.Name(), Events{
		Lost: func(err error) {
			select {
			case r.Lost <- struct{}{}:
			default:
			}
			r.fault(err)
		},
		Gone:   func(err error) { r.Gone <- err },
		Faults: func(sub *nats.Subscription, err error) { r.fault(dropped(sub, err)) },
	})
	return r, err
}

// probeEvery is how long Known waits for a probe before it sends the next one.
const probeEvery = 10 * time.Millisecond

// Known waits until the servers at all addresses know the subscriptions made on this connection so
// far. A server confirms a subscription before the rest of its cluster knows it, and messages
// published to another server meanwhile are lost. Servers propagate subscriptions in order, so a
// message from each server to a later subscription proves it. Unreachable servers are skipped.
// Known returns ctx's error when ctx ends.
func (r *Receiver) Known(ctx context.Context) error {
	if err := r.FlushWithContext(ctx); err != nil || len(r.options.Address) < 2 {
		return err
	}
	probes, err := r.SubscribeSync(nats.NewInbox())
	if err != nil {
		return err
	}
	defer func() { _ = probes.Unsubscribe() }()
	for _, address := range r.options.Address {
		o := *r.options
		o.Address = []string{address}
		l, err := Connect(ctx, &o, driver.Run{ID: r.run.ID, Log: r.run.Log}, "probe", Events{})
		if err != nil {
			continue
		}
		err = probe(ctx, l, probes, address)
		_ = l.Close(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// probe sends messages over l until one arrives.
func probe(ctx context.Context, l *Link, probes *nats.Subscription, name string) error {
	for ctx.Err() == nil {
		if err := l.PublishMsg(&nats.Msg{Subject: probes.Subject, Data: []byte(name)}); err != nil {
			return err
		}
		if err := l.FlushWithContext(ctx); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, probeEvery)
		for {
			m, err := probes.NextMsgWithContext(wait)
			if err == nil && string(m.Data) != name {
				continue // a late message from the previous server
			}
			if err == nil {
				cancel()
				return nil
			}
			break
		}
		cancel()
	}
	return ctx.Err()
}

// Begin marks the start of Run. Earlier events have no Sink to go to.
func (r *Receiver) Begin(sink driver.Sink) { r.sink.Store(&sink) }

func (r *Receiver) fault(err error) {
	if s := r.sink.Load(); s != nil {
		(*s).Fault(err)
	}
}

// Hold registers a subscription of Run.
func (r *Receiver) Hold(sub pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs = append(r.subs, sub)
}

// Drop forgets all subscriptions.
func (r *Receiver) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs = nil
}

// holds returns the number of messages that the client has received and not passed to Deliver.
func (r *Receiver) holds() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sub := range r.subs {
		if waiting, _, err := sub.Pending(); err == nil { // an ended subscription holds nothing
			n += uint64(max(0, waiting))
		}
	}
	return n
}

// Ends holds the open producers and consumers of a Conn. Use it if the servers do not report a
// subscription's backlog.
type Ends struct {
	Producers known.Table[*Link, string]
	Consumers known.Table[*Receiver, string]
}

// Backlog returns the number of messages held by the clients of a subscription's consumers. First,
// it pings the server on each producer's connection, so that everything published has been passed
// on, and then on each consumer's, so that everything has arrived. A connection without an answer
// before ctx ends is ErrUnreachable.
func (e *Ends) Backlog(ctx context.Context, subscription string) (n uint64, err error) {
	if err := roundTrips(ctx, known.Having(&e.Producers, "")); err != nil {
		return 0, err
	}
	consumers := known.Having(&e.Consumers, subscription)
	var in []*Link
	for _, r := range consumers {
		in = append(in, r.Link)
	}
	if err := roundTrips(ctx, in); err != nil {
		return 0, err
	}
	for _, r := range consumers {
		n += r.holds()
	}
	return n, nil
}

// roundTrips waits until the server has answered a PING on each link.
func roundTrips(ctx context.Context, links []*Link) error {
	answers := make(chan error, len(links))
	for _, l := range links {
		// A server that does not read blocks the client's lock, regardless of ctx.
		go func() { answers <- l.FlushWithContext(ctx) }()
	}
	for range links {
		var err error
		select {
		case err = <-answers:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("asking the server: %w: %w", driver.ErrUnreachable, words.Plain(err))
		}
	}
	return nil
}
