package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	prefetch   = 500              // if the scenario does not set it: the client's default
	pullBytes  = 32 << 20         // of one pull request; the client drops beyond 64 MiB
	pullWait   = 30 * time.Second // of one pull request, which is then renewed
	maxWaiting = 8192             // pull requests that a durable holds: two per consumer
	endLimit   = 5 * time.Second
	readyLimit = 10 * time.Second
	pullPause  = 10 * time.Millisecond // before a pull request that no server took is repeated
	pullLost   = 100                   // checks without a pull request until it counts as lost
)

// A consumer pulls from the subscription's durables, on its own connection.
type consumer struct {
	*natsconn.Receiver
	cfg      *Config
	spec     driver.ConsumerSpec
	prefetch int // per durable
	durables []*held
}

// Consumer connects, and creates missing durables of the subscription. They receive every message
// of their streams, older ones included, unless spec.From says otherwise.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{cfg: &c.cfg, spec: spec, prefetch: spec.Prefetch}
	cfg := jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, ReplayPolicy: jetstream.ReplayInstantPolicy, MaxDeliver: -1, MaxWaiting: maxWaiting,
	}
	if x.acknowledges() {
		cfg.AckPolicy, cfg.AckWait, cfg.MaxAckPending = jetstream.AckExplicitPolicy, c.cfg.AckWait, c.cfg.MaxAckPending
	}
	if err := begin(&cfg, spec.From); err != nil {
		return nil, err
	}
	if spec.Durable {
		c.verbatim.Store(spec.Subscription, true)
	}
	ws, err := c.plan(ctx, spec.Subscription, spec.Destinations)
	if err != nil {
		return nil, err
	}
	if x.prefetch <= 0 {
		x.prefetch = prefetch
	}
	x.prefetch = max(1, x.prefetch/max(1, len(ws)))
	if x.Receiver, err = natsconn.Receive(ctx, &c.cfg.Options, c.run, &spec); err != nil {
		return nil, err
	}
	js, err := jetstream.New(x.Conn)
	for _, w := range ws {
		var d jetstream.Consumer
		if err == nil {
			d, err = c.durable(ctx, js, w, cfg, spec.Durable)
		}
		x.durables = append(x.durables, &held{Consumer: d, wanted: w})
	}
	if err != nil {
		_ = x.Close(ctx)
		return nil, err
	}
	return x, nil
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.Begin(sink)
	r := &running{x: x, sink: sink, failed: make(chan error, 1)}
	if x.cfg.AckConfirm && x.acknowledges() {
		var err error
		// Room for confirmations in flight while as many messages again are delivered.
		if r.confirms, err = natsconn.NewReplies(x.Link, 2*x.prefetch*max(1, len(x.durables)), x.cfg.AckWait, r.confirmed, natsconn.Responds); err != nil {
			return words.Cause(err)
		}
		defer r.confirms.Close()
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	r.life = life
	err := r.begin(ctx)
	if err == nil {
		r.ready.Store(true)
		sink.Ready()
		err = r.until(ctx)
	}
	cancel()
	r.finish()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A running is one call of Run.
type running struct {
	x        *consumer
	sink     driver.Sink
	life     context.Context // ends with Run's ctx, or when Run fails
	failed   chan error      // holds the first reason why a subscription is permanently lost
	confirms *natsconn.Replies[driver.Delivery]

	ready  atomic.Bool
	joined sync.WaitGroup // of consume and fetch

	mu   sync.Mutex      // one Deliver at a time: each durable has its own goroutine
	left []jetstream.Msg // received while Run was ending, and not delivered
	ds   [1]driver.Delivery
}

// begin pulls from the durables.
func (r *running) begin(ctx context.Context) error {
	begin := r.consume
	if r.x.spec.Settle == driver.SettleBatch {
		begin = r.fetch
	}
	var err error
	for _, d := range r.x.durables {
		if err == nil {
			err = begin(d)
		}
	}
	if err == nil {
		err = r.pulling(ctx)
	}
	if err != nil {
		return fmt.Errorf("subscribe: %w", words.Cause(err))
	}
	return nil
}

// until waits until ctx ends or the subscription is lost, and returns why.
func (r *running) until(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return fmt.Errorf("subscription lost: %w", err)
		case err := <-r.x.Gone:
			return fmt.Errorf("subscription lost: %w", err)
		case <-r.x.Lost:
			if r.confirms != nil {
				r.confirms.Lost(r.x.Epoch(), driver.ErrDisconnected)
			}
		}
	}
}

