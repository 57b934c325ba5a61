package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

const (
	prefetch   = 500              // where the scenario leaves it open: the client's default
	pullBytes  = 32 << 20         // of one pull request; the client drops beyond 64 MiB
	pullWait   = 30 * time.Second // of one pull request; then it is renewed
	maxWaiting = 8192             // pull requests a durable holds: two a consumer
	endLimit   = 5 * time.Second
	readyLimit = 10 * time.Second
	pullPause  = 10 * time.Millisecond // before a pull request that nobody took is sent again
)

// A consumer pulls from the subscription's durables, on a connection of its own.
type consumer struct {
	cfg      *Config
	link     *natsconn.Link
	spec     driver.ConsumerSpec
	prefetch int // of each durable
	durables []*held

	sink atomic.Pointer[driver.Sink] // set by Run; events before it have nobody to go to
	gone chan error                  // holds why the client gave up
	lost chan struct{}               // holds a token after the connection broke, for confirmed settling
}

// Consumer connects, and makes the subscription's durables where they do not
// exist yet. They get every message of their streams, older ones included, unless
// spec.From says otherwise.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	policy := jetstream.AckExplicitPolicy
	switch spec.Settle {
	case driver.SettleEach, driver.SettleBatch:
	case driver.SettleAuto, driver.SettleNone:
		policy = jetstream.AckNonePolicy
	default:
		return nil, fmt.Errorf("jetstream: settle %v: %w", spec.Settle, driver.ErrUnsupported)
	}
	name := fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index)
	cfg := jetstream.ConsumerConfig{
		AckPolicy: policy, ReplayPolicy: jetstream.ReplayInstantPolicy, MaxDeliver: -1, MaxWaiting: maxWaiting,
	}
	if policy == jetstream.AckExplicitPolicy {
		cfg.AckWait, cfg.MaxAckPending = c.cfg.AckWait, c.cfg.MaxAckPending
	}
	if err := begin(&cfg, spec.From); err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	if spec.Durable {
		c.mu.Lock()
		c.verbatim[spec.Subscription] = true
		c.mu.Unlock()
	}
	ws, err := c.plan(ctx, spec.Subscription, spec.Destinations)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	x := &consumer{cfg: &c.cfg, spec: spec, gone: make(chan error, 1), lost: make(chan struct{}, 1)}
	if x.prefetch = spec.Prefetch; x.prefetch <= 0 {
		x.prefetch = prefetch
	}
	x.prefetch = max(1, x.prefetch/max(1, len(ws)))
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, name, natsconn.Events{
		Lost: func(err error) {
			select {
			case x.lost <- struct{}{}:
			default:
			}
			x.fault(err)
		},
		Gone:   func(err error) { x.gone <- err },
		Faults: func(sub *nats.Subscription, err error) { x.fault(natsconn.Dropped(sub, err)) },
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	x.link = link
	js, err := jetstream.New(link.Conn)
	if err != nil {
		_ = link.Close(ctx)
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	for _, w := range ws {
		d, err := c.durable(ctx, js, w, cfg, spec.Durable)
		if err != nil {
			_ = link.Close(ctx)
			return nil, fmt.Errorf("jetstream: %w", err)
		}
		x.durables = append(x.durables, &held{d, w})
	}
	return x, nil
}

func (x *consumer) fault(err error) {
	if s := x.sink.Load(); s != nil {
		(*s).Fault(err)
	}
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.sink.Store(&sink)
	r := &running{x: x, sink: sink, failed: make(chan error, 1)}
	if x.cfg.AckConfirm && r.acknowledges() {
		var err error
		// Room for what is confirmed while as much again is delivered.
		if r.confirms, err = natsconn.NewReplies(x.link, 2*x.prefetch*max(1, len(x.durables)), x.cfg.AckWait, r.confirmed); err != nil {
			return fmt.Errorf("jetstream: %w", cause(err))
		}
		defer r.confirms.Close()
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	r.life = life
	begin := r.consume
	if x.spec.Settle == driver.SettleBatch {
		begin = r.fetch
	}
	var err error
	for _, d := range x.durables {
		if err = begin(d); err != nil {
			err = fmt.Errorf("jetstream: subscribe: %w", cause(err))
			break
		}
	}
	if err == nil {
		if err = r.pulling(ctx); err != nil {
			err = fmt.Errorf("jetstream: subscribe: %w", cause(err))
		}
	}
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

// A running is one Run.
type running struct {
	x        *consumer
	sink     driver.Sink
	life     context.Context // ends with ctx of Run, or when it fails
	failed   chan error      // holds the first reason why a subscription is lost for good
	confirms *natsconn.Replies[driver.Delivery]

	ready  atomic.Bool
	joined sync.WaitGroup // of consume and fetch

	mu   sync.Mutex      // one Deliver at a time: each durable has a goroutine of its own
	left []jetstream.Msg // received when Run was to end, and not delivered
	ds   [1]driver.Delivery
}

// until returns when ctx ends, or with why the subscription is lost.
func (r *running) until(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return fmt.Errorf("jetstream: subscription lost: %w", err)
		case err := <-r.x.gone:
			return fmt.Errorf("jetstream: subscription lost: %w", err)
		case <-r.x.lost:
			if r.confirms != nil {
				r.confirms.Lost(r.x.link.Epoch(), driver.ErrDisconnected)
			}
		}
	}
}

// finish ends the deliveries and has the server take the acknowledgements, within
// endLimit. A server that does not read is cut off.
func (r *running) finish() {
	stuck := time.AfterFunc(endLimit, r.x.link.Kill)
	defer stuck.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	r.joined.Wait()
	r.giveBack(ctx)
	if r.confirms != nil {
		_ = r.confirms.Wait(ctx) // what is left is reported by close
	}
	if natsconn.Up(r.x.link.Epoch()) {
		if err := r.x.link.FlushWithContext(ctx); err != nil {
			r.sink.Fault(fmt.Errorf("last acknowledgements: %w", cause(err)))
		}
	}
}

// giveBack returns to the server what the client had received and not delivered,
// so that it comes again at once to whoever asks next, in its order. What the
// server was still sending comes before it: that never left the server, which has
// it first. What a broken connection keeps from it comes after ack-wait.
func (r *running) giveBack(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 || !r.acknowledges() {
		return
	}
	for _, d := range r.x.durables {
		// When it counts the requests that wait, a server drops those of who has
		// gone. One that is still there would put the first message back last.
		_, _ = d.Info(ctx)
	}
	for _, m := range r.left {
		_ = m.Nak()
	}
}

// pulling returns when a pull request of this consumer is with each durable. In a
// cluster the first may find that the server at hand does not know the durable
// yet; it is sent again (consume, fetch).
func (r *running) pulling(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	// A server has taken the requests when it answers the PING behind them.
	if err := r.x.link.FlushWithContext(ctx); err != nil || r.x.link.ConnectedClusterName() == "" {
		return err
	}
	for _, d := range r.x.durables {
		for {
			info, err := d.Info(ctx)
			if err == nil && (info.NumWaiting > 0 || info.Delivered.Consumer > 0) {
				break
			}
			if !pause(ctx, pullPause) {
				return errors.Join(fmt.Errorf("%s takes no pull request: %w", d.CachedInfo().Name, driver.ErrTimeout), err)
			}
		}
	}
	return nil
}

// pause waits, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// consume has the client call deliver for each message of a durable, from the
// goroutine of its subscription: one hop after the one that reads the socket.
// Where nobody answers a pull request the client would wait for two missing
// heartbeats, half a minute, before the next; here it begins anew at once.
func (r *running) consume(d *held) error {
	again := make(chan struct{}, 1)
	most := r.x.request(d)
	start := func() (jetstream.ConsumeContext, error) {
		return d.Consume(func(m jetstream.Msg) { r.deliver(d, m) },
			jetstream.PullMaxMessagesWithBytesLimit(most.messages, most.bytes), jetstream.PullExpiry(most.wait),
			jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
				if !r.trouble(err) && errors.Is(err, nats.ErrNoResponders) {
					select {
					case again <- struct{}{}:
					default:
					}
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
				c.Drain() // what it has still is left
				silent := time.NewTimer(endLimit)
				defer silent.Stop()
				select {
				case <-c.Closed():
				case <-silent.C: // the client ends it with the connection
				}
				return
			case <-again:
			}
			if !pause(r.life, pullPause) {
				continue
			}
			c.Drain() // what it has still is delivered
			<-c.Closed()
			next, err := start()
			for err != nil && !r.trouble(err) && pause(r.life, fetchRest) {
				next, err = start()
			}
			if err != nil {
				return
			}
			c = next
		}
	})
	return nil
}

// trouble takes an error of the client while it pulls, and reports whether the
// subscription is lost for good.
func (r *running) trouble(err error) bool {
	if r.life.Err() != nil {
		return true
	}
	if errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrBadRequest) ||
		errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrConnectionClosed) {
		select {
		case r.failed <- cause(err):
		default:
		}
		return true
	}
	if !errors.Is(err, nats.ErrNoResponders) || r.ready.Load() {
		r.sink.Fault(cause(err))
	}
	return false
}

// deliver hands over one message of a durable and settles it.
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

// delivery returns the contract's view of a message.
func (d *held) delivery(m jetstream.Msg) driver.Delivery {
	return driver.Delivery{Payload: m.Data(), Partition: -1, Source: d.source(m.Subject()), Redelivered: redelivered(m.Reply())}
}

// Close ends the connection.
func (x *consumer) Close(ctx context.Context) error { return x.link.Close(ctx) }
