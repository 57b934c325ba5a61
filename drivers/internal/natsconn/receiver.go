package natsconn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/closers"
)

// A Receiver is the connection of a consumer. It tells the Sink of Run what happens to
// it, and knows what the client holds for Run's subscriptions.
type Receiver struct {
	*Link
	Lost chan struct{} // holds a token after the connection broke
	Gone chan error    // holds why the client gave up

	options *Options
	run     driver.Run
	sink    atomic.Pointer[driver.Sink]
	mu      sync.Mutex
	subs    []pending
}

// pending is what the subscriptions of both clients have in common.
type pending interface {
	Pending() (messages, bytes int, err error)
}

// Receive connects, as Connect does.
func Receive(ctx context.Context, o *Options, run driver.Run, spec *driver.ConsumerSpec) (*Receiver, error) {
	r := &Receiver{Lost: make(chan struct{}, 1), Gone: make(chan error, 1), options: o, run: run}
	var err error
	r.Link, err = Connect(ctx, o, run.For(spec), fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index), Events{
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

// probeEvery is how long a probe of Known may take before the next is sent.
const probeEvery = 10 * time.Millisecond

// Known returns when the servers at all addresses know the subscriptions that were made
// on this connection before. A server confirms a subscription before the others of its
// cluster know it, and what is published at one of them meanwhile is lost. It tells them
// of subscriptions in order, so that a message from each to a later subscription is the
// proof. A server that cannot be reached is left out. Known ends with ctx's error.
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

// probe sends messages from l until one arrives.
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
				continue // a late one of the server before
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

// Begin says that Run has begun. What happens before has no Sink to go to.
func (r *Receiver) Begin(sink driver.Sink) { r.sink.Store(&sink) }

func (r *Receiver) fault(err error) {
	if s := r.sink.Load(); s != nil {
		(*s).Fault(err)
	}
}

// Hold notes a subscription of Run.
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

// holds returns how many messages the client has received and Deliver has not taken.
func (r *Receiver) holds() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sub := range r.subs {
		if waiting, _, err := sub.Pending(); err == nil { // one that has ended holds nothing
			n += uint64(max(0, waiting))
		}
	}
	return n
}

// Ends are the open producers and consumers of a Conn. Use them where the servers do not
// tell what a subscription has still to get.
type Ends struct {
	Producers closers.Set[*Link]
	Consumers closers.Set[*Receiver]
}

// Backlog returns what the clients of a subscription's consumers hold. Before, each
// server answers a PING behind all that the producers have published, which it has
// passed on by then, and one behind all that it has sent to the consumers. A connection
// without an answer by the end of ctx is ErrUnreachable.
func (e *Ends) Backlog(ctx context.Context, subscription string) (n uint64, err error) {
	if err := roundTrips(ctx, e.Producers.Of("")); err != nil {
		return 0, err
	}
	consumers := e.Consumers.Of(subscription)
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

// roundTrips returns when the server has answered a PING on each of the links.
func roundTrips(ctx context.Context, links []*Link) error {
	answers := make(chan error, len(links))
	for _, l := range links {
		// A server that does not read holds up the client's lock, whatever ctx says.
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