// finish ends the deliveries and makes the server take the acknowledgements, within endLimit. A
// server that does not read is disconnected.
func (r *running) finish() {
	stuck := time.AfterFunc(endLimit, r.x.Kill)
	defer stuck.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	r.joined.Wait()
	r.giveBack(ctx)
	if r.confirms != nil {
		_ = r.confirms.Wait(ctx) // close reports the rest
	}
	if r.x.Up() {
		if err := r.x.FlushWithContext(ctx); err != nil {
			r.sink.Fault(fmt.Errorf("last acknowledgements: %w", words.Cause(err)))
		}
	}
}

// giveBack returns messages that the client had received and not delivered, so that the next
// consumer that asks gets them at once and in order. Messages that the server was still sending
// come before them: these never left the server, which has them first. Messages held back by a
// broken connection come after ack-wait.
func (r *running) giveBack(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 || !r.x.acknowledges() {
		return
	}
	for _, d := range r.x.durables {
		// When a server counts waiting requests, it drops those of consumers that have gone. A
		// request that is still there would put the first message back last.
		_, _ = d.Info(ctx)
	}
	for _, m := range r.left {
		_ = m.Nak()
	}
}

// pulling waits until each durable has a pull request of this consumer. In a cluster, the connected
// server may not know the durable yet; the first request is then repeated (consume, fetch). So is a
// request that is silently lost because it reached the durable's leader too early.
func (r *running) pulling(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	// The server has taken the requests when it answers the PING after them.
	if err := r.x.FlushWithContext(ctx); err != nil || r.x.ConnectedClusterName() == "" {
		return err
	}
	for _, d := range r.x.durables {
		for look := 1; ; look++ {
			info, err := d.Info(ctx)
			if err == nil && (info.NumWaiting > 0 || info.Delivered.Consumer > 0) {
				break
			}
			if look%pullLost == 0 {
				d.pullAgain()
			}
			if !retry.Pause(ctx, pullPause) {
				return errors.Join(fmt.Errorf("%s takes no pull request: %w", d.CachedInfo().Name, driver.ErrTimeout), err)
			}
		}
	}
	return nil
}

// consume makes the client call deliver for each message of a durable, on the subscription's
// goroutine: one hop after the goroutine that reads the socket. If no server answers a pull
// request, the client would wait for two missing heartbeats, half a minute, before the next; here
// it restarts at once.
func (r *running) consume(d *held) error {
	again := make(chan struct{}, 1)
	d.again = again
	messages, bytes, wait := r.x.request(d)
	start := func() (jetstream.ConsumeContext, error) {
		return d.Consume(func(m jetstream.Msg) { r.deliver(d, m) },
			jetstream.PullMaxMessagesWithBytesLimit(messages, bytes), jetstream.PullExpiry(wait),
			jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
				if !r.trouble(err) && noResponders(err) {
					d.pullAgain()
				}
			}))
	}
	c, err := start()
	if err != nil {
		return err
	}
	r.joined.Go(func() {
		for {
			select {
			case <-r.life.Done():
				c.Drain() // the rest of its messages goes to left
				silent := time.NewTimer(endLimit)
				defer silent.Stop()
				select {
				case <-c.Closed():
				case <-silent.C: // the client stops with the connection
				}
				return
			case <-again:
			}
			if !retry.Pause(r.life, pullPause) {
				continue
			}
			c.Drain() // the rest of its messages is delivered
			<-c.Closed()
			err := retry.While(r.life, fetchRest, func(err error) bool { return !r.trouble(err) }, func() error {
				next, err := start()
				if err == nil {
					c = next
				}
				return err
			})
			if err != nil {
				return
			}
		}
	})
	return nil
}

// trouble handles a client error during a pull, and reports whether the subscription is permanently
// lost.
func (r *running) trouble(err error) bool {
	if r.life.Err() != nil {
		return true
	}
	if errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrBadRequest) ||
		errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrConnectionClosed) {
		select {
		case r.failed <- words.Cause(err):
		default:
		}
		return true
	}
	if !noResponders(err) || r.ready.Load() {
		r.sink.Fault(words.Cause(err))
	}
	return false
}

// deliver delivers one message of a durable and settles it.
func (r *running) deliver(d *held, m jetstream.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		r.left = append(r.left, m)
		return
	}
	r.ds[0] = d.delivery(m)
	err := r.sink.Deliver(r.ds[:])
	r.settle(m, &r.ds[0], err == nil)
}

// delivery converts a message to a driver.Delivery.
func (d *held) delivery(m jetstream.Msg) driver.Delivery {
	return driver.Delivery{Payload: m.Data(), Partition: -1, Source: d.source(m.Subject()), Redelivered: redelivered(m.Reply())}
}
